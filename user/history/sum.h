/* SPDX-License-Identifier: GPL-2.0 */
/* Rows of the history (files.h), as they are asked for: those of the last minutes, or added up by whom they are of. */
#ifndef WEIR_USER_HISTORY_SUM_H
#define WEIR_USER_HISTORY_SUM_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define HISTORY_ROWS_MAX 20000 /* of an answer: the latest */

/* A limit for each name that one has in mind: what would it have refused? */
struct history_limit {
	double qps, burst;
};

struct history_sum {
	const char *server, *filter; /* NULL: all; filter: a text in one of the names */
	bool added_up;
	const struct history_limit *limit; /* NULL: none */
	json_t *tokens;			   /* of the limit: of each name, when and how many it had left */
	bool taken;			   /* the server has, or had, rows, whatever the filter */
	json_t *rows[HISTORY_ROWS_MAX];	   /* a ring, or: */
	size_t n;			   /* that were put in, the lost ones included */
	json_t *by_key;			   /* sums, if added_up */
};

struct history_sum *history_sum_new(const char *server, const char *filter, bool added_up);
void history_sum_free(struct history_sum *sum);
static inline void cleanup_history_sum(struct history_sum **sum)
{
	history_sum_free(*sum);
}
#define CLEANUP_HISTORY_SUM __attribute__((cleanup(cleanup_history_sum)))

/* history_take: wants all there are. */
bool history_sum_take(void *sum, json_t *row);

/*
 * With a limit each row has `over`: how many of its requests that would have refused, at least, if they had come evenly. Any other
 * way of coming costs more, as a bucket that is full gains nothing.
 *
 * A list: the rows, oldest first; or the sums, the most requests first, which have `minutes` (records that they are of) and
 * `peak` (the most requests a second of one of these) in place of `time`. A new reference.
 */
json_t *history_sum_rows(struct history_sum *sum);
/* Rows that there was no room for. */
size_t history_sum_left_out(const struct history_sum *sum);

#endif
