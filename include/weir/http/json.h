/* SPDX-License-Identifier: GPL-2.0 */
/*
 * JSON (RFC 8259), a byte at a time: what an object or an array holds, in the order in which it comes. The machine is a
 * plain struct that may be copied between any two bytes.
 *
 *   weir_json_start(j)       before the first byte
 *   weir_json_byte(j, c)     until WEIR_JSON_END or WEIR_JSON_BAD
 *
 * Strings are checked, since readers differ about bad ones: control characters, bytes that are not UTF-8 and half a
 * surrogate pair are no JSON. Of numbers, true, false and null only the end is looked for.
 */
#ifndef WEIR_HTTP_JSON_H
#define WEIR_HTTP_JSON_H

#include "weir/base/types.h"
#include "weir/http/byte.h"

#define WEIR_JSON_DEPTH 64	 /* objects and arrays within each other */
#define WEIR_JSON_NAME_MAX 16	 /* characters of a member's name that are kept */
#define WEIR_JSON_NAME_NONE 0xff /* `name_length` of a longer one, and of what is not ASCII */

/* What a byte told. */
enum weir_json_event {
	WEIR_JSON_MORE,
	WEIR_JSON_NAME,	     /* a member's name has ended: its value follows */
	WEIR_JSON_OPEN,	     /* an object or an array begins: `depth` counts it */
	WEIR_JSON_CLOSE,     /* it has ended: `depth` no longer counts it */
	WEIR_JSON_STRING,    /* a value that is a string begins */
	WEIR_JSON_CHARACTER, /* of that string: `code` */
	WEIR_JSON_STRING_END,
	WEIR_JSON_NULL,	 /* begins; so does a number, true or false */
	WEIR_JSON_OTHER, /* value */
	WEIR_JSON_END,	 /* the first object or array, and with it the document, is complete */
	WEIR_JSON_BAD,	 /* no JSON, or nested too deep */
};

/* What the next byte may be. */
enum weir_json_state {
	WEIR_JSON_AT_VALUE,
	WEIR_JSON_AT_FIRST_VALUE, /* or the end of an empty array */
	WEIR_JSON_AT_NAME,
	WEIR_JSON_AT_FIRST_NAME, /* or the end of an empty object */
	WEIR_JSON_AT_COLON,
	WEIR_JSON_AT_COMMA,   /* or the end of the object or array */
	WEIR_JSON_IN_LITERAL, /* or what follows it */
	WEIR_JSON_AT_LAST,    /* nothing */
	WEIR_JSON_IN_STRING,  /* from here on white space counts */
	WEIR_JSON_IN_UTF8,
	WEIR_JSON_IN_ESCAPE,
	WEIR_JSON_IN_HEX,
	WEIR_JSON_AT_PAIR, /* the backslash of a pair's second half */
};

struct weir_json {
	__u64 name[2]; /* the latest name's characters, the last one lowest */
	__u64 arrays;  /* bit n: what makes depth n + 1 is an array, not an object */
	__u32 code;    /* of the latest character, or as far as it has come */
	__u32 least;   /* that a character of so many UTF-8 bytes may be */
	__u16 half;    /* the pair's first one, 0: none */
	__u8 left;     /* bytes, or hexadecimal digits, that `code` still lacks */
	__u8 state;    /* enum weir_json_state */
	__u8 depth;
	__u8 name_length;
	__u8 in_name; /* the string is a name */
	__u8 pad;
};
WEIR_ASSERT_SIZE(struct weir_json, 40);

WEIR_INLINE void weir_json_start(struct weir_json *j)
{
	__builtin_memset(j, 0, sizeof(*j));
}

/* Is the latest name this one? A name's text is at most WEIR_JSON_NAME_MAX characters. */
#define WEIR_JSON_NAME_IS(j, text)                                                          \
	((j)->name[0] == WEIR_TEXT_WORD(text, 0) && (j)->name_length == sizeof(text) - 1 && \
	 (j)->name[1] == WEIR_TEXT_WORD(text, 1))

WEIR_INLINE bool weir_json_in_array(const struct weir_json *j)
{
	return j->arrays >> ((j->depth - 1) & (WEIR_JSON_DEPTH - 1)) & 1;
}

WEIR_INLINE enum weir_json_event weir_json_open(struct weir_json *j, bool array)
{
	__u64 bit = 1ULL << (j->depth & (WEIR_JSON_DEPTH - 1));

	if (j->depth >= WEIR_JSON_DEPTH)
		return WEIR_JSON_BAD;
	j->arrays = array ? j->arrays | bit : j->arrays & ~bit;
	j->depth++;
	j->state = array ? WEIR_JSON_AT_FIRST_VALUE : WEIR_JSON_AT_FIRST_NAME;
	return WEIR_JSON_OPEN;
}

WEIR_INLINE enum weir_json_event weir_json_close(struct weir_json *j, __u8 c)
{
	if (c != (weir_json_in_array(j) ? ']' : '}'))
		return WEIR_JSON_BAD;
	j->depth--;
	j->state = j->depth ? WEIR_JSON_AT_COMMA : WEIR_JSON_AT_LAST;
	return j->depth ? WEIR_JSON_CLOSE : WEIR_JSON_END;
}

WEIR_INLINE enum weir_json_event weir_json_value_byte(struct weir_json *j, __u8 c)
{
	if (c == '{' || c == '[')
		return weir_json_open(j, c == '[');
	if (!j->depth)
		return WEIR_JSON_BAD;
	if (c == '"') {
		j->state = WEIR_JSON_IN_STRING;
		j->in_name = 0;
		return WEIR_JSON_STRING;
	}
	if (c == ']' && j->state == WEIR_JSON_AT_FIRST_VALUE)
		return weir_json_close(j, c);
	if (!weir_is_digit(c) && c != '-' && c != 't' && c != 'f' && c != 'n')
		return WEIR_JSON_BAD;
	j->state = WEIR_JSON_IN_LITERAL;
	return c == 'n' ? WEIR_JSON_NULL : WEIR_JSON_OTHER;
}

WEIR_INLINE enum weir_json_event weir_json_name_byte(struct weir_json *j, __u8 c)
{
	if (c == '}' && j->state == WEIR_JSON_AT_FIRST_NAME)
		return weir_json_close(j, c);
	if (c != '"')
		return WEIR_JSON_BAD;
	j->state = WEIR_JSON_IN_STRING;
	j->in_name = 1;
	j->name[0] = j->name[1] = 0;
	j->name_length = 0;
	return WEIR_JSON_MORE;
}

/* Behind a value. */
WEIR_INLINE enum weir_json_event weir_json_comma_byte(struct weir_json *j, __u8 c)
{
	if (c != ',')
		return weir_json_close(j, c);
	j->state = weir_json_in_array(j) ? WEIR_JSON_AT_VALUE : WEIR_JSON_AT_NAME;
	return WEIR_JSON_MORE;
}

WEIR_INLINE bool weir_json_is_literal(__u8 c)
{
	__u8 lower = weir_lower(c);

	return (lower >= 'a' && lower <= 'z') || weir_is_digit(c) || c == '-' || c == '+' || c == '.';
}

/* `code` is complete. */
WEIR_INLINE enum weir_json_event weir_json_character(struct weir_json *j)
{
	j->state = WEIR_JSON_IN_STRING;
	if (!j->in_name)
		return WEIR_JSON_CHARACTER;
	if (j->code >= 0x80 || j->name_length >= WEIR_JSON_NAME_MAX) {
		j->name_length = WEIR_JSON_NAME_NONE;
		return WEIR_JSON_MORE;
	}
	j->name[1] = j->name[1] << 8 | j->name[0] >> 56;
	j->name[0] = j->name[0] << 8 | j->code;
	j->name_length++;
	return WEIR_JSON_MORE;
}

/* RFC 3629: the first of several bytes. */
WEIR_INLINE enum weir_json_event weir_json_utf8_start(struct weir_json *j, __u8 c)
{
	if (c < 0xc0 || c >= 0xf8)
		return WEIR_JSON_BAD;
	j->left = 1 + (c >= 0xe0) + (c >= 0xf0);
	j->code = c & (0x3f >> j->left);
	j->least = j->left == 1 ? 0x80 : j->left == 2 ? 0x800 : 0x10000;
	j->state = WEIR_JSON_IN_UTF8;
	return WEIR_JSON_MORE;
}

WEIR_INLINE bool weir_json_is_half(__u32 code)
{
	return code >= 0xd800 && code < 0xe000;
}

WEIR_INLINE enum weir_json_event weir_json_utf8_byte(struct weir_json *j, __u8 c)
{
	if ((c & 0xc0) != 0x80)
		return WEIR_JSON_BAD;
	j->code = j->code << 6 | (c & 0x3f);
	j->left--;
	if (j->left)
		return WEIR_JSON_MORE;
	if (j->code < j->least || j->code > 0x10ffff || weir_json_is_half(j->code))
		return WEIR_JSON_BAD;
	return weir_json_character(j);
}

WEIR_INLINE enum weir_json_event weir_json_string_byte(struct weir_json *j, __u8 c)
{
	if (c == '"') {
		j->state = j->in_name ? WEIR_JSON_AT_COLON : WEIR_JSON_AT_COMMA;
		return j->in_name ? WEIR_JSON_NAME : WEIR_JSON_STRING_END;
	}
	if (c == '\\') {
		j->state = WEIR_JSON_IN_ESCAPE;
		return WEIR_JSON_MORE;
	}
	if (c < ' ')
		return WEIR_JSON_BAD;
	if (c >= 0x80)
		return weir_json_utf8_start(j, c);
	j->code = c;
	return weir_json_character(j);
}

/* The character that an escape means, by the byte behind the backslash; 0: the escape is invalid. */
WEIR_INLINE __u8 weir_json_escaped(__u8 c)
{
	switch (c) {
	case 'b':
		return '\b';
	case 'f':
		return '\f';
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return c == '"' || c == '\\' || c == '/' ? c : 0;
	}
}

WEIR_INLINE enum weir_json_event weir_json_escape_byte(struct weir_json *j, __u8 c)
{
	if (c == 'u') {
		j->state = WEIR_JSON_IN_HEX;
		j->code = 0;
		j->left = 4;
		return WEIR_JSON_MORE;
	}
	j->code = weir_json_escaped(c);
	return j->code && !j->half ? weir_json_character(j) : WEIR_JSON_BAD;
}

/* Four digits are there: a character, or half of a pair. */
WEIR_INLINE enum weir_json_event weir_json_hex_end(struct weir_json *j)
{
	bool second = j->code >= 0xdc00 && j->code < 0xe000;

	if (second != !!j->half)
		return WEIR_JSON_BAD;
	if (weir_json_is_half(j->code) && !second) {
		j->half = j->code;
		j->state = WEIR_JSON_AT_PAIR;
		return WEIR_JSON_MORE;
	}
	if (second)
		j->code = 0x10000 + ((__u32)(j->half & 0x3ff) << 10 | (j->code & 0x3ff));
	j->half = 0;
	return weir_json_character(j);
}

WEIR_INLINE enum weir_json_event weir_json_hex_byte(struct weir_json *j, __u8 c)
{
	int digit = weir_hex_digit(c);

	if (digit < 0)
		return WEIR_JSON_BAD;
	j->code = j->code << 4 | digit;
	j->left--;
	return j->left ? WEIR_JSON_MORE : weir_json_hex_end(j);
}

/* Outside of strings. */
WEIR_INLINE enum weir_json_event weir_json_structure_byte(struct weir_json *j, __u8 c)
{
	if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
		if (j->state == WEIR_JSON_IN_LITERAL)
			j->state = WEIR_JSON_AT_COMMA;
		return WEIR_JSON_MORE;
	}
	switch (j->state) {
	case WEIR_JSON_AT_NAME:
	case WEIR_JSON_AT_FIRST_NAME:
		return weir_json_name_byte(j, c);
	case WEIR_JSON_AT_COLON:
		j->state = WEIR_JSON_AT_VALUE;
		return c == ':' ? WEIR_JSON_MORE : WEIR_JSON_BAD;
	case WEIR_JSON_IN_LITERAL:
		return weir_json_is_literal(c) ? WEIR_JSON_MORE : weir_json_comma_byte(j, c);
	case WEIR_JSON_AT_COMMA:
		return weir_json_comma_byte(j, c);
	case WEIR_JSON_AT_LAST:
		return WEIR_JSON_BAD;
	default:
		return weir_json_value_byte(j, c);
	}
}

WEIR_INLINE enum weir_json_event weir_json_byte(struct weir_json *j, __u8 c)
{
	switch (j->state) {
	case WEIR_JSON_IN_STRING:
		return weir_json_string_byte(j, c);
	case WEIR_JSON_IN_UTF8:
		return weir_json_utf8_byte(j, c);
	case WEIR_JSON_IN_ESCAPE:
		return weir_json_escape_byte(j, c);
	case WEIR_JSON_IN_HEX:
		return weir_json_hex_byte(j, c);
	case WEIR_JSON_AT_PAIR:
		j->state = WEIR_JSON_IN_ESCAPE;
		return c == '\\' ? WEIR_JSON_MORE : WEIR_JSON_BAD;
	default:
		return weir_json_structure_byte(j, c);
	}
}

#endif
