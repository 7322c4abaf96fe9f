/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One HTTP/1.1 request in a stream (RFC 9112), a byte at a time: where it ends, and whose it is. The machine is a plain
 * struct that may be copied between any two bytes.
 *
 *   weir_request_start(r)            before a request's first byte
 *   weir_request_byte(r, how, c)     until WEIR_FRAME_HEAD; again until WEIR_FRAME_MESSAGE unless weir_request_ended(r)
 *
 * Bytes of bodies may be skipped instead. A byte that follows the end without a new start is lost (MID_STREAM).
 *
 * The user is the value of the header that `how` names, or the first one's where there are several. It and the
 * segments of the path (path.h), which `how` says how to cut, may have any length that fits a head.
 */
#ifndef WEIR_REQUEST_H
#define WEIR_REQUEST_H

#include "abi.h"
#include "body.h"
#include "field.h"
#include "frame.h"
#include "request_line.h"
#include "run.h"
#include "subject.h"
#include "types.h"

WEIR_INLINE void weir_request_start(struct weir_request *r)
{
	__builtin_memset(r, 0, sizeof(*r));
	r->framing.state = WEIR_AT_START;
}

/* Nothing of the request has come yet. */
WEIR_INLINE bool weir_request_fresh(const struct weir_request *r)
{
	return r->framing.state == WEIR_AT_START && !r->framing.position;
}

/* Have two machines read the same, as far as it matters? */
WEIR_INLINE bool weir_request_same(const struct weir_request *a, const struct weir_request *b)
{
	const __u8 *one = (const __u8 *)a, *other = (const __u8 *)b;
	__u64 differ = 0, x, y;

	for (__u32 i = 0; i + 8 <= sizeof(*a); i += 8) {
		__builtin_memcpy(&x, one + i, 8);
		__builtin_memcpy(&y, other + i, 8);
		differ |= x ^ y;
	}
	return !differ;
}

/* A head has begun and not ended. */
WEIR_INLINE bool weir_request_in_head(const struct weir_request *r)
{
	return !weir_request_fresh(r) && !r->head_length && r->framing.state != WEIR_AT_ENDED &&
	       r->framing.state != WEIR_AT_LOST;
}

/* A head has ended, and its body has not. */
WEIR_INLINE bool weir_request_in_body(const struct weir_request *r)
{
	return r->head_length && r->framing.state != WEIR_AT_ENDED && r->framing.state != WEIR_AT_LOST;
}

WEIR_INLINE bool weir_request_ended(const struct weir_request *r)
{
	return r->framing.state == WEIR_AT_ENDED;
}

/* Bytes that may be skipped now without being looked at: of a body, or of a chunk. */
WEIR_INLINE __u64 weir_request_skippable(const struct weir_request *r)
{
	return weir_body_skippable(&r->framing);
}

/* n: at most weir_request_skippable() */
WEIR_INLINE enum weir_frame_event weir_request_skip(struct weir_request *r, __u64 n)
{
	return (enum weir_frame_event)weir_body_skip(&r->framing, n);
}

/* Takes what it can of the next eight bytes at once (run.h), none of which ends anything. */
WEIR_INLINE __u32 weir_request_take(struct weir_request *r, __u64 word)
{
	struct weir_framing *f = &r->framing;
	__u32 n;

	if (f->state < WEIR_AT_PATH || f->state > WEIR_AT_TARGET_REST)
		return weir_framing_take(f, word);
	if (f->position > WEIR_HEAD_MAX - 8)
		return 0;
	n = weir_request_target_take(r, word);
	f->position += n;
	return n;
}

/* The colon of X-Remote-User. */
WEIR_INLINE int weir_request_user_start(struct weir_request *r)
{
	struct weir_framing *f = &r->framing;

	f->state = WEIR_AT_USER;
	weir_token_start(f);
	if (f->seen & WEIR_SEEN_USER) {
		f->state = WEIR_AT_VALUE;
		r->flags |= WEIR_REQUEST_USER_REPEATED;
	}
	f->seen |= WEIR_SEEN_USER;
	return WEIR_FRAME_MORE;
}

/* The name is taken to end at every byte of white space after a visible one: no other byte may follow. */
WEIR_INLINE void weir_request_user_pause(struct weir_request *r, struct weir_name_steps *name)
{
	if (!r->framing.count || r->framing.gap)
		return;
	r->framing.gap = 1;
	r->flags |= WEIR_REQUEST_USER;
	r->user_length = r->framing.position - 1 - r->user_offset;
	name->steps = WEIR_STEP_END;
}

WEIR_INLINE int weir_request_user_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;

	name->kind = WEIR_NAME_USER;
	name->byte = c;
	if (c == '\r') {
		weir_request_user_pause(r, name);
		f->state = WEIR_AT_LINE_LF;
		return WEIR_FRAME_MORE;
	}
	if (!weir_is_text(c))
		return weir_bad_byte(c, WEIR_BAD_HEADER);
	if (weir_is_blank(c)) {
		weir_request_user_pause(r, name);
	} else {
		f->gap = 0;
		if (!f->count) {
			f->count = 1;
			r->user_offset = f->position - 1;
			name->steps = WEIR_STEP_START;
		}
	}
	if (f->count)
		name->steps |= WEIR_STEP_BYTE;
	return WEIR_FRAME_MORE;
}

WEIR_INLINE bool weir_request_at_user(const struct weir_request *r, const struct weir_reading *how, __u8 c)
{
	const struct weir_framing *f = &r->framing;

	return c == ':' && f->state == WEIR_AT_NAME && !(f->seen & WEIR_SEEN_LAST_CHUNK) &&
	       weir_token_is_word(f, &how->user_header);
}

/* One byte of the head, the body or the trailers; WEIR_FRAME_HEAD also at the trailers' end. */
WEIR_INLINE int weir_request_any_byte(struct weir_request *r, const struct weir_reading *how, __u8 c,
				      struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;

	if (f->state >= WEIR_AT_BODY && f->state < WEIR_AT_OWN)
		return weir_body_byte(f, c);
	if (f->position++ >= WEIR_HEAD_MAX)
		return -WEIR_HEAD_TOO_LONG;
	if (weir_request_at_user(r, how, c))
		return weir_request_user_start(r);
	if (f->state == WEIR_AT_USER)
		return weir_request_user_byte(r, c, name);
	return f->state < WEIR_AT_OWN ? weir_field_byte(f, c) : weir_request_line_byte(r, how, c, name);
}

WEIR_INLINE void weir_request_name(struct weir_request *r, const __u64 seed[2], const struct weir_name_steps *name)
{
	if (name->steps & WEIR_STEP_END) {
		if (name->kind == WEIR_NAME_USER)
			r->user_subject = weir_subject_end(&r->hash);
		else
			weir_path_keep(&r->path, name->segment, &r->hash, name->end);
	}
	if (name->steps & WEIR_STEP_START) {
		r->path.start = r->framing.position;
		weir_subject_start(&r->hash, seed, name->kind);
	}
	if (name->steps & WEIR_STEP_BYTE)
		weir_subject_byte(&r->hash, name->byte);
}

WEIR_INLINE __u16 weir_request_seen_flags(const struct weir_framing *f)
{
	__u16 upgrade = WEIR_SEEN_UPGRADE | WEIR_SEEN_UPGRADE_OPTION;
	__u16 flags = 0;

	if (f->seen & WEIR_SEEN_HTTP10)
		flags |= WEIR_REQUEST_HTTP10;
	if (f->seen & WEIR_SEEN_LENGTH)
		flags |= WEIR_REQUEST_HAS_LENGTH;
	if (f->seen & WEIR_SEEN_CHUNKED)
		flags |= WEIR_REQUEST_CHUNKED;
	if (f->seen & WEIR_SEEN_EXPECT)
		flags |= WEIR_REQUEST_EXPECT;
	if ((f->seen & upgrade) == upgrade)
		flags |= WEIR_REQUEST_UPGRADE;
	if (weir_asked_to_close(f))
		flags |= WEIR_REQUEST_CLOSE;
	return flags;
}

/* The empty line after the head, or after trailers. */
WEIR_INLINE enum weir_frame_event weir_request_fields_end(struct weir_request *r)
{
	struct weir_framing *f = &r->framing;

	if (f->seen & WEIR_SEEN_LAST_CHUNK) {
		f->state = WEIR_AT_ENDED;
		return WEIR_FRAME_MESSAGE;
	}
	r->head_length = f->position;
	r->content_length = f->left;
	r->flags |= weir_request_seen_flags(f);
	if (weir_path_is_health(&r->path))
		r->flags |= WEIR_REQUEST_HEALTH;
	weir_body_start(f);
	return WEIR_FRAME_HEAD;
}

WEIR_INLINE enum weir_frame_event weir_request_lose(struct weir_request *r, __u8 reason)
{
	r->lost = r->framing.seen & WEIR_SEEN_LAST_CHUNK ? WEIR_BAD_CHUNK : reason;
	r->framing.state = WEIR_AT_LOST;
	return WEIR_FRAME_LOST;
}

WEIR_INLINE enum weir_frame_event weir_request_byte(struct weir_request *r, const struct weir_reading *how, __u8 c)
{
	struct weir_name_steps name = { .kind = WEIR_NAME_NAMESPACE };
	int outcome;

	if (weir_field_skims(&r->framing, c))
		return WEIR_FRAME_MORE;
	if (r->framing.state == WEIR_AT_LOST)
		return WEIR_FRAME_LOST;
	outcome = weir_request_any_byte(r, how, c, &name);
	if (name.steps)
		weir_request_name(r, how->seed, &name);
	if (outcome == WEIR_FRAME_HEAD)
		return weir_request_fields_end(r);
	return outcome < 0 ? weir_request_lose(r, -outcome) : (enum weir_frame_event)outcome;
}

#endif
