/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The penalty of a limit for subjects that do not back off. A subject's requests that the limit refuses, one after the
 * other, are its failures; each lasts until the policy's delay (backoff.h) is over, and no less than until the limit would
 * admit. Until then the subject is penalised: its requests are refused and told weir_penalty_wait_ns(), no limit is asked
 * and no failure counted, so that what Retry-After says stays true however often it is ignored. The first request after
 * that is asked of the limits as ever.
 *
 *   wait = weir_penalty_wait_ns(word, now)                not 0: refuse, tell wait, touch nothing
 *   the limit refuses: weir_penalty_refused(...)          the word to put in its place, and the wait to tell
 *   every limit admits: 0 in its place
 *   a refusal is to be decided anew: the word before in its place, if nobody has changed it since
 *
 * A limit that would admit a request that another one refuses says neither: to its subject nothing has happened.
 *
 * The state is one word, changed by compare-and-swap: when the penalty ends, and how many failures there were.
 */
#ifndef WEIR_LIMIT_PENALTY_H
#define WEIR_LIMIT_PENALTY_H

#include "weir/limit/backoff.h"

/* No longer than the longest Retry-After: a client that waits as long as it was told is not refused again. */
#define WEIR_PENALTY_MAX_NS (WEIR_RETRY_MAX_S * WEIR_NS_PER_S)

/* The lowest bits are the failures, of which the largest number stands for all above; then the end in steps of 1024 ns, rounded down. */
#define WEIR_PENALTY_BITS 16
#define WEIR_PENALTY_FAILURES ((1U << WEIR_PENALTY_BITS) - 1)
#define WEIR_PENALTY_STEP 10

/* What is kept for a subject of a limit: map `buckets`. */
struct weir_kept {
	struct weir_bucket bucket;
	__u64 penalty; /* its word, as the subject writes it (owned.h) */
};
WEIR_ASSERT_SIZE(struct weir_kept, 64);

/* Of a subject that is new. */
WEIR_INLINE struct weir_kept weir_kept_new(__u64 subject)
{
	return (struct weir_kept){
		.bucket = { .word = weir_owned(0, subject), .subject = subject },
		.penalty = weir_owned(0, subject),
	};
}

WEIR_INLINE __u32 weir_penalty_failures(__u64 word)
{
	return word & WEIR_PENALTY_FAILURES;
}

/* CLOCK_MONOTONIC */
WEIR_INLINE __u64 weir_penalty_end_ns(__u64 word)
{
	return word >> WEIR_PENALTY_BITS << WEIR_PENALTY_STEP;
}

/* How long the subject is still penalised; 0: ask the limit. */
WEIR_INLINE __u64 weir_penalty_wait_ns(__u64 word, __u64 now_ns)
{
	__u64 end_ns = weir_penalty_end_ns(word);

	return end_ns > now_ns ? end_ns - now_ns : 0;
}

/*
 * The limit, which would admit after wait_ns (or WEIR_NEVER_NS), refuses a subject that is not penalised. Returns its word
 * from now on; *told_ns: the wait to tell, at most WEIR_PENALTY_MAX_NS. Where the policy has a bucket, its caller asks
 * weir_backoff_bucket_ns() before, and has weir_backoff_cap() of what that said in wait_ns.
 */
WEIR_INLINE __u64 weir_penalty_refused(const struct weir_backoff *policy, __u64 word, __u64 now_ns, __u64 wait_ns,
				       __u64 *told_ns)
{
	__u32 before = weir_penalty_failures(word);
	struct weir_backoff_state state = { .failures = before < WEIR_PENALTY_FAILURES ? before : ~0U };
	__u64 delay_ns = weir_backoff_longest(weir_backoff_when(policy, &state, NULL, now_ns), wait_ns);
	__u64 failures = state.failures < WEIR_PENALTY_FAILURES ? state.failures : WEIR_PENALTY_FAILURES;

	*told_ns = delay_ns < WEIR_PENALTY_MAX_NS ? delay_ns : WEIR_PENALTY_MAX_NS;
	return (now_ns + *told_ns) >> WEIR_PENALTY_STEP << WEIR_PENALTY_BITS | failures;
}

/* False: it is not the subject's any more. */
WEIR_INLINE bool weir_penalty_read(const struct weir_kept *kept, __u64 subject, __u64 *word)
{
	return weir_owned_read(&kept->penalty, &kept->bucket.subject, subject, WEIR_PENALTY_FAILURES, word);
}

/*
 * Begins a penalty, ends one (with 0), or undoes what has begun one (the same two, the other way round). False: the subject's
 * word is not the one before any more, and stays.
 */
WEIR_INLINE bool weir_penalty_swap(__u64 *word, __u64 subject, __u64 before, __u64 after)
{
	return weir_owned_swap(word, subject, before, after);
}

/* A refusal by the limit, and what it has come to. */
struct weir_failure {
	__u64 wait_ns;	     /* after which the limit would admit; then what to tell */
	__u64 before, after; /* the subject's words, if it has begun a penalty */
	bool looks;	     /* none is to begin */
	bool begins;
};

/* One try. A subject that is penalised already is told the rest of its wait. False: someone else has changed the word meanwhile. */
WEIR_INLINE bool weir_penalty_try(struct weir_kept *kept, __u64 subject, const struct weir_backoff *policy,
				  __u64 now_ns, struct weir_failure *f)
{
	__u64 told_ns;

	if (!weir_penalty_read(kept, subject, &f->before))
		return true;
	told_ns = weir_penalty_wait_ns(f->before, now_ns);
	if (!told_ns) {
		f->after = weir_penalty_refused(policy, f->before, now_ns, f->wait_ns, &told_ns);
		if (!f->looks && !weir_penalty_swap(&kept->penalty, subject, f->before, f->after))
			return false;
		f->begins = !f->looks;
	}
	f->wait_ns = told_ns;
	return true;
}

#endif
