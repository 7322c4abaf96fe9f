/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ordinary request inside a server, which each of its limits has a token for: asked without a decision. Where the CPU has rested, what
 * takes time is how many lines of memory are touched, and what a decision is told and says stands in a dozen of them.
 */
#ifndef WEIR_BPF_INSIDE_READY_H
#define WEIR_BPF_INSIDE_READY_H

#include "inside_memory.h"

#include "decide.h"
#include "tally.h"

static __always_inline void inside_fetch(const void *at)
{
	if (WEIR_LIKELY(at))
		WEIR_FRESH(*(const __u64 *)at);
}

/*
 * Where the CPU has rested, each line of memory that a request needs is a wait of its own. Before limits are asked all are known but the
 * subjects'. What is known is read here, one line right after the other, so that the CPU waits for all of them at once.
 */
static __always_inline void inside_fetch_ahead(__u32 server)
{
	__u32 zero = 0, counter = server * WEIR_COUNTER_COUNT + WEIR_SEEN_AND_PASSED_USER;
	__u32 limit = weir_limit_index(server, WEIR_BUILTIN_USER);

	inside_fetch(bpf_map_lookup_elem(&limit_counts, &limit));
	inside_fetch(bpf_map_lookup_elem(&counters, &counter));
	inside_fetch(bpf_map_lookup_elem(&limit_changes, &zero));
	bpf_map_lookup_elem(&buckets, &limit); /* reads which map it is */
}

/* With one of these there is more to a request than its built-in limits, or more to be told of it. */
#define INSIDE_FLAGS_MORE (WEIR_SERVER_PAUSED | WEIR_SERVER_KNOWS_USERS | WEIR_SERVER_INSIDE_HOLD)
#define INSIDE_TRAITS_MORE (WEIR_SERVER_IN_FLIGHT | WEIR_SERVER_OBJECTS | WEIR_SERVER_PENALTIES)

static __always_inline bool inside_is_ordinary(const struct inside_request *r, const struct weir_server *server)
{
	return !(server->generation | (server->flags & INSIDE_FLAGS_MORE) | (server->traits & INSIDE_TRAITS_MORE)) &&
	       server->trace_until_ns <= r->now_ns && !r->health && !r->execute &&
	       !weir_groups_meet(&r->groups, &server->groups.exempt);
}

/* As ask_ready() does it of limit n of a decision; so does who undoes it find what he needs in there. */
static __always_inline bool inside_limit_gives(struct decision *d, __u32 n, const struct inside_request *r, __u32 index)
{
	const struct asker asker = { r->record.trace.user, r->record.trace.attributes.namespace, r->address };
	struct weir_ask ask = { .now_ns = r->now_ns, .weight = 1 };
	struct terms_in_force *known;

	WEIR_BARRIER(n);
	n &= WEIR_MATCHES_MAX - 1;
	known = &d->in_force[n];
	if (WEIR_UNLIKELY(!terms_are_ready(&d->terms[n], known, index)) ||
	    WEIR_UNLIKELY(!subject_is_plain(&asker, known->key, &ask.level.subject)) ||
	    WEIR_UNLIKELY(!ready_gives(known, index, 1, &ask)))
		return false;
	d->subjects[n] = ask.level.subject;
	return true;
}

/* The built-in limits that the server has: a bit for each slot. */
static __always_inline __u32 inside_limits_of(__u32 traits)
{
	return traits / WEIR_SERVER_LIMITED & ((1U << WEIR_BUILTIN_LIMITS) - 1);
}

/* The highest slot of some: which bit of a number below 16 is its highest, two bits for each number. */
static __always_inline __u32 inside_narrowest(__u32 limits)
{
	return 0xffffaa50U >> 2 * limits & 3;
}
_Static_assert(WEIR_BUILTIN_LIMITS == 4, "slots of built-in limits have two bits");

/* Each has admitted the request. */
static __always_inline void inside_limits_admitted(__u32 server, __u32 limits)
{
	__u32 slot;

#pragma clang loop unroll(disable)
	for (__u32 n = 0; n < WEIR_BUILTIN_LIMITS && limits; n++, limits ^= 1U << slot) {
		slot = inside_narrowest(limits);
		limit_tally(&(struct said){ .index = weir_limit_index(server, slot), .charged = 1 }, 1, 1);
	}
}

#define INSIDE_ALL_GAVE (1U << 31)

/*
 * Asks the built-in limits, the narrowest first, as limits_find() has them. Says by bits which have given a token; after one that has not,
 * none is asked. INSIDE_ALL_GAVE: each did, and that is counted.
 */
__noinline int inside_limits_give(struct decision *d, const struct inside_request *r, __u32 server, __u32 traits)
{
	const __u32 limits = inside_limits_of(traits);
	__u32 charged = 0, left = limits, slot;

	if (!d || !r)
		return 0;
#pragma clang loop unroll(disable)
	for (__u32 n = 0; n < WEIR_BUILTIN_LIMITS && left; n++, left ^= 1U << slot) {
		slot = inside_narrowest(left);
		if (WEIR_UNLIKELY(!inside_limit_gives(d, n, r, weir_limit_index(server, slot))))
			return charged;
		charged |= 1U << n;
	}
	inside_limits_admitted(server, limits);
	return charged | INSIDE_ALL_GAVE;
}

#endif
