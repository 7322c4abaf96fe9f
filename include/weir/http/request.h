/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One HTTP/1.1 request in a stream (RFC 9112), a byte at a time: where it ends, and whose it is. The machine is a plain
 * struct that may be copied between any two bytes.
 *
 *   weir_request_start(r)            before a request's first byte
 *   weir_request_byte(r, how, c)     until WEIR_FRAME_HEAD; again until WEIR_FRAME_MESSAGE unless weir_request_ended(r)
 *
 * WEIR_FRAME_GROUP comes in between where a group's name has ended, whose subject is in group_subject: who knows the group
 * adds it to `groups`. Bytes of bodies may be skipped instead. A byte that follows the end without a new start is lost
 * (MID_STREAM).
 *
 * User, groups and token come from the headers that `how` names (request_header.h), the namespace from another or from the
 * path, which `how` says how to cut into segments (path.h). All may have any length that fits a head.
 */
#ifndef WEIR_HTTP_REQUEST_H
#define WEIR_HTTP_REQUEST_H

#include "weir/abi/abi.h"
#include "weir/base/frame.h"
#include "weir/base/subject.h"
#include "weir/base/types.h"
#include "weir/http/body.h"
#include "weir/http/digest.h"
#include "weir/http/field.h"
#include "weir/http/request_header.h"
#include "weir/http/request_line.h"
#include "weir/http/run.h"
#include "weir/http/window.h"

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

_Static_assert(sizeof(struct weir_request) % 8 == 0 && sizeof(struct weir_request) / 8 < WEIR_DIGEST_WORDS,
	       "a key for each");

/* The words of a part of the request. */
WEIR_INLINE void weir_request_digest_part(struct weir_digest *d, const struct weir_digest_keys *keys,
					  const struct weir_request *r, __u32 from, __u32 end)
{
	__u64 word;

	WEIR_UNROLLED
	for (__u32 at = from; at < end; at += 8) {
		__builtin_memcpy(&word, (const __u8 *)__builtin_assume_aligned(r, 8) + at, 8);
		weir_digest_add(d, keys, at / 8, word);
	}
}

/* Behind the path's last segment nothing counts. */
WEIR_INLINE void weir_request_digest_segments(struct weir_digest *d, const struct weir_digest_keys *keys,
					      const struct weir_request *r)
{
	const __u32 size = sizeof(struct weir_path_segment),
		    first = __builtin_offsetof(struct weir_request, path.segments);

	WEIR_UNROLLED
	for (__u32 i = 0; i < WEIR_PATH_SEGMENTS && WEIR_FRESH(r->path.count) > i; i++)
		weir_request_digest_part(d, keys, r, first + size * i, first + size * (i + 1));
}

/*
 * Two machines that have read the same have the same digest; others, for all that a client can do, another one (digest.h). *digest has
 * that of the requests before it in the same reading, or 0, and stays as it is if nothing of this one was read. Once a head has ended,
 * there is no name that is being read.
 */
WEIR_INLINE void weir_request_digest_to(const struct weir_request *r, const struct weir_digest_keys *keys,
					__u64 *digest)
{
	struct weir_digest d = keys->begin;

	if (weir_request_fresh(r))
		return;
	weir_digest_add(&d, keys, sizeof(*r) / 8, *digest);
	weir_request_digest_part(&d, keys, r, 0, __builtin_offsetof(struct weir_request, hash));
	weir_request_digest_part(
		&d, keys, r, __builtin_offsetof(struct weir_request, path.segments[WEIR_PATH_SELECTED]), sizeof(*r));
	if (WEIR_UNLIKELY(!r->head_length))
		weir_request_digest_part(&d, keys, r, __builtin_offsetof(struct weir_request, hash),
					 __builtin_offsetof(struct weir_request, path));
	weir_request_digest_segments(&d, keys, r);
	*digest = weir_digest_end(&d);
}

WEIR_INLINE __u64 weir_request_digest(const struct weir_request *r, const struct weir_digest_keys *keys)
{
	__u64 digest = 0;

	weir_request_digest_to(r, keys, &digest);
	return digest;
}

/* A head has begun and not ended. */
WEIR_INLINE bool weir_request_in_head(const struct weir_request *r)
{
	return !weir_request_fresh(r) && !r->head_length && r->framing.state != WEIR_AT_ENDED &&
	       r->framing.state != WEIR_AT_LOST;
}

/* The same, and what has come of it is more than empty lines, which mean nothing by themselves. */
WEIR_INLINE bool weir_request_line_begun(const struct weir_request *r)
{
	return weir_request_in_head(r) && r->framing.state != WEIR_AT_START && r->framing.state != WEIR_AT_START_LF;
}

/* Of a request whose head has ended. */
WEIR_INLINE bool weir_request_has_body(const struct weir_request *r)
{
	return r->content_length || r->flags & WEIR_REQUEST_CHUNKED;
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

	if (f->state < WEIR_AT_OWN)
		return weir_framing_take(f, word);
	if (f->position > WEIR_HEAD_MAX - 8)
		return 0;
	if (f->state == WEIR_AT_START)
		n = weir_request_method_take(r, word);
	else if (f->state == WEIR_AT_VERSION)
		n = weir_request_version_take(r, word);
	else if (f->state == WEIR_AT_NAME_VALUE)
		n = weir_request_value_take(r, word);
	else
		n = weir_request_target_take(r, word);
	f->position += n;
	return n;
}

/* One byte of the head, the body or the trailers; WEIR_FRAME_HEAD also at the trailers' end. */
WEIR_INLINE int weir_request_any_byte(struct weir_request *r, const struct weir_reading *how, __u8 c,
				      struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;
	enum weir_header header;

	if (f->state >= WEIR_AT_BODY && f->state < WEIR_AT_OWN)
		return weir_body_byte(f, c);
	if (f->position++ >= WEIR_HEAD_MAX)
		return -WEIR_HEAD_TOO_LONG;
	if (c == ':' && f->state == WEIR_AT_NAME) {
		header = weir_request_header_named(f, how);
		if (header < WEIR_HEADERS)
			return weir_request_header_start(r, header);
	}
	if (f->state >= WEIR_AT_CREDENTIALS)
		return weir_request_header_byte(r, c, name);
	return f->state < WEIR_AT_OWN ? weir_field_byte(f, c) : weir_request_line_byte(r, how, c, name);
}

WEIR_INLINE __u8 weir_header_kind(__u8 header)
{
	if (header == WEIR_HEADER_USER)
		return WEIR_NAME_USER;
	if (header == WEIR_HEADER_GROUP)
		return WEIR_NAME_GROUP;
	return header == WEIR_HEADER_TOKEN ? WEIR_NAME_TOKEN : WEIR_NAME_NAMESPACE;
}

WEIR_INLINE void weir_request_named(struct weir_request *r, __u8 header, __u64 subject)
{
	if (header == WEIR_HEADER_USER)
		r->user_subject = subject;
	else if (header == WEIR_HEADER_GROUP)
		r->group_subject = subject;
	else if (header == WEIR_HEADER_TOKEN)
		r->token_subject = subject;
	else
		r->namespace_subject = subject;
}

WEIR_INLINE void weir_request_name(struct weir_request *r, const __u64 seed[2], const struct weir_name_steps *name)
{
	if (name->steps & WEIR_STEP_END) {
		if (name->header < WEIR_HEADERS)
			weir_request_named(r, name->header, weir_subject_end(&r->hash));
		else
			weir_path_keep(&r->path, name->segment, &r->hash, name->end);
	}
	if (name->steps & WEIR_STEP_START) {
		r->path.start = r->framing.position;
		weir_subject_start(&r->hash, seed, weir_header_kind(name->header));
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
	weir_token_start(f);			/* the last word may be a secret */
	r->hash = (struct weir_subject_hash){}; /* nor is anything left of a name: its subject says it all */
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
	struct weir_name_steps name = { .header = WEIR_HEADERS };
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
