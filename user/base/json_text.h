/* SPDX-License-Identifier: GPL-2.0 */
/*
 * JSON as a text in one line, as json_dumps(value, JSON_COMPACT) writes it, in a third of the time: values may be very large. And what such
 * texts are put together from, where there is no value.
 */
#ifndef WEIR_USER_BASE_JSON_TEXT_H
#define WEIR_USER_BASE_JSON_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The caller frees it. NULL without memory, or without a value. */
char *json_text(json_t *value);

/* A text that grows. All zero to begin with. */
struct text {
	char *bytes; /* without a NUL behind them */
	size_t used, room;
	bool failed; /* there was no memory for all that was added */
};

void text_clear(struct text *text);
#define CLEANUP_TEXT __attribute__((cleanup(text_clear)))
/* Makes room first. */
void text_add_grown(struct text *text, const char *bytes, size_t size);
/* The words as they are. Most often there is room, and their length is known where this is compiled. */
static inline void text_add(struct text *text, const char *words)
{
	size_t size = strlen(words);

	if (text->failed || text->room - text->used <= size) {
		text_add_grown(text, words, size);
		return;
	}
	memcpy(text->bytes + text->used, words, size);
	text->used += size;
}
/* A string, in quotes. */
void text_add_string(struct text *text, const char *string);
void text_add_number(struct text *text, uint64_t number);
#define TEXT_NUMBER 24 /* room for any number, and a sign */
/* Where the digits begin: at the end of the room, with a NUL behind them. */
char *text_digits(uint64_t number, char room[static TEXT_NUMBER]);
void text_add_value(struct text *text, json_t *value);

#endif
