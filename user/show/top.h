/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who makes the load, as people look at it: rates between two answers of the agent's command `top`, kept for a while. Knows
 * neither a terminal nor the agent.
 */
#ifndef WEIR_USER_SHOW_TOP_H
#define WEIR_USER_SHOW_TOP_H

#include <jansson.h>
#include <stdbool.h>

#include "weir/base/types.h"

#include "base/error.h"

#define TOP_TREND 12 /* samples that are kept of each subject */

enum top_number {
	TOP_REQUESTS,
	TOP_REFUSED,
	TOP_DRY_RUN,
	TOP_HELD,
	TOP_NUMBERS,
};
extern const char *const top_numbers[TOP_NUMBERS]; /* as the agent and --sort call them */

struct top_rates {
	double of[TOP_NUMBERS]; /* a second */
};

struct top_subject {
	json_t *row; /* as the agent has it */
	char *key;   /* what tells it apart */
	__u64 counts[TOP_NUMBERS];
	__u64 first_ns, last_ns; /* CLOCK_MONOTONIC; 0: not known */
	struct top_rates rates;
	double share;		 /* of all requests of its server, 0 to 1 */
	double trend[TOP_TREND]; /* requests a second, the latest last */
	bool fresh;		 /* it is in the latest answer */
};

struct top {
	struct top_subject *subjects;
	size_t n, room;
	json_t *totals;	      /* the servers of the latest answer */
	__u64 now_ns;	      /* of the latest answer; 0: there was none */
	struct top_rates all; /* of all servers together */
};

/* What tells a row of the agent's apart; NULL without memory. The caller frees it. And: has one of its names this text in it? */
char *top_row_key(json_t *row);
bool top_row_matches(json_t *row, const char *text);

void top_clear(struct top *top);
#define CLEANUP_TOP __attribute__((cleanup(top_clear)))

/* Takes in an answer. Rates are those since the one before; after the first all are 0. -EPROTO, -ENOMEM. */
int top_update(struct top *top, json_t *answer, struct error *err);

/* The highest rate first; equal ones by the next rates, then by their keys. */
void top_sort(struct top *top, enum top_number by);
int top_number_parse(const char *text, enum top_number *out, struct error *err);

/* Has some member of the row this text in it? */
bool top_matches(const struct top_subject *subject, const char *text);

/* A line of TOP_TREND characters, scaled to the highest of them. The caller frees it. */
char *top_trend_text(const struct top_subject *subject);

#endif
