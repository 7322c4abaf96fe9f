/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The query of a request to Kubernetes' API: the parameters that attributes.h asks for. It is taken apart as Go's
 * url.ParseQuery does it: `&` separates, a parameter with a raw `;` or bad percent-encoding is not there, `+` is a
 * space, and the first of several values counts.
 *
 * Of a field selector one name is taken, that of metadata.name=NAME. With several of these, or a backslash, there is
 * none: those that follow Kubernetes' rules select nothing then, or nothing that a rule could be about.
 */
#ifndef WEIR_HTTP_QUERY_H
#define WEIR_HTTP_QUERY_H

#include "weir/http/request_state.h"
#include "weir/http/run.h"

enum weir_query_pair {
	WEIR_PAIR_VALUE = 1 << 0,    /* its `=` was there */
	WEIR_PAIR_BAD = 1 << 1,	     /* it is not there */
	WEIR_PAIR_STRANGE = 1 << 2,  /* its value is not understood */
	WEIR_PAIR_NAME = 1 << 3,     /* in a name */
	WEIR_PAIR_SELECTED = 1 << 4, /* a name has ended */
};

WEIR_INLINE void weir_query_start(struct weir_request *r)
{
	r->framing.state = WEIR_AT_QUERY;
	r->query.key = WEIR_QUERY_OTHER;
	r->query.pair = 0;
	weir_token_start(&r->framing);
}

WEIR_INLINE enum weir_query_key weir_query_key_of(const struct weir_framing *f)
{
	if (WEIR_TOKEN_IS(f, "watch"))
		return WEIR_QUERY_WATCH;
	if (WEIR_TOKEN_IS(f, "limit"))
		return WEIR_QUERY_LIMIT;
	if (WEIR_TOKEN_IS(f, "resourceVersion"))
		return WEIR_QUERY_RESOURCE_VERSION;
	if (WEIR_TOKEN_IS(f, "dryRun"))
		return WEIR_QUERY_DRY_RUN;
	return WEIR_TOKEN_IS(f, "fieldSelector") ? WEIR_QUERY_FIELD_SELECTOR : WEIR_QUERY_OTHER;
}

WEIR_INLINE void weir_query_key_end(struct weir_request *r)
{
	struct weir_query *q = &r->query;

	q->key = weir_query_key_of(&r->framing);
	if (q->seen >> q->key & 1)
		q->key = WEIR_QUERY_OTHER;
	q->pair |= WEIR_PAIR_VALUE;
	weir_token_start(&r->framing);
}

/* Everything but 0 and the word false. Kubernetes compares letters without case as Unicode does: U+017F is an s, too. */
WEIR_INLINE bool weir_query_is_true(const struct weir_framing *f)
{
	const __u64 letters = 0x2020202020ULL;

	if (f->count == 5)
		return (f->token[0] | letters) != WEIR_TEXT_WORD("false", 0);
	if (f->count == 6)
		return (f->token[0] | 0x202020000020ULL) != 0x66616cc5bf65ULL;
	return !WEIR_TOKEN_IS(f, "0");
}

/* A negative one is none. */
WEIR_INLINE void weir_query_limit_byte(struct weir_request *r, __u8 c)
{
	struct weir_framing *f = &r->framing;
	struct weir_query *q = &r->query;

	if (c == '-' && !f->count && !f->gap) {
		f->gap = 1;
		return;
	}
	f->count = 1;
	if (!weir_is_digit(c))
		q->pair |= WEIR_PAIR_STRANGE;
	else if (q->limit >= ~0U / 10)
		q->limit = ~0U;
	else if (!f->gap)
		q->limit = q->limit * 10 + (c - '0');
}

WEIR_INLINE void weir_query_name_end(struct weir_request *r, __u32 at, struct weir_name_steps *name)
{
	name->steps = WEIR_STEP_END;
	name->segment = WEIR_PATH_SELECTED;
	name->end = at;
	r->query.pair |= WEIR_PAIR_SELECTED;
	r->query.pair &= ~WEIR_PAIR_NAME;
	if (r->hash.length == 1 || WEIR_NAME_IS(&r->hash, ".") || WEIR_NAME_IS(&r->hash, ".."))
		r->query.pair |= WEIR_PAIR_STRANGE;
}

WEIR_INLINE void weir_query_name_byte(struct weir_request *r, __u8 c, __u32 at, struct weir_name_steps *name)
{
	if (r->hash.length == 1) {
		/* The second one of `==`. */
		if (c == '=' && !r->framing.gap) {
			r->framing.gap = 1;
			return;
		}
		r->path.start = at;
	}
	if (c == '=' || c == '/' || c == '%')
		r->query.pair |= WEIR_PAIR_STRANGE;
	name->steps = WEIR_STEP_BYTE;
	name->byte = c;
}

/* The end of one requirement of a selector: an operator was in it, if it was not empty. */
WEIR_INLINE void weir_query_term_end(struct weir_request *r, __u32 at, struct weir_name_steps *name)
{
	if (r->query.pair & WEIR_PAIR_NAME)
		weir_query_name_end(r, at, name);
	else if (r->framing.count && !r->framing.gap)
		r->query.pair |= WEIR_PAIR_STRANGE;
	weir_token_start(&r->framing);
}

/* `=`, also as the end of `!=` and the start of `==` */
WEIR_INLINE void weir_query_operator(struct weir_request *r, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;

	if (!WEIR_TOKEN_IS(f, "metadata.name")) {
		f->gap = 1;
		return;
	}
	if (r->query.pair & WEIR_PAIR_SELECTED)
		r->query.pair |= WEIR_PAIR_STRANGE;
	r->query.pair |= WEIR_PAIR_NAME;
	name->steps = WEIR_STEP_START;
	weir_token_start(f);
}

WEIR_INLINE void weir_query_selector_byte(struct weir_request *r, __u8 c, __u32 at, struct weir_name_steps *name)
{
	if (c == '\\')
		r->query.pair |= WEIR_PAIR_STRANGE;
	if (c == ',')
		weir_query_term_end(r, at, name);
	else if (r->query.pair & WEIR_PAIR_NAME)
		weir_query_name_byte(r, c, at, name);
	else if (c == '=' && !r->framing.gap)
		weir_query_operator(r, name);
	else if (!r->framing.gap)
		weir_token_byte(&r->framing, c);
}

/* c: decoded; at: offset of the first raw byte that it was written as */
WEIR_INLINE void weir_query_value_byte(struct weir_request *r, __u8 c, __u32 at, struct weir_name_steps *name)
{
	switch (r->query.key) {
	case WEIR_QUERY_OTHER:
		break;
	case WEIR_QUERY_LIMIT:
		weir_query_limit_byte(r, c);
		break;
	case WEIR_QUERY_FIELD_SELECTOR:
		weir_query_selector_byte(r, c, at, name);
		break;
	default:
		weir_token_byte(&r->framing, c);
	}
}

/* A parameter's value has ended: what it says (enum weir_query_says). */
WEIR_INLINE __u8 weir_query_value_says(struct weir_request *r)
{
	const struct weir_framing *f = &r->framing;

	switch (r->query.key) {
	case WEIR_QUERY_WATCH:
		return weir_query_is_true(f) ? WEIR_QUERY_WATCHES : 0;
	case WEIR_QUERY_RESOURCE_VERSION:
		return (f->count ? WEIR_QUERY_VERSIONED : 0) | (WEIR_TOKEN_IS(f, "0") ? WEIR_QUERY_ANY_VERSION : 0);
	case WEIR_QUERY_DRY_RUN:
		return WEIR_TOKEN_IS(f, "All") ? WEIR_QUERY_DRY_RUNS : 0;
	case WEIR_QUERY_FIELD_SELECTOR:
		return r->query.pair & WEIR_PAIR_SELECTED ? WEIR_QUERY_SELECTS : 0;
	default:
		return 0;
	}
}

WEIR_INLINE void weir_query_limit_end(struct weir_request *r)
{
	struct weir_query *q = &r->query;

	if (!r->framing.count)
		q->pair |= WEIR_PAIR_STRANGE;
	if (q->pair & (WEIR_PAIR_BAD | WEIR_PAIR_STRANGE))
		q->limit = 0;
}

/* Might this parameter make the answer smaller? */
WEIR_INLINE bool weir_query_narrows(const struct weir_request *r)
{
	return r->query.key != WEIR_QUERY_RESOURCE_VERSION && r->query.key != WEIR_QUERY_WATCH;
}

WEIR_INLINE void weir_query_pair_end(struct weir_request *r, __u32 at, struct weir_name_steps *name)
{
	struct weir_query *q = &r->query;

	if (!(q->pair & WEIR_PAIR_VALUE))
		weir_query_key_end(r);
	if (q->key == WEIR_QUERY_FIELD_SELECTOR)
		weir_query_term_end(r, at, name);
	if (q->key == WEIR_QUERY_LIMIT)
		weir_query_limit_end(r);
	if (weir_query_narrows(r))
		q->says |= WEIR_QUERY_NARROWS;
	if (q->key == WEIR_QUERY_OTHER || (q->pair & WEIR_PAIR_BAD))
		return;
	q->seen |= 1U << q->key;
	q->says |= weir_query_value_says(r);
	if (q->pair & WEIR_PAIR_STRANGE)
		q->says |= WEIR_QUERY_STRANGE;
}

/* A byte that stands for itself, or one that is decoded. */
WEIR_INLINE void weir_query_decoded_byte(struct weir_request *r, __u8 c, __u32 at, struct weir_name_steps *name)
{
	if (r->query.pair & WEIR_PAIR_VALUE)
		weir_query_value_byte(r, c, at, name);
	else
		weir_token_byte(&r->framing, c);
}

/* A digit of percent-encoding. false: it is none, and to be read as any other byte */
WEIR_INLINE bool weir_query_hex_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;
	bool low = f->state == WEIR_AT_QUERY_HEX_LOW;
	int digit = weir_hex_digit(c);

	f->state = WEIR_AT_QUERY;
	if (digit < 0) {
		r->query.pair |= WEIR_PAIR_BAD;
		return false;
	}
	if (low) {
		weir_query_decoded_byte(r, r->path.hex_high << 4 | digit, f->position - 3, name);
		return true;
	}
	f->state = WEIR_AT_QUERY_HEX_LOW;
	r->path.hex_high = digit;
	return true;
}

/* As feeding, for the first n bytes of the word, which are letters, digits and hyphens; 0: they are to be fed. */
WEIR_INLINE __u32 weir_query_take(struct weir_request *r, __u64 word, __u32 n)
{
	__u8 key = r->query.key;

	if (key == WEIR_QUERY_LIMIT || key == WEIR_QUERY_FIELD_SELECTOR)
		return 0;
	if (key != WEIR_QUERY_OTHER || !(r->query.pair & WEIR_PAIR_VALUE))
		weir_token_bytes(&r->framing, word, n);
	return n;
}

WEIR_INLINE int weir_query_byte(struct weir_request *r, __u8 c, struct weir_name_steps *name)
{
	struct weir_framing *f = &r->framing;
	__u32 at = f->position - 1;

	if (f->state != WEIR_AT_QUERY && weir_query_hex_byte(r, c, name))
		return WEIR_FRAME_MORE;
	if (c == ' ' || c == '&') {
		weir_query_pair_end(r, at, name);
		weir_query_start(r);
		if (c == ' ')
			f->state = WEIR_AT_VERSION;
	} else if (!weir_is_visible(c)) {
		return weir_bad_byte(c, WEIR_BAD_REQUEST_LINE);
	} else if (c == '%') {
		f->state = WEIR_AT_QUERY_HEX_HIGH;
	} else if (c == '=' && !(r->query.pair & WEIR_PAIR_VALUE)) {
		weir_query_key_end(r);
	} else {
		if (c == ';')
			r->query.pair |= WEIR_PAIR_BAD;
		weir_query_decoded_byte(r, c == '+' ? ' ' : c, at, name);
	}
	return WEIR_FRAME_MORE;
}

#endif
