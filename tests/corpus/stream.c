/* SPDX-License-Identifier: GPL-2.0 */
#include "stream.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEAT_MAX 1000000

/* Bytes, or with `out` NULL only their number. */
struct writer {
	uint8_t *out;
	size_t length;
};

static void put(struct writer *w, uint8_t byte)
{
	if (w->out)
		w->out[w->length] = byte;
	w->length++;
}

/* Each returns what follows what it has read, or NULL when that was not written right. */
static const char *read_bytes(const char *text, char end, struct writer *w);

static const char *read_hex(const char *text, struct writer *w)
{
	char digits[3] = { 0 }, *rest;
	unsigned long byte;

	memcpy(digits, text, strnlen(text, 2));
	byte = strtoul(digits, &rest, 16);
	if (rest != digits + 2)
		return NULL;
	put(w, byte);
	return text + 2;
}

static const char *read_repeat(const char *text, struct writer *w)
{
	char *inside;
	unsigned long n = strtoul(text, &inside, 10);
	const char *rest = NULL;

	if (!n || n > REPEAT_MAX || *inside++ != '{')
		return NULL;
	while (n--) {
		rest = read_bytes(inside, '}', w);
		if (!rest)
			return NULL;
	}
	return rest + 1;
}

static const char *read_escape(const char *text, struct writer *w)
{
	switch (*text) {
	case 'r':
		put(w, '\r');
		break;
	case 'n':
		put(w, '\n');
		break;
	case 't':
		put(w, '\t');
		break;
	case '\\':
		put(w, '\\');
		break;
	case 'x':
		return read_hex(text + 1, w);
	case '*':
		return read_repeat(text + 1, w);
	default:
		return NULL;
	}
	return text + 1;
}

static const char *read_bytes(const char *text, char end, struct writer *w)
{
	while (text && *text != end) {
		if (*text == '\\') {
			text = read_escape(text + 1, w);
			continue;
		}
		if ((*text < ' ' || *text > '~') && *text != '\n')
			return NULL;
		if (*text != '\n')
			put(w, *text);
		text++;
	}
	return text;
}

static const char *line_end(const char *text)
{
	const char *end = strchr(text, '\n');

	return end ? end + 1 : text + strlen(text);
}

bool stream_parse(struct stream *s, const char *text)
{
	struct writer w = { 0 };
	size_t expected = 0;

	s->expected = calloc(1, strlen(text) + 1);
	for (; *text == '#' || *text == '='; text = line_end(text)) {
		size_t length = line_end(text) - text;

		if (length < 4 || text[1] != ' ')
			return false;
		if (*text == '#')
			continue;
		memcpy(s->expected + expected, text + 2, length - 2);
		expected += length - 2;
	}
	if (!read_bytes(text, '\0', &w))
		return false;
	s->length = w.length;
	s->bytes = malloc(w.length ? w.length : 1);
	w = (struct writer){ .out = s->bytes };
	read_bytes(text, '\0', &w);
	return true;
}

static char *file_read(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = NULL;
	size_t size = 0;

	if (!file || getdelim(&text, &size, '\0', file) < 0) {
		perror(path);
		abort();
	}
	fclose(file);
	return text;
}

void stream_load(struct stream *s, const char *path)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	char *text = file_read(path);

	*s = (struct stream){ .length = 0 };
	snprintf(s->name, sizeof(s->name), "%.*s", (int)(strlen(file) - strlen(STREAM_SUFFIX)), file);
	if (!stream_parse(s, text)) {
		fprintf(stderr, "%s is not written as tests/corpus/stream.h says\n", path);
		abort();
	}
	free(text);
}

void stream_free(struct stream *s)
{
	free(s->expected);
	free(s->bytes);
}

static int is_stream(const struct dirent *entry)
{
	const char *suffix = strrchr(entry->d_name, '.');

	return suffix && suffix != entry->d_name && !strcmp(suffix, STREAM_SUFFIX);
}

size_t streams_load(struct stream **streams, const char *directory)
{
	struct dirent **entries;
	int count = scandir(directory, &entries, is_stream, alphasort);
	char path[4096];

	if (count < 0) {
		perror(directory);
		abort();
	}
	*streams = calloc(count ? count : 1, sizeof(**streams));
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, entries[i]->d_name);
		stream_load(&(*streams)[i], path);
		free(entries[i]);
	}
	free(entries);
	return count;
}
