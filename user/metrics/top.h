/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The users with the most requests of each server, as metrics. A table has a fixed number of places, so the number of series is
 * bounded. Each minute the history says who asked most, at most METRICS_TOP_LEAST of a server. Who is new among them gets a
 * place. When all are taken, the one who has not been among them for the longest time gives his up. So series stay, and what is
 * counted of somebody never falls while he has his place.
 */
#ifndef WEIR_USER_METRICS_TOP_H
#define WEIR_USER_METRICS_TOP_H

#include <jansson.h>

#include "weir/base/types.h"

#define METRICS_TOP_LEAST 10 /* those of one minute have room */
#define METRICS_TOP_MAX 1000

struct metrics_top {
	size_t places; /* of each server; 0: nothing is kept */
	__u64 minute;
	json_t *servers; /* {SERVER: {USER: {"minute", "requests", "refused", "dry_run", "held"}}} */
};

void metrics_top_clear(struct metrics_top *top);

/* Takes in the rows of one minute, [{"server", "by", "user", "requests", ...}]: those by user. */
void metrics_top_add(struct metrics_top *top, json_t *rows);
/* The server has ended. */
void metrics_top_forget(struct metrics_top *top, const char *server);

void metrics_top_families(const struct metrics_top *top, json_t *families);

#endif
