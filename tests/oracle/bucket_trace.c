/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random traces for a token bucket, and whether bucket.h decides them as golang.org/x/time/rate does (rate.go);
 * a tracer (tracer.h).
 *
 * Every decision has to be the same and every wait the same to the ns, except where x/time/rate, which counts in
 * float64, can not know: it refuses from 1 ns short of a token on, and rates whose tokens come at whole ns meet that
 * very instant (the traces aim at it), where the last bit of a float64 decides. So a decision within a million millionth
 * of a token of that instant may differ: such are counted, at most NEAR_MAX of a million, and the bucket then follows
 * the oracle's decision, so that both go on with the same tokens.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rate.h"
#include "tracer.h"
#include "weir/limit/bucket.h"

#define NEAR (WEIR_TOKEN / 1000000000000)
#define NEAR_MAX 10000 /* of a million decisions */
#define TAKES 1000     /* of one trace */
#define END_NS (4000000000ULL * WEIR_NS_PER_S)
#define MINUTE (60 * WEIR_NS_PER_S)
#define DAY (1440 * MINUTE)

struct kind {
	const char *name;
	const char *rates[6]; /* every second one; the others are random */
	__u64 bursts[4];
	int smallest, largest; /* powers of ten that random rates reach, units a ns */
	__u64 gap_ns;	       /* the longest pause */
	__u32 changes;	       /* one for so many takes, 0: none */
	__u32 backwards;       /* likewise */
};

static const struct kind kinds[] = {
	{
		.name = "steady",
		.rates = { "5", "100", "0.333333333", "3.7", "20.5", "1000" },
		.bursts = { 1, 5, 30, 200 },
		.smallest = 8,
		.largest = 13,
		.gap_ns = MINUTE,
	},
	{
		.name = "days",
		.rates = { "0.333333333", "3.7", "0.01", "0.001", "1000000", "0.25" },
		.bursts = { 1, 3, 50, 400 },
		.smallest = 5,
		.largest = 11,
		.gap_ns = 3 * DAY,
	},
	{
		.name = "extremes",
		.rates = { "0", "0.000000001", "1000000000", "700000000", "999999999.999999999", "1000000" },
		.bursts = { 0, 1, 2, WEIR_BURST_MAX },
		.smallest = 0,
		.largest = 18,
		.gap_ns = 400 * DAY,
	},
	{
		.name = "changes",
		.rates = { "5", "0", "3.7", "1000000", "0.333333333", "50" },
		.bursts = { 0, 1, 10, 100 },
		.smallest = 7,
		.largest = 15,
		.gap_ns = MINUTE,
		.changes = 15,
	},
	{
		.name = "backwards",
		.rates = { "5", "100", "3.7", "0.01", "0" },
		.bursts = { 1, 5, 20, 100 },
		.smallest = 8,
		.largest = 13,
		.gap_ns = MINUTE,
		.changes = 50,
		.backwards = 5,
	},
};

struct simulation {
	struct weir_bucket bucket;
	struct weir_rate_history history;
};

static void start(struct simulation *s, __u64 per_ns, __u64 burst)
{
	*s = (struct simulation){ .history = weir_rate_always(per_ns, burst) };
}

static void change(struct simulation *s, __u64 now, __u64 per_ns, __u64 burst)
{
	weir_rate_history_push(&s->history, per_ns, burst, now);
}

/* --- making traces */

static __u64 random_rate(const struct kind *kind)
{
	__u64 per_ns = 1, power = kind->smallest + below(kind->largest - kind->smallest + 1);

	if (below(2)) {
		const char *text = NULL;

		while (!text)
			text = kind->rates[below(6)];
		if (weir_qps_parse(text, &per_ns))
			abort();
		return per_ns;
	}
	for (; power; power--)
		per_ns *= 10;
	return 1 + below(per_ns);
}

static __u64 random_burst(const struct kind *kind)
{
	__u64 burst = kind->bursts[below(4)];

	return burst > 1 && below(2) ? 1 + below(burst) : burst;
}

/* Where the next request comes: at random, or right where a token is due. */
static __u64 random_step(const struct kind *kind, struct simulation *s, __u64 now)
{
	__u64 per_ns = s->history.rates[0].per_ns;
	__u64 interval = per_ns ? WEIR_TOKEN / per_ns : WEIR_NS_PER_S;
	__u64 wait = weir_bucket_wait_ns(&s->bucket, &s->history, now);

	switch (below(8)) {
	case 0:
		return 0;
	case 1:
		return below(1000);
	case 2:
	case 3:
		return below(interval);
	case 4:
		return below(3 * interval);
	case 5:
		return wait == WEIR_NEVER_NS || !wait ? 1 : wait - 1 + below(16) / 7;
	case 6:
		return wait == WEIR_NEVER_NS ? below(interval) : wait / 2;
	default:
		return below(8) ? below(20 * interval) : below(kind->gap_ns);
	}
}

static void print_rate(__u64 per_ns, __u64 burst)
{
	char text[WEIR_QPS_TEXT];

	weir_qps_format(per_ns, text, sizeof(text));
	printf(" %s %llu\n", text, burst);
}

static void make_trace(size_t index)
{
	const struct kind *kind = &kinds[index];
	__u64 now = 1 + below(DAY), per_ns = random_rate(kind), burst = random_burst(kind);
	bool constant = per_ns == 0; /* x/time/rate's own limit 0, which older versions can not change */
	struct simulation s;
	__u32 changed = 0;

	start(&s, per_ns, burst);
	printf("rate");
	print_rate(per_ns, burst);
	for (int i = 0; i < TAKES; i++) {
		__u64 step = random_step(kind, &s, now), earlier = 0;

		if (now + step < END_NS)
			now += step;
		/* More changes between two requests than the history holds are another matter: test_bucket_changes.c. */
		if (kind->changes && !constant && changed < WEIR_RATES - 1 && !below(kind->changes)) {
			__u64 last_per_ns = per_ns, last_burst = burst;

			per_ns = random_rate(kind);
			burst = random_burst(kind);
			/* Setting what is in force is no change here; there it moves the clock, which only then shows. */
			if (kind->backwards && per_ns == last_per_ns && burst == last_burst)
				burst++;
			printf("set %llu", ++now);
			print_rate(per_ns, burst);
			change(&s, now, per_ns, burst);
			changed++;
			i -= below(2); /* sometimes several in a row */
			continue;
		}
		if (kind->backwards && !below(kind->backwards))
			earlier = below(now < MINUTE ? now : MINUTE);
		printf("take %llu\n", now - earlier);
		weir_bucket_take(&s.bucket, &s.history, now - earlier);
		changed = 0;
	}
}

/* --- comparing */

static struct simulation simulation;

static struct {
	__u64 traces, passed, refused, near;
	__u64 latest_ns; /* each trace begins on its first day */
} tally;

/* The units by which the bucket is away from where x/time/rate begins to refuse. */
static __u64 distance(struct simulation *s, __u64 now)
{
	struct weir_tokens tokens = weir_bucket_tokens(&s->bucket, &s->history, now);
	/* In units: the last place of a binary fraction is far below the tolerance. */
	__int128 units = (__int128)tokens.high * WEIR_TOKEN +
			 (__int128)(((unsigned __int128)tokens.low * WEIR_TOKEN) >> 64);
	__int128 short_of = (__int128)WEIR_TOKEN - s->history.rates[0].per_ns - units;

	if (short_of < 0)
		short_of = -short_of;
	return short_of > (__int128)WEIR_TOKEN ? WEIR_TOKEN : short_of;
}

static void take_anyway(struct simulation *s, __u64 now)
{
	struct weir_level level = { .subject = s->bucket.subject };

	weir_bucket_level(&s->bucket, &s->history, now, &level);
	if (weir_bucket_take_level(&s->bucket, &s->history.rates[0], &level, 1) != WEIR_TAKEN)
		abort();
}

/* Is this the wait that the oracle printed, to the ns or as near as above? */
static bool same_wait(__u64 wait, const char *decision, __u64 per_ns)
{
	__u64 theirs, difference;

	if (!strcmp(decision, "never"))
		return wait == WEIR_NEVER_NS;
	theirs = strtoull(decision, NULL, 10);
	difference = wait > theirs ? wait - theirs : theirs - wait;
	return wait != WEIR_NEVER_NS && difference <= 1 + NEAR / per_ns;
}

static bool check_take(struct simulation *s, __u64 now, const char *decision)
{
	bool theirs = !strcmp(decision, "pass");
	__u64 per_ns = s->history.rates[0].per_ns;
	__u64 wait = weir_bucket_wait_ns(&s->bucket, &s->history, now);
	struct simulation before = *s;
	bool ours = weir_bucket_take(&s->bucket, &s->history, now);

	if (theirs)
		tally.passed++;
	else
		tally.refused++;
	if (ours == theirs)
		return ours || same_wait(wait, decision, per_ns);
	if (distance(&before, now) > NEAR)
		return false;
	tally.near++;
	*s = before;
	if (theirs)
		take_anyway(s, now);
	return true;
}

static bool parse_rate(const char *qps, const char *tokens, __u64 *per_ns, __u64 *burst)
{
	return !weir_qps_parse(qps, per_ns) && !weir_burst_parse(tokens, burst);
}

static bool check_line(char *line, FILE *decisions)
{
	struct simulation *s = &simulation;
	char decision[32], *words[5] = {}, *rest = line;
	__u64 now, per_ns, burst;
	int n = 0;

	while (n < 5 && (words[n] = strtok_r(rest, " \n", &rest)))
		n++;
	if (n == 2 && !strcmp(words[0], "take")) {
		now = strtoull(words[1], NULL, 10);
		if (now > tally.latest_ns)
			tally.latest_ns = now;
		return fscanf(decisions, "%31s", decision) == 1 && check_take(s, now, decision);
	}
	if (n == 4 && !strcmp(words[0], "set") && parse_rate(words[2], words[3], &per_ns, &burst)) {
		change(s, strtoull(words[1], NULL, 10), per_ns, burst);
		return true;
	}
	if (n == 3 && !strcmp(words[0], "rate") && parse_rate(words[1], words[2], &per_ns, &burst)) {
		start(s, per_ns, burst);
		tally.traces++;
		return true;
	}
	return false;
}

static bool sum_up(const char *kind_name)
{
	printf("%s: %llu traces of up to %llu days, %llu passed, %llu refused, %llu within float64 rounding\n",
	       kind_name, tally.traces, tally.latest_ns / DAY, tally.passed, tally.refused, tally.near);
	return tally.passed && tally.refused && tally.near <= (tally.passed + tally.refused) * NEAR_MAX / 1000000;
}

static const char *kind_name(size_t kind)
{
	return kind < sizeof(kinds) / sizeof(*kinds) ? kinds[kind].name : NULL;
}

int main(int argc, char **argv)
{
	static const struct tracer tracer = { "bucket_trace", kind_name, make_trace, check_line, sum_up };

	return tracer_main(&tracer, argc, argv);
}
