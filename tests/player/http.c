/* SPDX-License-Identifier: GPL-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"

#define PATTERN 65536

/* Random bytes, with what looks like messages among them. */
static const uint8_t *http_pattern(void)
{
	static const char *const bait[] = {
		"GET /r/0 HTTP/1.1\r\nHost: bait\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"POST /r/1 HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
		"0\r\n\r\n",
	};
	static uint8_t pattern[2 * PATTERN];
	struct random r = { 42 };

	if (pattern[1])
		return pattern;
	for (size_t i = 0; i < PATTERN; i++)
		pattern[i] = random_next(&r) | 1;
	for (size_t i = 0; i + 64 < PATTERN; i += random_between(&r, 40, 400)) {
		const char *text = bait[random_below(&r, sizeof(bait) / sizeof(bait[0]))];

		for (size_t k = 0; text[k]; k++)
			pattern[i + k] = text[k];
	}
	memcpy(pattern + PATTERN, pattern, PATTERN);
	return pattern;
}

static void http_fill(uint8_t *to, struct random *r, size_t length)
{
	const uint8_t *pattern = http_pattern();

	while (length) {
		size_t n = length < PATTERN ? length : PATTERN;

		memcpy(to, pattern + random_below(r, PATTERN), n);
		to += n;
		length -= n;
	}
}

static size_t http_put_chunks(uint8_t *to, struct random *r, size_t length)
{
	uint8_t *at = to;
	size_t n;

	while (length) {
		n = random_between(r, 1, length < 4000 ? length : 4000);
		at += sprintf((char *)at, random_chance(r, 100) ? "%zx;name=value\r\n" : "%zX\r\n", n);
		http_fill(at, r, n);
		at += n;
		length -= n;
		at += sprintf((char *)at, "\r\n");
	}
	return at - to;
}

size_t http_put_body(uint8_t *to, struct random *r, size_t length, bool chunked)
{
	size_t n;

	if (!chunked) {
		http_fill(to, r, length);
		return length;
	}
	n = http_put_chunks(to, r, length);
	return n + sprintf((char *)to + n, random_chance(r, 200) ? "0\r\nTrailer: 1\r\n\r\n" : "0\r\n\r\n");
}

struct bad_text {
	const char *good, *bad;
};

static size_t http_put_bad(uint8_t *to, const struct bad_text *text, uint64_t *bad_at)
{
	*bad_at = strlen(text->good);
	return sprintf((char *)to, "%s%s", text->good, text->bad);
}

size_t http_put_bad_line(uint8_t *to, struct random *r, uint64_t *bad_at)
{
	static const struct bad_text lines[] = {
		{ "X-Bad", " : 1\r\n" },	  { "X-Bad: 1", "\n" },
		{ "X-Bad: 1\r", "X: 2\r\n" },	  { "X-Bad: 1\r\n", "\t2\r\n" },
		{ "Content-Length: ", "+1\r\n" }, { "Content-Length: 0\r\nTransfer-Encoding", ": chunked\r\n" },
	};

	return http_put_bad(to, &lines[random_below(r, sizeof(lines) / sizeof(lines[0]))], bad_at);
}

size_t http_put_bad_chunks(uint8_t *to, struct random *r, size_t length, uint64_t *bad_at)
{
	static const struct bad_text chunks[] = {
		{ "", "\r\n0\r\n\r\n" },
		{ "0\r", " \n\r\n" },
		{ "1\r\nx", "0\r\n\r\n" },
		{ "0\r\nTrailer", " : 1\r\n\r\n" },
	};
	uint8_t *start = to;

	length = http_put_chunks(to, r, length);
	to += length;
	length += http_put_bad(to, &chunks[random_below(r, sizeof(chunks) / sizeof(chunks[0]))], bad_at);
	*bad_at += to - start;
	return length;
}

size_t http_put_filler(uint8_t *to, struct random *r, size_t most)
{
	size_t length = random_below(r, most + 1);
	uint8_t *at = to;

	if (!length)
		return 0;
	at += sprintf((char *)at, "X-Filler: ");
	for (size_t i = 0; i < length; i++)
		*at++ = 'a' + i % 26;
	at += sprintf((char *)at, "\r\n");
	return at - to;
}

/* The value of a field that begins a line of the head, or NULL. */
static const char *http_field(const uint8_t *p, size_t length, const char *name)
{
	const char *found = memmem(p, length, name, strlen(name));

	return found ? found + strlen(name) : NULL;
}

ssize_t http_head(const uint8_t *p, size_t n, struct http_head *head)
{
	const uint8_t *end = memmem(p, n, "\r\n\r\n", 4);
	const char *value;

	if (!end)
		return n > 16384 ? -1 : 0;
	*head = (struct http_head){ .length = end + 4 - p };
	if (head->length > 12 && !memcmp(p, "HTTP/1.1 ", 9)) {
		head->status = strtoul((const char *)p + 9, NULL, 10);
	} else {
		value = http_field(p, head->length, " /r/");
		if (!value)
			return -1;
		head->id = strtoul(value, NULL, 10);
		head->is_head = !memcmp(p, "HEAD ", 5);
	}
	value = http_field(p, head->length, "\r\nContent-Length: ");
	if (value) {
		head->has_length = true;
		head->content_length = strtoul(value, NULL, 10);
	}
	head->chunked = http_field(p, head->length, "\r\nTransfer-Encoding: chunked\r\n");
	head->closes = http_field(p, head->length, "\r\nConnection: close\r\n");
	head->expects = http_field(p, head->length, "\r\nExpect: 100-continue\r\n");
	return head->length;
}

static ssize_t http_chunks(const uint8_t *p, size_t n)
{
	size_t at = 0, size;
	const uint8_t *line;
	char *rest;

	for (;;) {
		line = memmem(p + at, n - at, "\r\n", 2);
		if (!line)
			return -1;
		size = strtoul((const char *)p + at, &rest, 16);
		if (rest == (const char *)p + at)
			return -2;
		if (!size)
			break;
		at = line + 2 - p + size + 2;
		if (at > n)
			return -1;
		if (memcmp(p + at - 2, "\r\n", 2))
			return -2;
	}
	/* The line of the last chunk may be followed by trailers. */
	line = memmem(line, n - (line - p), "\r\n\r\n", 4);
	return line ? line + 4 - p : -1;
}

ssize_t http_body(const uint8_t *p, size_t n, const struct http_head *head)
{
	if (head->chunked)
		return http_chunks(p, n);
	return n < head->content_length ? -1 : (ssize_t)head->content_length;
}
