/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One HTTP/1.1 response in a stream (RFC 9112), a byte at a time: where it ends. Interim responses before it (1xx but
 * 101) are heads of their own, WEIR_FRAME_HEAD with WEIR_RESPONSE_INTERIM; the machine goes on with what follows them.
 *
 *   weir_response_start(r)               before a response's first byte
 *   weir_response_byte(r, request, c)    until WEIR_FRAME_HEAD of the final response; again until WEIR_FRAME_MESSAGE
 *                                        unless weir_response_ended(r)
 *
 * request: the method (enum weir_method) of the request it answers. Whatever is not strictly right is lost as
 * BAD_RESPONSE; what turns the connection into something else (101, a CONNECT that succeeded) as UPGRADE.
 */
#ifndef WEIR_HTTP_RESPONSE_H
#define WEIR_HTTP_RESPONSE_H

#include "weir/base/frame.h"
#include "weir/base/types.h"
#include "weir/http/body.h"
#include "weir/http/field.h"
#include "weir/http/run.h"

enum weir_response_state {
	WEIR_AT_RESPONSE_VERSION = WEIR_AT_OWN,
	WEIR_AT_STATUS,
};

/* Final at WEIR_FRAME_HEAD. */
enum weir_response_flags {
	WEIR_RESPONSE_HTTP10 = 1 << 0,
	WEIR_RESPONSE_CLOSE = 1 << 1, /* Connection: close, or HTTP/1.0 without keep-alive */
	WEIR_RESPONSE_CHUNKED = 1 << 2,
	WEIR_RESPONSE_HAS_LENGTH = 1 << 3,
	WEIR_RESPONSE_INTERIM = 1 << 4,
	WEIR_RESPONSE_UNTIL_CLOSE = 1 << 5, /* the body ends with the connection */
};

/* What follows `framing` is that of the latest head. */
struct weir_response {
	struct weir_framing framing;
	__u64 content_length; /* 0 without WEIR_RESPONSE_HAS_LENGTH; tells no body's length after HEAD, 204, 304 */
	__u32 head_length;    /* of this head alone */
	__u16 status;
	__u8 flags; /* enum weir_response_flags */
	__u8 lost;  /* enum weir_reason, after WEIR_FRAME_LOST */
};
WEIR_ASSERT_SIZE(struct weir_response, 64);

WEIR_INLINE void weir_response_start(struct weir_response *r)
{
	__builtin_memset(r, 0, sizeof(*r));
	r->framing.state = WEIR_AT_RESPONSE_VERSION;
}

/* Nothing of the final response has come yet. */
WEIR_INLINE bool weir_response_fresh(const struct weir_response *r)
{
	return r->framing.state == WEIR_AT_RESPONSE_VERSION && !r->framing.position;
}

WEIR_INLINE bool weir_response_ended(const struct weir_response *r)
{
	return r->framing.state == WEIR_AT_ENDED;
}

/* Bytes that may be skipped now without being looked at: of a body, or of a chunk. */
WEIR_INLINE __u64 weir_response_skippable(const struct weir_response *r)
{
	return weir_body_skippable(&r->framing);
}

/* n: at most weir_response_skippable() */
WEIR_INLINE enum weir_frame_event weir_response_skip(struct weir_response *r, __u64 n)
{
	return (enum weir_frame_event)weir_body_skip(&r->framing, n);
}

/* The status that begins the word, of three digits and the space behind them; 0: it does not. */
WEIR_INLINE __u16 weir_response_status_of(__u64 word)
{
	__u8 first = word, second = word >> 8, third = word >> 16;

	if (!weir_is_digit(first) || first == '0' || !weir_is_digit(second) || !weir_is_digit(third) ||
	    (word >> 24 & 0xff) != ' ')
		return 0;
	return (first - '0') * 100 + (second - '0') * 10 + (third - '0');
}

/* As feeding: "HTTP/1.1", or the space behind it and a status. */
WEIR_INLINE __u32 weir_response_line_take(struct weir_response *r, __u64 word)
{
	struct weir_framing *f = &r->framing;
	__u16 status;

	if (word == WEIR_RUN_HTTP11 && !f->count) {
		weir_token_bytes(f, word, 8);
		return 8;
	}
	status = weir_response_status_of(weir_run_behind(word, 1));
	if (weir_run_first(word) != ' ' || !status || !WEIR_TOKEN_IS(f, "HTTP/1.1"))
		return 0;
	r->status = status;
	f->state = WEIR_AT_VALUE;
	return 5;
}

/* Takes what it can of the next eight bytes at once (run.h), none of which ends anything. */
WEIR_INLINE __u32 weir_response_take(struct weir_response *r, __u64 word)
{
	struct weir_framing *f = &r->framing;
	__u32 n;

	if (f->state != WEIR_AT_RESPONSE_VERSION)
		return weir_framing_take(f, word);
	n = f->position > WEIR_HEAD_MAX - 8 ? 0 : weir_response_line_take(r, word);
	f->position += n;
	return n;
}

WEIR_INLINE int weir_response_version_byte(struct weir_response *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (c == ' ') {
		f->state = WEIR_AT_STATUS;
		r->status = 0;
		return weir_version_end(f);
	}
	weir_token_byte(f, c);
	return f->count <= 8 ? WEIR_FRAME_MORE : -WEIR_BAD_RESPONSE;
}

/* Three digits and a space: a status has its third digit when it is 100 or more. */
WEIR_INLINE int weir_response_status_byte(struct weir_response *r, __u8 c)
{
	if (r->status >= 100) {
		r->framing.state = WEIR_AT_VALUE; /* the phrase is text that nobody reads */
		return c == ' ' ? WEIR_FRAME_MORE : -WEIR_BAD_RESPONSE;
	}
	if (!weir_is_digit(c) || (c == '0' && !r->status))
		return -WEIR_BAD_RESPONSE;
	r->status = r->status * 10 + (c - '0');
	return WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_response_line_byte(struct weir_response *r, __u8 c)
{
	return r->framing.state == WEIR_AT_STATUS ? weir_response_status_byte(r, c) : weir_response_version_byte(r, c);
}

/* One byte of the head, the body or the trailers; WEIR_FRAME_HEAD also at the trailers' end. */
WEIR_INLINE int weir_response_any_byte(struct weir_response *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (f->state >= WEIR_AT_BODY && f->state < WEIR_AT_OWN)
		return weir_body_byte(f, c);
	if (f->position++ >= WEIR_HEAD_MAX)
		return -WEIR_BAD_RESPONSE;
	return f->state < WEIR_AT_OWN ? weir_field_byte(f, c) : weir_response_line_byte(r, c);
}

WEIR_INLINE __u8 weir_response_seen_flags(const struct weir_framing *f)
{
	__u8 flags = 0;

	if (f->seen & WEIR_SEEN_HTTP10)
		flags |= WEIR_RESPONSE_HTTP10;
	if (f->seen & WEIR_SEEN_LENGTH)
		flags |= WEIR_RESPONSE_HAS_LENGTH;
	if (f->seen & WEIR_SEEN_CHUNKED)
		flags |= WEIR_RESPONSE_CHUNKED;
	if (weir_asked_to_close(f))
		flags |= WEIR_RESPONSE_CLOSE;
	return flags;
}

/* RFC 9112, 6.3 */
WEIR_INLINE void weir_response_body_start(struct weir_response *r, __u8 request)
{
	struct weir_framing *f = &r->framing;

	if (request == WEIR_METHOD_HEAD || r->status == 204 || r->status == 304) {
		f->state = WEIR_AT_ENDED;
	} else if (f->seen & (WEIR_SEEN_LENGTH | WEIR_SEEN_CHUNKED)) {
		weir_body_start(f);
	} else {
		f->state = WEIR_AT_BODY_TO_CLOSE;
		r->flags |= WEIR_RESPONSE_UNTIL_CLOSE;
	}
}

WEIR_INLINE enum weir_frame_event weir_response_lose(struct weir_response *r, __u8 reason)
{
	r->lost = reason;
	r->framing.state = WEIR_AT_LOST;
	return WEIR_FRAME_LOST;
}

/* The empty line after a head, or after trailers. */
WEIR_INLINE enum weir_frame_event weir_response_fields_end(struct weir_response *r, __u8 request)
{
	struct weir_framing *f = &r->framing;

	if (f->seen & WEIR_SEEN_LAST_CHUNK) {
		f->state = WEIR_AT_ENDED;
		return WEIR_FRAME_MESSAGE;
	}
	if (r->status == 101 || (request == WEIR_METHOD_CONNECT && r->status / 100 == 2))
		return weir_response_lose(r, WEIR_UPGRADE);
	r->head_length = f->position;
	r->content_length = f->left;
	r->flags = weir_response_seen_flags(f);
	if (r->status >= 200) {
		weir_response_body_start(r, request);
		return WEIR_FRAME_HEAD;
	}
	r->flags |= WEIR_RESPONSE_INTERIM;
	__builtin_memset(f, 0, sizeof(*f));
	f->state = WEIR_AT_RESPONSE_VERSION;
	return WEIR_FRAME_HEAD;
}

WEIR_INLINE enum weir_frame_event weir_response_byte(struct weir_response *r, __u8 request, __u8 c)
{
	int outcome;

	if (weir_field_skims(&r->framing, c))
		return WEIR_FRAME_MORE;
	if (r->framing.state == WEIR_AT_LOST)
		return WEIR_FRAME_LOST;
	outcome = weir_response_any_byte(r, c);
	if (outcome == WEIR_FRAME_HEAD)
		return weir_response_fields_end(r, request);
	return outcome < 0 ? weir_response_lose(r, WEIR_BAD_RESPONSE) : (enum weir_frame_event)outcome;
}

#endif
