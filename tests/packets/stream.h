/* SPDX-License-Identifier: GPL-2.0 */
/* What a client sends, and what it shows in the same place to mislead. */
#ifndef WEIR_TESTS_PACKETS_STREAM_H
#define WEIR_TESTS_PACKETS_STREAM_H

#include "../random.h"

#include <stddef.h>

#define STREAM_BYTES 8192
#define STREAM_REQUESTS 64
#define USER_BYTES 32

struct stream {
	uint8_t bytes[STREAM_BYTES];
	size_t length;
	size_t end[STREAM_REQUESTS]; /* of each request */
	int requests;
};

/* Requests of this user, one behind the other. Whatever a server makes of them it logs the user. */
void stream_requests(struct stream *stream, struct random *random, const char *user);

/* Other bytes for the place of `real`, of the same length. */
void stream_decoy(struct stream *decoy, const struct stream *real, struct random *random, const char *user);

/* The end of the first request that ends behind `offset`. */
size_t stream_request_end(const struct stream *stream, size_t offset);

#endif
