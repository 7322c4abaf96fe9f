/* SPDX-License-Identifier: GPL-2.0 */
/*
 * May this request (or the records of this segment) pass? Every limit that applies is asked, the narrowest first; a request that one of them refuses
 * gives back what it took, so that it consumes nothing anywhere.
 */
#ifndef WEIR_BPF_DECIDE_H
#define WEIR_BPF_DECIDE_H

#include "buckets.h"
#include "identify.h"
#include "maps.h"

/* Everything there is to one limit of one request. The pointers are of this very packet, in one program run. */
struct charge {
	struct weir_limit *limit;
	struct weir_bucket *bucket;
	struct lock *lock;
};

/* Of an Event; its user where what tells it apart is not known. */
static __always_inline __u64 event_subject(const struct work *w)
{
	if (w->event_key == WEIR_REASON_COUNT)
		return 0;
	return w->event_key == WEIR_EVENT_KEYED ? w->event_subject : w->identity.user;
}

/* Who is charged under a limit of this type; 0 for a request that has no such subject. */
static __always_inline __u64 subject_of(const struct work *w, __u32 type)
{
	if (type == WEIR_LIMIT_USER)
		return w->identity.user;
	if (type == WEIR_LIMIT_SOURCE_AND_OBJECT)
		return event_subject(w);
	return type == WEIR_LIMIT_NAMESPACE ? w->identity.namespace : 0;
}

/*
 * Asks one limit and, unless another one has refused before, takes w->weight tokens of it: at w->at_ns, which it moves to
 * when they are there, if that is not after w->latest_ns. Notes a refusal in w->refused and the longest wait in
 * w->wait_ns; notes in w->charged what was taken. 1: the subject, w->subjects[type], has no bucket.
 */
__noinline int limit_ask(struct work *w, __u32 type)
{
	struct charge c;
	__u64 subject, wait_ns;
	bool admits;
	__u32 index;

	if (!w || type >= WEIR_LIMIT_TYPES)
		return 0;
	subject = w->subjects[type & 3];
	if (!subject && type != WEIR_LIMIT_TOTAL)
		return 0;
	index = weir_limit_index(w->server, type);
	c.limit = limit_of(index, subject);
	if (!c.limit)
		return 0;
	c.bucket = bucket_of(index, subject);
	c.lock = lock_of(index, subject);
	if (!c.bucket || !c.lock)
		return 1;
	bpf_spin_lock(&c.lock->lock);
	wait_ns = weir_bucket_turn_ns(c.bucket, &c.limit->history, w->at_ns);
	admits = !w->refused && wait_ns <= w->latest_ns - w->at_ns;
	if (admits)
		weir_bucket_reserve(c.bucket, &c.limit->history, w->at_ns, wait_ns, w->weight);
	c.bucket->passed += admits ? w->asked : 0;
	c.bucket->shed += wait_ns ? w->asked_anew : 0;
	bpf_spin_unlock(&c.lock->lock);

	if (admits) {
		w->charged |= 1U << type;
		w->waited |= wait_ns ? 1U << type : 0;
		w->at_ns += wait_ns;
	} else if (wait_ns) {
		w->refused |= 1U << type;
		if (wait_ns > w->wait_ns)
			w->wait_ns = wait_ns;
	}
	return 0;
}

static __always_inline void ask(struct work *w, __u32 type)
{
	w->subjects[type & 3] = subject_of(w, type);
	if (!limit_ask(w, type))
		return;
	bucket_make(w->hook, type);
	if (!limit_ask(w, type))
		return;
	count(w->server, WEIR_BUCKET_MAP_FULL);
	if (w->server_flags & WEIR_SERVER_FULL_REFUSES)
		w->refused |= 1U << type;
}

/* Undoes what limit_ask() did at a limit that admitted, or what it counted at one that refused. */
__noinline int limit_undo(struct work *w, __u32 type)
{
	struct charge c;
	__u64 subject;
	__u32 index;

	if (!w || type >= WEIR_LIMIT_TYPES || !((w->charged | w->refused) & (1U << type)))
		return 0;
	subject = w->subjects[type & 3];
	index = weir_limit_index(w->server, type);
	c.limit = limit_of(index, subject);
	c.bucket = bucket_of(index, subject);
	c.lock = lock_of(index, subject);
	if (!c.limit || !c.bucket || !c.lock)
		return 0;
	bpf_spin_lock(&c.lock->lock);
	if (w->charged & (1U << type)) {
		weir_bucket_give_back(c.bucket, &c.limit->history, w->weight);
		c.bucket->passed -= w->asked;
	}
	if ((w->refused | w->waited) & (1U << type))
		c.bucket->shed -= w->asked_anew;
	bpf_spin_unlock(&c.lock->lock);
	w->charged &= ~(1U << type);
	w->refused &= ~(1U << type);
	w->waited &= ~(1U << type);
	return 0;
}

/* The request (or the segment) decided last comes again: as if it had not been asked for. */
__noinline int undo_decision(struct work *w)
{
	limit_undo(w, WEIR_LIMIT_SOURCE_AND_OBJECT);
	limit_undo(w, WEIR_LIMIT_USER);
	limit_undo(w, WEIR_LIMIT_NAMESPACE);
	limit_undo(w, WEIR_LIMIT_TOTAL);
	return 0;
}

static __always_inline void remember_names(struct __sk_buff *skb, struct work *w)
{
	for (__u32 type = WEIR_LIMIT_TOTAL + 1; type < WEIR_LIMIT_TYPES; type++) {
		if (w->nameless & (1U << type))
			remember_name(skb, w->hook, type);
	}
}

static __always_inline void decision_start(struct work *w)
{
	w->charged = 0;
	w->refused = 0;
	w->waited = 0;
	w->wait_ns = 0;
	w->nameless = 0;
}

/* A limit has refused: those that admitted get back what they gave. */
static __always_inline void decision_give_back(struct work *w)
{
	for (__u32 type = 0; type < WEIR_LIMIT_TYPES; type++) {
		if (w->charged & (1U << type))
			limit_undo(w, type);
	}
}

/* Sets w->refused (a bit for each limit that refused, 0: the request may pass) and w->retry_s. */
__noinline int decide(struct __sk_buff *skb, struct work *w)
{
	if (!w)
		return 0;
	decision_start(w);
	if (w->event_key != WEIR_REASON_COUNT)
		ask(w, WEIR_LIMIT_SOURCE_AND_OBJECT);
	ask(w, WEIR_LIMIT_USER);
	ask(w, WEIR_LIMIT_NAMESPACE);
	ask(w, WEIR_LIMIT_TOTAL);
	remember_names(skb, w);
	if (!w->refused)
		return 0;
	w->retry_s = weir_retry_after_s(w->wait_ns);
	decision_give_back(w);
	return 0;
}

#endif
