/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What follows a head: a body of known length, chunks and trailers (RFC 9112, 7.1), or all that comes until the
 * connection closes. Return values as in field.h.
 */
#ifndef WEIR_HTTP_BODY_H
#define WEIR_HTTP_BODY_H

#include "weir/http/byte.h"
#include "weir/http/framing.h"

#define WEIR_CHUNK_DIGITS 15	       /* of a chunk's size: below 2^60 */
#define WEIR_CHUNK_EXTENSION_MAX 1024  /* bytes of one chunk's extensions */
#define WEIR_BODY_ENDLESS (1ULL << 62) /* bytes that may be skipped of a body that ends with the connection */

WEIR_INLINE void weir_chunk_start(struct weir_framing *f)
{
	f->state = WEIR_AT_CHUNK_SIZE;
	f->left = 0;
	f->count = 0;
	f->position = 0;
}

/* After a request's head, or a response's that has a body of known length. */
WEIR_INLINE void weir_body_start(struct weir_framing *f)
{
	if (f->seen & WEIR_SEEN_CHUNKED)
		weir_chunk_start(f);
	else
		f->state = f->left ? WEIR_AT_BODY : WEIR_AT_ENDED;
}

/* Bytes that may be skipped without being looked at. */
WEIR_INLINE __u64 weir_body_skippable(const struct weir_framing *f)
{
	if (f->state == WEIR_AT_BODY || f->state == WEIR_AT_CHUNK)
		return f->left;
	return f->state == WEIR_AT_BODY_TO_CLOSE ? WEIR_BODY_ENDLESS : 0;
}

/* n: at most what may be skipped */
WEIR_INLINE int weir_body_skip(struct weir_framing *f, __u64 n)
{
	if (f->state == WEIR_AT_BODY_TO_CLOSE)
		return WEIR_FRAME_MORE;
	f->left -= n;
	if (f->left)
		return WEIR_FRAME_MORE;
	if (f->state == WEIR_AT_CHUNK) {
		f->state = WEIR_AT_CHUNK_END_CR;
		return WEIR_FRAME_MORE;
	}
	f->state = WEIR_AT_ENDED;
	return WEIR_FRAME_MESSAGE;
}

WEIR_INLINE int weir_chunk_size_byte(struct weir_framing *f, __u8 c)
{
	int digit = weir_hex_digit(c);

	if (digit >= 0) {
		f->left = f->left << 4 | digit;
		f->count++;
		return f->count > WEIR_CHUNK_DIGITS ? -WEIR_BAD_CHUNK : WEIR_FRAME_MORE;
	}
	if (!f->count || (c != '\r' && c != ';'))
		return -WEIR_BAD_CHUNK;
	f->state = c == ';' ? WEIR_AT_CHUNK_EXTENSION : WEIR_AT_CHUNK_LF;
	return WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_chunk_extension_byte(struct weir_framing *f, __u8 c)
{
	if (c == '\r') {
		f->state = WEIR_AT_CHUNK_LF;
		return WEIR_FRAME_MORE;
	}
	f->position++;
	return weir_is_text(c) && f->position <= WEIR_CHUNK_EXTENSION_MAX ? WEIR_FRAME_MORE : -WEIR_BAD_CHUNK;
}

/* The end of a size line: data, or after the last chunk's the trailers. */
WEIR_INLINE int weir_chunk_line_end(struct weir_framing *f, __u8 c)
{
	if (c != '\n')
		return -WEIR_BAD_CHUNK;
	if (f->left) {
		f->state = WEIR_AT_CHUNK;
		return WEIR_FRAME_MORE;
	}
	weir_line_end(f);
	f->seen |= WEIR_SEEN_LAST_CHUNK;
	f->position = 0;
	return WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_chunk_end_byte(struct weir_framing *f, __u8 c)
{
	if (f->state == WEIR_AT_CHUNK_END_CR) {
		f->state = WEIR_AT_CHUNK_END_LF;
		return c == '\r' ? WEIR_FRAME_MORE : -WEIR_BAD_CHUNK;
	}
	weir_chunk_start(f);
	return c == '\n' ? WEIR_FRAME_MORE : -WEIR_BAD_CHUNK;
}

/* One byte of a body; not of its trailers. */
WEIR_INLINE int weir_body_byte(struct weir_framing *f, __u8 c)
{
	switch (f->state) {
	case WEIR_AT_CHUNK_SIZE:
		return weir_chunk_size_byte(f, c);
	case WEIR_AT_CHUNK_EXTENSION:
		return weir_chunk_extension_byte(f, c);
	case WEIR_AT_CHUNK_LF:
		return weir_chunk_line_end(f, c);
	case WEIR_AT_CHUNK_END_CR:
	case WEIR_AT_CHUNK_END_LF:
		return weir_chunk_end_byte(f, c);
	case WEIR_AT_ENDED:
		return -WEIR_MID_STREAM;
	default:
		return weir_body_skip(f, 1);
	}
}

#endif
