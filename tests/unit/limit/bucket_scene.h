/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One bucket, and actors who do something with it at once (interleaved.h): they take, settle, refund, change its limit's rate, and
 * give its memory to another subject.
 */
#ifndef WEIR_TESTS_UNIT_BUCKET_SCENE_H
#define WEIR_TESTS_UNIT_BUCKET_SCENE_H

#include "interleaved.h"
#include "weir/limit/penalty.h"

#define NOW (1000 * WEIR_NS_PER_S) /* when all of them ask */
#define QPS(n) ((n)*WEIR_QPS)

/* What an actor does. */
enum deed {
	NOTHING,
	TAKE,
	TAKE_HEAVY,   /* weighs 3 */
	WAIT,	      /* takes, also if the token is there only later */
	SETTLE,	      /* only looks, and brings the bucket to the rate in force */
	REFUND,	      /* of a token that was taken before */
	CHANGE,	      /* the limit gets another rate */
	CHANGE_AGAIN, /* or this one */
	EVICT,	      /* the memory is another subject's, whose bucket is full */
	EVICT_USED,   /* and who takes a token at once */
};

#define MINE 0x1122334455667788ULL
#define OTHER 0x1122334455667789ULL

struct outcome {
	int taken[INTERLEAVED_ACTORS];
	__u64 wait_ns[INTERLEAVED_ACTORS];
	struct weir_tokens left;
};

struct bucket_scene {
	struct weir_bucket at_first;
	struct weir_rate_history history_at_first;
	enum deed deeds[INTERLEAVED_ACTORS];
	struct {
		struct weir_bucket bucket;
		struct weir_rate_history history;
		bool evicted; /* nobody finds the bucket by its first subject any more */
	} shared;
	bool changes, evicts; /* someone does */
	bool subject_first;   /* of what is written of the other subject's */
	struct outcome now;
};

extern struct bucket_scene scene;

/* A bucket to begin with: `n` tokens were taken `ago_ns` ago. */
void scene_bucket(__u64 per_ns, __u64 burst, int n, __u64 ago_ns);

/* Each actor does its deed. Returns how many states there were; `end` is called at the end of each way. */
unsigned long scene_play(int actors, void (*end)(void));
/* One actor after the other, in each order. */
void scene_orders(int actors, void (*end)(void));

/* As near as 4 ns of gain: two may each lose less than 2 of a bucket that has just run full. */
bool same_tokens(struct weir_tokens a, struct weir_tokens b);

#endif
