/* SPDX-License-Identifier: GPL-2.0 */
#include "replay/line.h"

#include <errno.h>
#include <string.h>

struct reading {
	struct weir_json json;
	struct line_member *members;
	size_t n;
	struct line_member *member; /* whose value comes; NULL: nobody asks for it */
	char *out;		    /* where the next character of its text goes; NULL: it is no text */
};

static struct line_member *find_member(const struct reading *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->members[i].word[0] == r->json.name[0] && r->members[i].word[1] == r->json.name[1] &&
		    strlen(r->members[i].name) == r->json.name_length)
			return &r->members[i];
	return NULL;
}

/* The text is never longer than its escaped form in the line. */
static char *put_utf8(char *out, __u32 code)
{
	if (code < 0x80) {
		*out++ = code;
		return out;
	}
	if (code < 0x800) {
		*out++ = 0xc0 | code >> 6;
	} else {
		if (code < 0x10000) {
			*out++ = 0xe0 | code >> 12;
		} else {
			*out++ = 0xf0 | code >> 18;
			*out++ = 0x80 | (code >> 12 & 0x3f);
		}
		*out++ = 0x80 | (code >> 6 & 0x3f);
	}
	*out++ = 0x80 | (code & 0x3f);
	return out;
}

static void begin_value(struct reading *r, const char *at)
{
	r->member->value = at;
	r->member->length = strcspn(at, ",} \t\r\n");
}

/* What the byte before `next` has told of the member whose value it is in. */
static int take_event(struct reading *r, enum weir_json_event event, char *next)
{
	int depth = r->json.depth;

	if (event == WEIR_JSON_NAME && depth == 1) {
		r->member = find_member(r);
		if (r->member)
			r->member->text = NULL, r->member->value = NULL;
	}
	if (!r->member)
		return 0;
	if (event == WEIR_JSON_STRING && depth == 1)
		r->member->text = r->out = next;
	if ((event == WEIR_JSON_NULL || event == WEIR_JSON_OTHER) && depth == 1)
		begin_value(r, next - 1);
	if (event == WEIR_JSON_OPEN && depth == 2)
		r->member->value = next - 1;
	if (event == WEIR_JSON_CLOSE && depth == 1)
		r->member->length = next - r->member->value;
	if (!r->out)
		return 0;
	if (event == WEIR_JSON_CHARACTER && !r->json.code) /* would end the text before its end */
		return -EINVAL;
	if (event == WEIR_JSON_CHARACTER)
		r->out = put_utf8(r->out, r->json.code);
	if (event == WEIR_JSON_STRING_END) {
		*r->out = 0;
		r->out = NULL;
	}
	return 0;
}

/* How many characters of a string stand here plainly: the reader would only tell of each. */
static size_t plain_length(const char *at, const char *end)
{
	const char *from = at;

	while (at < end && *at >= ' ' && (__u8)*at < 0x80 && *at != '"' && *at != '\\')
		at++;
	return at - from;
}

/* Takes the plain characters of a value that is a string. */
static size_t take_plain(struct reading *r, const char *at, const char *end)
{
	size_t length;

	if (r->json.state != WEIR_JSON_IN_STRING || r->json.in_name)
		return 0;
	length = plain_length(at, end);
	if (r->out) {
		memmove(r->out, at, length);
		r->out += length;
	}
	return length;
}

int line_read(char *line, size_t length, struct line_member *members, size_t n, struct error *err)
{
	struct reading r = { .members = members, .n = n };
	const char *end = line + length;
	bool whole = false;

	weir_json_start(&r.json);
	for (char *at = line; at < end; at++) {
		enum weir_json_event event;

		at += take_plain(&r, at, end);
		if (at == end)
			break;
		event = weir_json_byte(&r.json, *at);
		if (event == WEIR_JSON_BAD || take_event(&r, event, at + 1))
			return error_set(err, -EINVAL, "no JSON from byte %zu on", at - line + 1);
		whole |= event == WEIR_JSON_END;
	}
	return whole ? 0 : error_set(err, -EINVAL, "the JSON is cut off");
}
