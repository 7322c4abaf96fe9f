/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The byte streams in tests/corpus/streams, one in a file of text:
 *
 *   # What it is.
 *   = GET /a                   a request that weir reads: method, target, and bytes of body if there are any
 *   = POST /b 5
 *   = lost bare_lf             how it ends: cannot be read further (enum weir_reason), or
 *   = more                     in the middle of a message; neither line: at a message's end
 *   GET /a HTTP/1.1\r\n
 *   ...
 *
 * Everything behind the first lines is the stream. Line ends are for the eye; every other byte stands for itself, but for
 * \r \n \t \\ \xHH and \*N{...}, which is N times what is in the braces. Adding a stream is adding a file.
 */
#ifndef CORPUS_STREAM_H
#define CORPUS_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_SUFFIX ".stream"

struct stream {
	char name[64];	/* the file's, without the suffix */
	char *expected; /* what stands behind each `= `, and a line end */
	uint8_t *bytes;
	size_t length;
};

/* The stream in a file's text. false: it is not written as above. */
bool stream_parse(struct stream *s, const char *text);

/* Aborts, and says why, when the file cannot be read as a stream. */
void stream_load(struct stream *s, const char *path);
void stream_free(struct stream *s);

/* All streams of a directory, by name; stream_free() each, and free() the array. */
size_t streams_load(struct stream **streams, const char *directory);

#endif
