/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One limit of a request in the ordinary case, in one function, because each call and each return cost more than what most functions
 * here do: its terms are those that were copied for the request before, they are the same for all, and the subject has a bucket in which
 * there is a token. In every other case limit_ask.h asks.
 */
#ifndef WEIR_BPF_LIMIT_READY_H
#define WEIR_BPF_LIMIT_READY_H

#include "buckets.h"
#include "decision.h"

/* Does the request keep a token that it takes? One that only looks takes none, and one that was refused gives it back. */
static __always_inline bool keeps_token(const struct decision *d)
{
	return !(d->look | d->refused | d->unproven);
}

/* Do they say no more than how many tokens there are, and the same to all? */
static __always_inline bool terms_are_plain(const struct weir_terms *terms)
{
	return !(terms->flags & WEIR_LIMIT_OVERRIDDEN) &&
	       (terms->amount.flags & (WEIR_LIMIT_SET | WEIR_LIMIT_DENY)) == WEIR_LIMIT_SET &&
	       !weir_limit_has_seats(terms->kind);
}

static __always_inline __u64 limit_changes_now(void)
{
	const __u64 *changes;
	__u32 zero = 0;

	changes = bpf_map_lookup_elem(&limit_changes, &zero);
	return WEIR_LIKELY(changes) ? WEIR_FRESH(*changes) : 0;
}

/*
 * The terms of limit n, as they were copied, are plain, and still in force. That is known where no limit has changed since it was found
 * out; the number is read before it is found out, so a change meanwhile has another one.
 */
WEIR_SELDOM int terms_make_ready(const struct weir_terms *terms, struct terms_in_force *known, __u32 index, __u64 now)
{
	const struct weir_limit *limit = bpf_map_lookup_elem(&limits, &index);

	if (!limit || !terms_are_those_of(terms, limit) || !terms_are_plain(terms))
		return false;
	known->rate = terms->amount.history.rates[0];
	known->key = terms->key;
	known->limit = index;
	known->as_of = now;
	return true;
}

static __always_inline bool terms_are_ready(const struct weir_terms *terms, struct terms_in_force *known, __u32 index)
{
	__u64 now = limit_changes_now();

	if (WEIR_LIKELY(now) && WEIR_LIKELY(known->as_of == now) && WEIR_LIKELY(known->limit == index))
		return true;
	return terms_make_ready(terms, known, index, now);
}

/* What a request has of its own that limits are for. */
struct asker {
	__u64 user, namespace, source; /* 0: there is none */
};

/* Sets the subject of a key with one part at most. False: the key has more parts, or the request does not have that part. */
static __always_inline bool subject_is_plain(const struct asker *asker, __u32 key, __u64 *subject)
{
	*subject = asker->user;
	if (WEIR_LIKELY(key == WEIR_KEY_USER))
		return *subject;
	WEIR_BARRIER(key); /* no compiler makes one switch of it all */
	*subject = 0;
	if (!key)
		return true;
	if (key == WEIR_KEY_NAMESPACE)
		*subject = asker->namespace;
	if (key == WEIR_KEY_SOURCE)
		*subject = asker->source;
	return *subject;
}

/* The limit with this index, whose terms are ready, gives what is asked. False: it does not, and nothing has changed. */
static __always_inline bool ready_gives(const struct terms_in_force *known, __u32 index, __u32 asked,
					struct weir_ask *ask)
{
	struct weir_kept *kept = kept_in_place(index, ask->level.subject);

	if (WEIR_UNLIKELY(!kept) ||
	    WEIR_UNLIKELY(weir_bucket_take_ready(&kept->bucket, &known->rate, ask) != WEIR_TAKEN))
		return false;
	if (asked)
		add(&kept->bucket.passed, asked);
	return true;
}

/* True: limit n has given a token. False: it was not asked, and nothing has changed. */
__noinline int ask_ready(struct decision *d, __u32 n)
{
	struct weir_ask ask = {};
	struct terms_in_force *known;
	struct asker asker;
	__u32 index;

	if (!d || n >= WEIR_MATCHES_MAX || !keeps_token(d))
		return false;
	WEIR_BARRIER(n);
	n &= WEIR_MATCHES_MAX - 1;
	if (d->charged >> n & 1)
		return true; /* before: inside_ready.h */
	known = &d->in_force[n];
	index = weir_limit_index(d->server, d->limits[n]);
	asker = (struct asker){ d->identity.user, d->identity.namespace, d->source };
	if (!terms_are_ready(&d->terms[n], known, index) || !subject_is_plain(&asker, known->key, &ask.level.subject))
		return false;
	ask.now_ns = d->at_ns;
	ask.weight = d->weight;
	if (!ready_gives(known, index, d->asked, &ask))
		return false;
	d->subjects[n] = ask.level.subject;
	d->charged |= 1U << n;
	d->torn &= ~(1U << n);
	return true;
}

#endif
