/* SPDX-License-Identifier: GPL-2.0 */
/* What the lying client of fuzz_segments.c says: three streams that differ, each with a preamble before it or without. */
#ifndef WEIR_TESTS_SEGMENTS_STORIES_H
#define WEIR_TESTS_SEGMENTS_STORIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define STREAM 4096

/* The requests of three streams, which agree in some places and not in others. */
static const char *const requests[3][6] = {
	{ "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
	  "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n0123456789012345678901234567890123456789",
	  "GET /c HTTP/1.1\r\nHost: a\r\n\r\n",
	  "POST /d HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nabcdefghijklmnopabcdefghijklmnop\r\n0\r\n\r\n",
	  "HEAD /e HTTP/1.1\r\nHost: a\r\n\r\n", "GET /f HTTP/1.1\r\nHost: a\r\n\r\n" },
	{ "GET /x HTTP/1.1\r\nHost: a\r\n\r\n", "GET /y HTTP/1.1\r\nHost: b\r\n\r\n",
	  "POST /z HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\n\r\n", "GET /u HTTP/1.1\r\nHost: bb\r\n\r\n",
	  "GET /v HTTP/1.1\r\nHost: bb\r\n\r\n", "GET /w HTTP/1.1\r\nHost: b\r\n\r\n" },
	{ "POST /p HTTP/1.1\r\nContent-Length: 100000\r\nHost: a\r\n\r\n", "GET /q HTTP/1.1\r\nHost: a\r\n\r\n",
	  "GET /r HTTP/1.1\r\nHost: a\r\n\r\n",
	  "POST /s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n",
	  "GET /t HTTP/1.1\r\nHost: a\r\n\r\n", "GET /o HTTP/1.1\r\nHost: a\r\n\r\n" },
};

#define PREAMBLE(text)                 \
	{                              \
		text, sizeof(text) - 1 \
	}

static const struct {
	const char *text;
	size_t length;
} preambles[3] = {
	PREAMBLE("PROXY TCP4 192.0.2.1 192.0.2.9 1 80\r\n"),
	PREAMBLE("PROXY TCP4 192.0.2.2 192.0.2.9 1 80\r\n"),
	PREAMBLE("\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x10\xc0\0\x02\x03\xc0\0\x02\x09\0\x01\0\x50more"),
};

static uint8_t stories[3][STREAM];

static void tell_stories(bool introduced)
{
	for (int s = 0; s < 3; s++) {
		size_t before = introduced ? preambles[s].length : 0;

		memcpy(stories[s], preambles[s].text, before);
		for (size_t at = before, i = 0; at < STREAM; i++) {
			size_t n = strlen(requests[s][i % 6]);

			n = n < STREAM - at ? n : STREAM - at;
			memcpy(stories[s] + at, requests[s][i % 6], n);
			at += n;
		}
	}
}

#endif
