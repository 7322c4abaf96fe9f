/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The packet player: a client, a server and weir's translation between them, under everything a network does. Prints
 * TAP. Without arguments: the scenarios, then as many random schedules as `make test` has time for.
 *
 *   player [--schedules N] [--seed S] [--seconds T] [--trace]
 *
 * --seed S plays the random schedule S alone (or N of them from S on, with --schedules).
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "config.h"
#include "scenarios.h"

#ifndef DEFAULT_SCHEDULES
#define DEFAULT_SCHEDULES 20000
#endif

struct options {
	uint64_t schedules, seed, seconds;
	bool trace, scenarios;
};

static int options_read(int argc, char **argv, struct options *o)
{
	static const struct option known[] = {
		{ "schedules", required_argument, NULL, 'n' },
		{ "seed", required_argument, NULL, 's' },
		{ "seconds", required_argument, NULL, 't' },
		{ "trace", no_argument, NULL, 'v' },
		{ 0 },
	};
	bool counted = false;
	int c;

	*o = (struct options){ .schedules = DEFAULT_SCHEDULES, .seed = 1, .scenarios = argc == 1 };
	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 'n':
			o->schedules = strtoull(optarg, NULL, 0);
			counted = true;
			break;
		case 's':
			o->seed = strtoull(optarg, NULL, 0);
			o->schedules = counted ? o->schedules : 1;
			break;
		case 't':
			o->seconds = strtoull(optarg, NULL, 0);
			break;
		case 'v':
			o->trace = true;
			break;
		default:
			return -1;
		}
	}
	return optind == argc ? 0 : -1;
}

static uint64_t seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* What the schedules were made of, so that one who reads the output sees that they were not empty. */
struct totals {
	uint64_t schedules, failed, packets, answered, sheds, rejects, closes, resets, hunted, asks, retaken,
		contradicted;
};

static void totals_add(struct totals *total, const struct world *w)
{
	total->schedules++;
	total->packets += w->packets;
	total->answered += w->client.answered;
	total->sheds += w->box.sheds;
	total->rejects += w->box.rejects;
	total->closes += w->box.closes;
	total->resets += w->tcp[CLIENT].end == TCP_END_RESET || w->tcp[SERVER].end == TCP_END_RESET;
	total->asks += w->box.asks;
	total->retaken += w->box.retaken;
	total->contradicted += w->box.contradicted;
	total->hunted += w->config.box.attach_ns && w->box.followed;
}

static bool play_random(struct world *w, const struct options *o, unsigned int number)
{
	uint64_t until = o->seconds ? seconds_now() + o->seconds : NEVER;
	struct totals total = { 0 };

	for (uint64_t seed = o->seed; seed - o->seed < o->schedules && total.failed < 20; seed++) {
		struct config c = config_random(seed);

		if (o->seconds && seed % 64 == 0 && seconds_now() >= until)
			break;
		if (!world_play(w, &c)) {
			total.failed++;
			printf("# seed %llu: %s\n", (unsigned long long)seed, w->why);
			fflush(stdout);
		}
		totals_add(&total, w);
	}
	printf("# %llu schedules, %llu packets, %llu answers, %llu requests shed, %llu rejected, %llu closes, "
	       "%llu resets, %llu joined in mid-stream, the socket asked %llu times (%llu times read again, %llu times given "
	       "up)\n",
	       (unsigned long long)total.schedules, (unsigned long long)total.packets,
	       (unsigned long long)total.answered, (unsigned long long)total.sheds, (unsigned long long)total.rejects,
	       (unsigned long long)total.closes, (unsigned long long)total.resets, (unsigned long long)total.hunted,
	       (unsigned long long)total.asks, (unsigned long long)total.retaken,
	       (unsigned long long)total.contradicted);
	printf("%s %u - random schedules from seed %llu on\n", total.failed ? "not ok" : "ok", number,
	       (unsigned long long)o->seed);
	return !total.failed;
}

int main(int argc, char **argv)
{
	static struct world w;
	struct options o;
	unsigned int tests = 0;
	bool fine = true;

	if (options_read(argc, argv, &o) < 0) {
		fprintf(stderr, "usage: player [--schedules N] [--seed S] [--seconds T] [--trace]\n");
		return 2;
	}
	world_init(&w);
	w.trace = o.trace;
	printf("TAP version 13\n");
	if (o.scenarios)
		fine = scenarios_play(&w, &tests);
	fine &= play_random(&w, &o, ++tests);
	printf("1..%u\n", tests);
	world_free(&w);
	return fine ? 0 : 1;
}
