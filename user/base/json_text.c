/* SPDX-License-Identifier: GPL-2.0 */
#include "base/json_text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define ESCAPED 7 /* "\u001F", and the NUL that is written behind it */

void text_clear(struct text *text)
{
	free(text->bytes);
	*text = (struct text){ 0 };
}

/* Room for so many bytes more; NULL: there is none. */
static char *make_room(struct text *text, size_t size)
{
	size_t room = text->room ?: 256;
	char *grown;

	if (text->failed)
		return NULL;
	while (room - text->used < size)
		room *= 2;
	if (room > text->room) {
		grown = realloc(text->bytes, room);
		text->failed = !grown;
		if (!grown)
			return NULL;
		text->bytes = grown;
		text->room = room;
	}
	return text->bytes + text->used;
}

void text_add_grown(struct text *text, const char *bytes, size_t size)
{
	char *room = make_room(text, size);

	if (!room)
		return;
	memcpy(room, bytes, size);
	text->used += size;
}

static void add_char(struct text *text, char c)
{
	text_add_grown(text, &c, 1);
}

static char *escape(char *out, unsigned char c)
{
	static const char short_ones[256] = {
		['"'] = '"', ['\\'] = '\\', ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'
	};

	if (!short_ones[c])
		return out + sprintf(out, "\\u%04X", c);
	*out++ = '\\';
	*out++ = short_ones[c];
	return out;
}

static void add_string(struct text *text, const char *string, size_t length)
{
	char *begin = make_room(text, ESCAPED * length + 2), *out = begin;

	if (!begin)
		return;
	*out++ = '"';
	for (size_t i = 0; i < length; i++) {
		unsigned char c = string[i];

		if (__builtin_expect(c < ' ' || c == '"' || c == '\\', false))
			out = escape(out, c);
		else
			*out++ = c;
	}
	*out++ = '"';
	text->used += out - begin;
}

void text_add_string(struct text *text, const char *string)
{
	add_string(text, string, strlen(string));
}

char *text_digits(uint64_t number, char room[static TEXT_NUMBER])
{
	char *digit = &room[TEXT_NUMBER - 1];

	*digit = '\0';
	do
		*--digit = '0' + number % 10;
	while (number /= 10);
	return digit;
}

void text_add_number(struct text *text, uint64_t number)
{
	char digits[TEXT_NUMBER], *digit = text_digits(number, digits);

	text_add_grown(text, digit, &digits[TEXT_NUMBER - 1] - digit);
}

static void add_integer(struct text *text, json_int_t value)
{
	if (value < 0)
		add_char(text, '-');
	text_add_number(text, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

static void add_real(struct text *text, json_t *value)
{
	CLEANUP_FREE char *real = json_dumps(value, JSON_ENCODE_ANY);

	if (real)
		text_add_grown(text, real, strlen(real));
	else
		text->failed = true;
}

static void add_object(struct text *text, json_t *object)
{
	const char *key;
	json_t *value;
	const char *before = "{";

	json_object_foreach (object, key, value) {
		text_add(text, before);
		add_string(text, key, strlen(key));
		add_char(text, ':');
		text_add_value(text, value);
		before = ",";
	}
	text_add(text, *before == '{' ? "{}" : "}");
}

static void add_array(struct text *text, json_t *array)
{
	json_t *value;
	size_t i;

	add_char(text, '[');
	json_array_foreach (array, i, value) {
		if (i)
			add_char(text, ',');
		text_add_value(text, value);
	}
	add_char(text, ']');
}

void text_add_value(struct text *text, json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		add_object(text, value);
		break;
	case JSON_ARRAY:
		add_array(text, value);
		break;
	case JSON_STRING:
		add_string(text, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		add_integer(text, json_integer_value(value));
		break;
	case JSON_REAL:
		add_real(text, value);
		break;
	case JSON_TRUE:
		text_add_grown(text, "true", 4);
		break;
	case JSON_FALSE:
		text_add_grown(text, "false", 5);
		break;
	case JSON_NULL:
		text_add_grown(text, "null", 4);
		break;
	}
}

char *json_text(json_t *value)
{
	struct text text = { 0 };

	if (!value)
		return NULL;
	text_add_value(&text, value);
	text_add_grown(&text, "", 1);
	if (!text.failed)
		return text.bytes;
	free(text.bytes);
	return NULL;
}
