/* SPDX-License-Identifier: GPL-2.0 */
/* What both applications know of HTTP/1.1: enough to write messages and to find their ends, and no more. */
#ifndef PLAYER_HTTP_H
#define PLAYER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../random.h"

/* One request and what became of it. Offsets are of bytes in the streams of the client and of the server, from 0. */
struct exchange {
	uint64_t start, length, head_length;
	bool is_head, expects, closes; /* HEAD; Expect: 100-continue; Connection: close */

	bool ambiguous; /* from the byte bad_at of the request on: the server must not get it */
	uint64_t bad_at;

	bool shed, shed_closes; /* by weir, with the text below */
	bool rejected;		/* likewise; without a text when the server's own answer had begun */
	const uint8_t *refusal;
	uint64_t refusal_length;
	uint64_t refusal_after; /* that many bytes of the server's, interim answers */

	bool served; /* the server has begun to answer */
	uint64_t response_start, response_length;

	bool answered; /* the client has its answer */
};

struct http_head {
	size_t length;
	unsigned int status; /* of a response */
	uint64_t content_length;
	bool has_length, chunked, closes, expects, is_head;
	unsigned int id;
};

/* The head at p: its length, 0 when it has not come whole, -1 when it is none. */
ssize_t http_head(const uint8_t *p, size_t n, struct http_head *head);
/* What follows a head, as far as it has come: its length, -1 when it has not come whole, -2 when it is wrong. */
ssize_t http_body(const uint8_t *p, size_t n, const struct http_head *head);

/* Each writes at `to` and returns the bytes written. */
size_t http_put_body(uint8_t *to, struct random *r, size_t length, bool chunked);
/* A header line, or chunks, that nobody is to accept: from the offset *bad_at of what was written on. */
size_t http_put_bad_line(uint8_t *to, struct random *r, uint64_t *bad_at);
size_t http_put_bad_chunks(uint8_t *to, struct random *r, size_t length, uint64_t *bad_at);
size_t http_put_filler(uint8_t *to, struct random *r, size_t most);

#endif
