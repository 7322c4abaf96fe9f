/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The headers of a request that say whose it is (enum weir_header): their values are hashed whole, without the white
 * space at either end. All but groups may stand there once: the first one counts, and that it is repeated is noted.
 *
 * Of `Authorization: Bearer TOKEN` the token is hashed, and found as Kubernetes finds it: the scheme in any case, one
 * space, all that comes up to the next blank.
 */
#ifndef WEIR_HTTP_REQUEST_HEADER_H
#define WEIR_HTTP_REQUEST_HEADER_H

#include "weir/http/field.h"
#include "weir/http/request_state.h"
#include "weir/http/run.h"

/* Of a user's name like system:serviceaccount:NAMESPACE:NAME, how far it has come. */
enum weir_account {
	WEIR_ACCOUNT_UNKNOWN,
	WEIR_ACCOUNT_PREFIX, /* system:serviceaccount: */
	WEIR_ACCOUNT_NAMESPACE,
	WEIR_ACCOUNT_COLON,
	WEIR_ACCOUNT_NAME, /* it is one, if nothing but letters follow */
	WEIR_ACCOUNT_NOT,
};

/* At the colon: the header that has this name, or WEIR_HEADERS. */
WEIR_INLINE enum weir_header weir_request_header_named(const struct weir_framing *f, const struct weir_reading *how)
{
	__u32 header;

	if (f->count > WEIR_TOKEN_MAX || !(how->lengths >> f->count & 1) || (f->seen & WEIR_SEEN_LAST_CHUNK))
		return WEIR_HEADERS;
#pragma GCC unroll 8
	for (header = 0; header < WEIR_HEADERS; header++)
		if (weir_token_is_word(f, &how->headers[header]))
			return (enum weir_header)header;
	return WEIR_HEADERS;
}

WEIR_INLINE bool weir_request_repeats(const struct weir_request *r, enum weir_header header)
{
	return r->headers_repeated >> header & 1;
}

WEIR_INLINE bool weir_request_says(const struct weir_request *r, enum weir_header header)
{
	return r->headers_seen >> header & 1;
}

/* The colon. */
WEIR_INLINE int weir_request_header_start(struct weir_request *r, enum weir_header header)
{
	struct weir_framing *f = &r->framing;
	bool again = header != WEIR_HEADER_GROUP && weir_request_says(r, header);

	f->state = header == WEIR_HEADER_TOKEN ? WEIR_AT_CREDENTIALS : WEIR_AT_NAME_VALUE;
	if (again || header == WEIR_HEADER_IMPERSONATE)
		f->state = WEIR_AT_VALUE;
	f->field = header;
	weir_token_start(f);
	r->headers_seen |= 1U << header;
	if (again)
		r->headers_repeated |= 1U << header;
	return again && header == WEIR_HEADER_NAMESPACE ? -WEIR_REPEATED_NAMESPACE : WEIR_FRAME_MORE;
}

/* The value is taken to end at every byte of white space after a visible one: no other byte may follow. */
WEIR_INLINE void weir_request_value_pause(struct weir_request *r, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;

	if (!f->count || f->gap)
		return;
	f->gap = 1;
	name->steps = WEIR_STEP_END;
	if (f->field == WEIR_HEADER_USER)
		r->user_length = f->position - 1 - r->user_offset;
	else if (f->field == WEIR_HEADER_NAMESPACE)
		r->namespace_length = f->position - 1 - r->namespace_offset;
}

/* The value's first byte. */
WEIR_INLINE void weir_request_value_start(struct weir_request *r, struct weir_name_steps *name)
{
	__u32 at = r->framing.position - 1;

	name->steps = WEIR_STEP_START;
	if (r->framing.field == WEIR_HEADER_USER)
		r->user_offset = at;
	else if (r->framing.field == WEIR_HEADER_NAMESPACE)
		r->namespace_offset = at;
}

/*
 * A service account is in its namespace's group. What stands before the name's colon is that group, in other words: it
 * is looked up as a group is.
 */
WEIR_INLINE void weir_request_account_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;

	if (f->gap || (c == ':' && r->account && r->account != WEIR_ACCOUNT_NAMESPACE)) {
		r->account = WEIR_ACCOUNT_NOT;
	} else if (c != ':') {
		if (r->account == WEIR_ACCOUNT_PREFIX || r->account == WEIR_ACCOUNT_COLON)
			r->account++;
	} else if (!r->account) {
		if (WEIR_TOKEN_IS(f, "system:serviceaccount"))
			r->account = WEIR_ACCOUNT_PREFIX;
	} else {
		r->account = WEIR_ACCOUNT_COLON;
		name->steps = WEIR_STEP_END;
		name->header = WEIR_HEADER_GROUP;
	}
}

WEIR_INLINE int weir_request_value_end(struct weir_request *r, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;
	bool account = f->field == WEIR_HEADER_USER && r->account == WEIR_ACCOUNT_NAME;

	weir_request_value_pause(r, name);
	f->state = WEIR_AT_LINE_LF;
	return account || (f->field == WEIR_HEADER_GROUP && f->count) ? WEIR_FRAME_GROUP : WEIR_FRAME_MORE;
}

WEIR_INLINE void weir_request_value_blank(struct weir_request *r, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;

	weir_request_value_pause(r, name);
	if (f->field == WEIR_HEADER_TOKEN)
		f->state = WEIR_AT_VALUE;
	else if (f->count)
		name->steps |= WEIR_STEP_BYTE;
}

WEIR_INLINE int weir_request_value_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;

	name->header = f->field;
	name->byte = c;
	if (c == '\r')
		return weir_request_value_end(r, name);
	if (!weir_is_text(c))
		return weir_bad_byte(c, WEIR_BAD_HEADER);
	if (weir_is_blank(c)) {
		weir_request_value_blank(r, name);
		return WEIR_FRAME_MORE;
	}
	if (!f->count)
		weir_request_value_start(r, name);
	if (f->field == WEIR_HEADER_USER)
		weir_request_account_byte(r, c, name);
	weir_token_byte(f, c);
	f->gap = 0;
	name->steps |= WEIR_STEP_BYTE;
	return WEIR_FRAME_MORE;
}

/* The scheme before a token. */
WEIR_INLINE int weir_request_credentials_byte(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;

	if (c == '\r') {
		f->state = WEIR_AT_LINE_LF;
	} else if (!weir_is_text(c)) {
		return weir_bad_byte(c, WEIR_BAD_HEADER);
	} else if (c == ' ' && f->count) {
		f->state = WEIR_TOKEN_IS(f, "bearer") ? WEIR_AT_NAME_VALUE : WEIR_AT_VALUE;
		weir_token_start(f);
	} else if (f->count || !weir_is_blank(c)) {
		weir_token_byte(f, weir_lower(c));
	}
	return WEIR_FRAME_MORE;
}

/* As feeding: a blank before the value, or bytes of it behind the first that change nothing but token and hash (run.h). */
WEIR_INLINE __u32 weir_request_value_take(struct weir_request *r, __u64 word)
{
	struct weir_framing *f = &r->framing;
	__u64 lower;
	__u32 n;

	if (!f->count)
		return f->field != WEIR_HEADER_TOKEN && weir_is_blank(weir_run_first(word));
	n = f->gap ? 0 : weir_run_name(word, &lower);
	if (!n)
		return 0;
	if (f->field == WEIR_HEADER_USER && (r->account == WEIR_ACCOUNT_PREFIX || r->account == WEIR_ACCOUNT_COLON))
		r->account++;
	weir_token_bytes(f, word, n);
	weir_subject_bytes(&r->hash, weir_run_only(word, n), n);
	return n;
}

WEIR_INLINE int weir_request_header_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
{
	if (r->framing.state == WEIR_AT_CREDENTIALS)
		return weir_request_credentials_byte(r, c);
	return weir_request_value_byte(r, c, name);
}

#endif
