/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Streams of requests and what the machine makes of them, written as one line of text each: `head` and `end` with the
 * offset behind their last byte, `lost` with the reason and the offset of the byte that did it, `more` when the stream
 * stops inside a message.
 */
#ifndef WEIR_TESTS_REQUEST_TRACE_H
#define WEIR_TESTS_REQUEST_TRACE_H

#include "weir/http/attributes.h"
#include "weir/http/request.h"

#include <stddef.h>

#include "../../array_size.h"

#define END "\r\n\r\n"
#define V11 " HTTP/1.1" END
#define G "GET / HTTP/1.1\r\n"
#define P "POST / HTTP/1.1\r\n"

/* The defaults. */
extern struct weir_reading request_reading;

struct request_example {
	const char *stream;
	const char *trace;
	const char *name; /* the namespace or user that must have been hashed, decoded; NULL: none */
};

/* The subject that a whole name should have, under request_reading. */
__u64 request_subject(__u8 kind, const char *name, size_t length);

/* The subject of its namespace; 0: none. */
__u64 request_namespace(const struct weir_request *r);

/* Feeds a stream in every way, which must not make a difference. last: what the latest head said. */
void request_check(const char *stream, size_t length, const char *expected, struct weir_request *last);

/* kind: of the names (enum weir_name_kind) */
void request_check_examples(const struct request_example *examples, size_t count, __u8 kind);

/* The stream is `length` times `c` between two texts. */
void request_check_long(const char *before, char c, size_t length, const char *after, const char *expected,
			struct weir_request *last);

#endif
