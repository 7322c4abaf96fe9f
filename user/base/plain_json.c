/* SPDX-License-Identifier: GPL-2.0 */
#include "base/plain_json.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define DIGITS_MAX 18 /* that a json_int_t holds, whatever they are */

/* --- tokens */

struct plain plain_begin(const char *text, size_t length)
{
	return (struct plain){ .at = text, .end = text + length, .line_begin = text };
}

static char peek(const struct plain *p)
{
	return p->at < p->end ? *p->at : '\0';
}

static void skip_blanks(struct plain *p)
{
	for (; p->at < p->end && (*p->at == ' ' || *p->at == '\n'); p->at++) {
		if (*p->at == '\n') {
			p->line++;
			p->line_begin = p->at + 1;
		}
	}
}

static void begin_token(const struct plain *p, struct plain_token *token)
{
	*token = (struct plain_token){
		.kind = PLAIN_OTHER, .text = p->at, .line = p->line, .column = p->at - p->line_begin
	};
}

static bool is_plain(unsigned char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

/* Behind its first quote. */
static void read_text(struct plain *p, struct plain_token *token, enum plain_kind kind)
{
	const char *begin = ++p->at;

	while (p->at < p->end && is_plain(*p->at))
		p->at++;
	if (peek(p) != '"' || p->at - begin > PLAIN_TEXT_MAX)
		return;
	token->kind = kind;
	token->text = begin;
	token->length = p->at++ - begin;
}

static void skip_digits(struct plain *p)
{
	while (isdigit((unsigned char)peek(p)))
		p->at++;
}

/* Digits without a zero before others. */
static bool skip_whole(struct plain *p)
{
	const char *begin = p->at;

	skip_digits(p);
	return p->at > begin && (*begin != '0' || p->at == begin + 1) && p->at - begin <= DIGITS_MAX;
}

static bool skip_number(struct plain *p)
{
	p->at += peek(p) == '-';
	if (!skip_whole(p))
		return false;
	if (peek(p) != '.')
		return true;
	p->at++;
	if (!isdigit((unsigned char)peek(p)))
		return false;
	skip_digits(p);
	return true;
}

static bool skip_word(struct plain *p)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t length = strlen(words[i]);

		if ((size_t)(p->end - p->at) < length || memcmp(p->at, words[i], length) != 0)
			continue;
		p->at += length;
		return true;
	}
	return skip_number(p);
}

/* What stands right behind it must not belong to it: "1e3", "nullify". */
static void read_word(struct plain *p, struct plain_token *token)
{
	if (!skip_word(p) || isalnum((unsigned char)peek(p)) || (peek(p) && strchr(".+-_", peek(p))))
		return;
	token->length = p->at - token->text;
	token->kind = token->length <= PLAIN_TEXT_MAX ? PLAIN_WORD : PLAIN_OTHER;
}

static void open_collection(struct plain *p, struct plain_token *token, bool object)
{
	if (p->depth == PLAIN_DEPTH_MAX)
		return;
	p->at++;
	p->object[p->depth++] = object;
	p->first = true;
	token->kind = object ? PLAIN_OBJECT : PLAIN_LIST;
}

static void read_value(struct plain *p, struct plain_token *token)
{
	char c = peek(p);

	p->valued = false;
	p->first = false;
	if (c == '{' || c == '[')
		open_collection(p, token, c == '{');
	else if (c == '"' && p->depth)
		read_text(p, token, PLAIN_TEXT);
	else if (p->depth)
		read_word(p, token);
}

/* The colon stands close behind the key: YAML wants that. */
static void read_key(struct plain *p, struct plain_token *token)
{
	p->first = false;
	if (peek(p) != '"')
		return;
	read_text(p, token, PLAIN_KEY);
	p->at += peek(p) == ' ';
	if (peek(p) != ':') {
		token->kind = PLAIN_OTHER;
		return;
	}
	p->at++;
	p->valued = true;
}

/* Within a collection, before what comes next in it. */
static void read_next(struct plain *p, struct plain_token *token)
{
	bool object = p->object[p->depth - 1];

	if (peek(p) == (object ? '}' : ']')) {
		p->at++;
		p->depth--;
		p->first = false;
		token->kind = PLAIN_CLOSE;
		return;
	}
	if (!p->first) {
		if (peek(p) != ',')
			return;
		p->at++;
		skip_blanks(p);
		begin_token(p, token);
	}
	if (object)
		read_key(p, token);
	else
		read_value(p, token);
}

void plain_next(struct plain *p, struct plain_token *token)
{
	bool begun = p->line || p->at > p->line_begin;

	skip_blanks(p);
	begin_token(p, token);
	if (p->valued || (!p->depth && !begun))
		read_value(p, token);
	else if (p->depth)
		read_next(p, token);
	else if (p->at == p->end)
		token->kind = PLAIN_END;
}

bool plain_whole(const char *text, size_t length)
{
	struct plain p = plain_begin(text, length);
	struct plain_token token;

	do
		plain_next(&p, &token);
	while (token.kind > PLAIN_OTHER);
	return token.kind == PLAIN_END;
}

/* --- a value of it all */

static json_t *build(struct plain *p, const struct plain_token *token);

static json_t *build_list(struct plain *p)
{
	CLEANUP_JSON json_t *list = json_array();
	struct plain_token token;

	for (plain_next(p, &token); token.kind != PLAIN_CLOSE; plain_next(p, &token))
		if (json_array_append_new(list, build(p, &token)))
			return NULL;
	return json_incref(list);
}

static json_t *build_object(struct plain *p)
{
	CLEANUP_JSON json_t *object = json_object();
	char key[PLAIN_TEXT_MAX + 1];
	struct plain_token token;
	size_t n = 0;

	for (plain_next(p, &token); token.kind != PLAIN_CLOSE; plain_next(p, &token)) {
		if (token.kind != PLAIN_KEY)
			return NULL;
		memcpy(key, token.text, token.length);
		key[token.length] = '\0';
		plain_next(p, &token);
		if (json_object_set_new_nocheck(object, key, build(p, &token)) || json_object_size(object) != ++n)
			return NULL;
	}
	return json_incref(object);
}

/* Fractions are jansson's. */
static json_t *build_word(const struct plain_token *token)
{
	char digits[DIGITS_MAX + 3] = "";

	if (*token->text == 't' || *token->text == 'f')
		return json_boolean(*token->text == 't');
	if (*token->text == 'n')
		return json_null();
	if (token->length >= sizeof(digits) || memchr(token->text, '.', token->length))
		return NULL;
	memcpy(digits, token->text, token->length);
	return json_integer(strtoll(digits, NULL, 10));
}

static json_t *build(struct plain *p, const struct plain_token *token)
{
	switch (token->kind) {
	case PLAIN_OBJECT:
		return build_object(p);
	case PLAIN_LIST:
		return build_list(p);
	case PLAIN_TEXT:
		return json_stringn_nocheck(token->text, token->length);
	case PLAIN_WORD:
		return build_word(token);
	default:
		return NULL;
	}
}

json_t *plain_to_json(const char *text, size_t length)
{
	struct plain p = plain_begin(text, length);
	CLEANUP_JSON json_t *value = NULL;
	struct plain_token token;

	plain_next(&p, &token);
	value = build(&p, &token);
	plain_next(&p, &token);
	return token.kind == PLAIN_END ? json_incref(value) : NULL;
}
