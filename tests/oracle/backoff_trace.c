/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random traces for back-off policies, and whether backoff.h says what client-go's limiters say (limiters.go); a
 * tracer (tracer.h).
 *
 * Every answer has to be the same to the ns, except for:
 *   - a product of exactly 2^63 ns, which client-go turns into a negative delay: counted, not compared.
 *   - a delay that the bucket sets: x/time/rate adds in float64 what bucket.h adds exactly. It may differ by 1 ns and a
 *     thousand millionth of the time between two tokens: counted.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rate.h"
#include "tracer.h"
#include "weir/limit/backoff.h"

#define ITEMS 8
#define ASKS 1000 /* of one trace */
#define INT64_MAX_NS (~0ULL >> 1)
#define DOUBLE_MAX_NS (1ULL << 53) /* above, float64 has no exact product */
#define YEAR (365 * 86400 * WEIR_NS_PER_S)

static const struct kind {
	const char *name;
	__u32 parts;
	__u32 perhaps; /* parts that only some traces have */
} kinds[] = {
	{ "exponential", WEIR_BACKOFF_EXPONENTIAL, 0 },
	{ "fast-slow", WEIR_BACKOFF_FAST_SLOW, 0 },
	{ "bucket", WEIR_BACKOFF_BUCKET, 0 },
	{ "max-of", WEIR_BACKOFF_EXPONENTIAL | WEIR_BACKOFF_FAST_SLOW, 0 },
	{ "controllers", WEIR_BACKOFF_EXPONENTIAL | WEIR_BACKOFF_BUCKET, 0 },
	{ "anything", 0, ~0U },
};

/* --- making traces */

/* Of any length in bits; sometimes a power of two, whose multiples meet the ends of the range. */
static __u64 random_ns(__u64 max)
{
	__u64 ns = random_u64() >> below(64);

	if (below(8) == 0)
		ns = 1ULL << below(64);
	return ns > max ? max : ns;
}

static void print_policy(const struct kind *kind)
{
	static const char *const rates[] = { "10", "1", "0.5", "3.7", "0.01", "100", "1000", "0.333333333" };
	__u32 parts = kind->parts | (kind->perhaps & random_u64());

	printf("policy");
	if (parts & WEIR_BACKOFF_EXPONENTIAL)
		printf(" %llu %llu", 1 + random_ns(DOUBLE_MAX_NS - 1), random_ns(INT64_MAX_NS - 1));
	else
		printf(" - -");
	if (parts & WEIR_BACKOFF_FAST_SLOW)
		printf(" %llu %llu %llu", random_ns(INT64_MAX_NS - 1), random_ns(INT64_MAX_NS - 1), below(12));
	else
		printf(" - - -");
	if (parts & WEIR_BACKOFF_BUCKET)
		printf(" %s %llu", rates[below(8)], 1 + below(below(2) ? 3 : 200));
	else
		printf(" - -");
	if (parts & WEIR_BACKOFF_MAX_WAIT)
		printf(" %llu\n", random_ns(INT64_MAX_NS - 1));
	else
		printf(" -\n");
}

static void make_trace(size_t kind)
{
	__u64 now = 1 + below(YEAR), gap_ns = 1 + random_ns(100 * WEIR_NS_PER_S);
	__u64 forgets = 2 + below(200); /* one of so many asks */

	print_policy(&kinds[kind]);
	for (int i = 0; i < ASKS; i++) {
		__u64 item = below(ITEMS);

		now += below(4) ? below(gap_ns) : 0;
		if (below(forgets) == 0)
			printf("forget %llu\n", item);
		if (below(4) == 0)
			printf("requeues %llu\n", item);
		else
			printf("when %llu %llu\n", now, item);
	}
}

/* --- comparing */

static struct simulation {
	struct weir_backoff policy;
	struct weir_backoff_state items[ITEMS];
	struct weir_bucket bucket;
} simulation;

static struct {
	__u64 traces, delays, requeues, overflows, rounded;
} tally;

static bool number(const char *word, __u64 *value)
{
	char *end;

	*value = strtoull(word, &end, 10);
	return end != word && !*end;
}

/* Two words are a part, or "-" and "-". */
static bool read_part(struct weir_backoff *policy, enum weir_backoff_parts part, const char *first, __u64 *a,
		      const char *second, __u64 *b)
{
	if (!strcmp(first, "-"))
		return true;
	policy->parts |= part;
	return number(first, a) && number(second, b);
}

static bool read_policy(char *const *words, struct weir_backoff *policy)
{
	__u64 attempts = 0, per_ns, burst;

	*policy = (struct weir_backoff){};
	if (!read_part(policy, WEIR_BACKOFF_EXPONENTIAL, words[0], &policy->base_ns, words[1], &policy->max_ns) ||
	    !read_part(policy, WEIR_BACKOFF_FAST_SLOW, words[2], &policy->fast_ns, words[3], &policy->slow_ns) ||
	    !read_part(policy, WEIR_BACKOFF_MAX_WAIT, words[7], &policy->max_wait_ns, words[7], &policy->max_wait_ns))
		return false;
	if (policy->parts & WEIR_BACKOFF_FAST_SLOW && !number(words[4], &attempts))
		return false;
	policy->attempts = attempts;
	if (!strcmp(words[5], "-"))
		return true;
	policy->parts |= WEIR_BACKOFF_BUCKET;
	if (weir_qps_parse(words[5], &per_ns) || weir_burst_parse(words[6], &burst))
		return false;
	policy->bucket = weir_rate_always(per_ns, burst);
	return true;
}

/* Is it there that client-go's delay becomes negative? */
static bool overflows(const struct weir_backoff *policy, __u32 failures)
{
	return policy->parts & WEIR_BACKOFF_EXPONENTIAL && failures < 64 &&
	       (unsigned __int128)policy->base_ns << failures == (unsigned __int128)1 << 63;
}

static bool check_when(struct simulation *s, __u64 now, __u64 item, const char *answer)
{
	struct weir_backoff_state *state = &s->items[item];
	bool overflow = overflows(&s->policy, state->failures);
	__u64 ours = weir_backoff_when(&s->policy, state, &s->bucket, now), theirs, difference;

	tally.delays++;
	if (!strcmp(answer, "never"))
		return ours == WEIR_NEVER_NS;
	if (overflow) {
		tally.overflows++;
		return true;
	}
	if (!number(answer, &theirs))
		return false;
	difference = ours > theirs ? ours - theirs : theirs - ours;
	if (difference && s->policy.parts & WEIR_BACKOFF_BUCKET) {
		tally.rounded++;
		return difference <= 1 + WEIR_TOKEN / s->policy.bucket.rates[0].per_ns / WEIR_QPS;
	}
	return !difference;
}

static bool check_line(char *line, FILE *answers)
{
	struct simulation *s = &simulation;
	char answer[32], *words[9] = {}, *rest = line;
	__u64 now, item = 0, requeues;
	int n = 0;

	while (n < 9 && (words[n] = strtok_r(rest, " \n", &rest)))
		n++;
	if (n == 9 && !strcmp(words[0], "policy")) {
		*s = (struct simulation){};
		tally.traces++;
		return read_policy(words + 1, &s->policy);
	}
	if (n < 2 || !number(words[n - 1], &item) || item >= ITEMS)
		return false;
	if (n == 2 && !strcmp(words[0], "forget")) {
		weir_backoff_forget(&s->items[item]);
		return true;
	}
	if (fscanf(answers, "%31s", answer) != 1)
		return false;
	if (n == 2 && !strcmp(words[0], "requeues")) {
		tally.requeues++;
		return number(answer, &requeues) && weir_backoff_requeues(&s->policy, &s->items[item]) == requeues;
	}
	return n == 3 && number(words[1], &now) && check_when(s, now, item, answer);
}

static bool sum_up(const char *kind_name)
{
	printf("back-off %s: %llu traces, %llu delays, %llu within float64 rounding, %llu overflows of client-go, "
	       "%llu NumRequeues\n",
	       kind_name, tally.traces, tally.delays, tally.rounded, tally.overflows, tally.requeues);
	return tally.delays && tally.requeues;
}

static const char *kind_name(size_t kind)
{
	return kind < sizeof(kinds) / sizeof(*kinds) ? kinds[kind].name : NULL;
}

int main(int argc, char **argv)
{
	static const struct tracer tracer = { "backoff_trace", kind_name, make_trace, check_line, sum_up };

	return tracer_main(&tracer, argc, argv);
}
