/* SPDX-License-Identifier: GPL-2.0 */
/*
 * JSON is nearly a part of YAML. A JSON text may hold what libyaml refuses, or takes for something else. If it holds none of that, both readers
 * make the same tree of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "policy/policy.h"
#include "policy/tree.h"

#define KEY_MAX 1000 /* from a key's first byte to its colon; libyaml takes 1,024 */

static bool is_printed(char c)
{
	return c >= ' ' && c <= '~';
}

/* Half of a character, which needs another such escape. */
static bool is_surrogate(const char *escape)
{
	return (*escape == 'd' || *escape == 'D') && strchr("89abcdefABCDEF", escape[1]);
}

/* Behind the string that begins at its quote; NULL: it is not the same, or does not end. */
static const char *string_end(const char *p)
{
	while (*++p != '"') {
		if (!is_printed(*p) || (*p == '\\' && !is_printed(*++p)))
			return NULL;
		if (*p == 'u' && p[-1] == '\\' && is_surrogate(p + 1))
			return NULL;
	}
	return p + 1;
}

/* A zero loses no minus, and a colon stands in its key's line. key: NULL where none is before it. */
static bool is_same(const char *p, const char *key)
{
	switch (*p) {
	case '-':
		return p[1] != '0';
	case ':':
		return key && p - key <= KEY_MAX;
	case '\t':
	case '\n':
	case '\r':
		return true;
	default:
		return is_printed(*p);
	}
}

/* Of a key, as long as only spaces are behind it. */
static const char *still_key(const char *p, const char *key)
{
	return *p == ' ' ? key : NULL;
}

bool policy_is_as_yaml(const char *text, size_t length)
{
	const char *p = text, *end = text + length, *last = memrchr(text, '}', length), *key = NULL;

	if (*text != '{' || !last || memchr(last, '\t', end - last)) /* a tab begins no line outside of braces */
		return false;
	while (p && p < end) {
		if (*p == '"') {
			key = p;
			p = string_end(p);
		} else if (is_same(p, key)) {
			key = still_key(p++, key);
		} else {
			p = NULL;
		}
	}
	return p;
}

/* --- pairs of surrogates, for which YAML has another escape */

#define PAIR 12 /* bytes of \ud83d\ude00 */

static bool is_json(const char *text, size_t length)
{
	CLEANUP_JSON json_t *json = json_loadb(text, length, JSON_ALLOW_NUL, NULL);

	return json;
}

static unsigned int pair_character(const char *pair)
{
	char text[PAIR + 1] = "";
	unsigned int high = 0, low = 0;

	memcpy(text, pair, PAIR);
	sscanf(text, "\\u%4x\\u%4x", &high, &low);
	return 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
}

/* In JSON a backslash is nowhere but in a string, and each half of a pair has its other half. */
int documents_join_pairs(const char *text, size_t *length, char **joined)
{
	const char *p = text, *end = text + *length;
	char *out;

	*joined = NULL;
	if (!(memmem(text, *length, "\\ud", 3) || memmem(text, *length, "\\uD", 3)) || !is_json(text, *length))
		return 0;
	out = *joined = malloc(*length);
	if (!out)
		return -ENOMEM;
	while (p < end) {
		if (*p == '\\' && p[1] == 'u' && is_surrogate(p + 2)) {
			out += sprintf(out, "\\U%08x", pair_character(p));
			p += PAIR;
			continue;
		}
		if (*p == '\\')
			*out++ = *p++;
		*out++ = *p++;
	}
	*length = out - *joined;
	return 0;
}
