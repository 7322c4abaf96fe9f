/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A second reader of requests, for comparison, that works in another way than the machine: it waits for the whole head
 * and takes it apart with regular expressions and string functions.
 */
#ifndef WEIR_TESTS_REQUEST_READER_H
#define WEIR_TESTS_REQUEST_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define STREAM_MAX 2048 /* bytes of any stream to be read */

enum request_verdict {
	INCOMPLETE,
	GOOD,
	BAD,
};

struct request_reading {
	enum request_verdict head, body;
	size_t head_length, length; /* of the message; valid with GOOD */
	char method[32];
	bool http10, chunked, has_length, user_repeated, health;
	bool close, keep_alive, upgrade_option, upgrade, expect;
	unsigned long long content_length;
	char namespace[STREAM_MAX];
	char user[STREAM_MAX];
};

/* cmocka's set-up and tear-down: the regular expressions. */
int request_reader_start(void **state);
int request_reader_stop(void **state);

/* The bytes of a path, decoded; they may be NUL. -1: not encoded right */
ssize_t request_reader_decode(const char *path, size_t length, char *decoded);

void request_reader_read(struct request_reading *r, const char *stream, size_t size);

#endif
