/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inside.h"
#include "agent/limit_counts.h"
#include "agent/servers.h"
#include "weir/base/duration.h"

#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "model/parse.h"

/* Of one that is not in force all is 0. */
static int measure(struct net *net, int slot, __u32 limit, const __u64 *taken, struct metrics_limit *out,
		   struct error *err)
{
	out->taken = taken ? taken[limit] : 0;
	return net ? datapath_limit_counts(net->dp, slot, limit, &out->counts, err) : 0;
}

/* A limit for single subjects alone has no default. */
static void configured(const struct server *server, const struct limit *limit, struct metrics_limit *out)
{
	out->configured = limit->amount.set;
	out->dry_run = server->dry_run || limit->dry_run;
	out->qps = (double)limit->amount.per_ns / WEIR_QPS;
	out->burst = out->in_flight ? limit->amount.seats : limit->amount.burst;
}

static int measure_limits(struct net *net, int slot, const struct server *server, const __u64 *taken,
			  struct metrics_limit *out, struct error *err)
{
	int n = 0, ret = 0;

	for (size_t i = 0; i < server->n_limits && !ret; i++) {
		const struct limit *limit = &server->limits[i];
		struct metrics_limit *measured = &out[n++];

		measured->name = strdup(limit->name);
		measured->in_flight = weir_limit_has_seats(limit->kind);
		configured(server, limit, measured);
		ret = measured->name ? measure(net, slot, limit_slot(limit), taken, measured, err) :
				       error_set(err, -ENOMEM, "out of memory");
	}
	for (size_t i = 0; i < server->priorities.n_levels && !ret; i++) {
		const struct priority_level *level = &server->priorities.levels[i];
		struct metrics_limit *measured = &out[n];

		if (level->exempt)
			continue;
		n++;
		measured->in_flight = true;
		measured->dry_run = server->dry_run;
		if (asprintf(&measured->name, "level/%s", level->name) < 0)
			measured->name = NULL;
		ret = measured->name ? measure(net, slot, limit_slot_of_number(level->number), taken, measured, err) :
				       error_set(err, -ENOMEM, "out of memory");
	}
	return ret ?: n;
}

void limits_taken_clear(struct limits_taken *taken)
{
	for (size_t i = 0; i < taken->n; i++)
		free(taken->of[i].seats);
}

void limits_taken_forget(struct net *net)
{
	net->taken.until_ns = 0;
}

#define SEATS_SIZE (WEIR_MAX_LIMITS * sizeof(__u64))
#define SHORT_NS (10 * WEIR_NS_PER_MS)
#define SHARE 100
#define LONGEST_NS (30 * WEIR_NS_PER_S)

/*
 * A table of many subjects takes long to read, and scrapes must not keep the agent busy. So a reading that took long is used for
 * a hundred times as long, at most half a minute. Changes by others in that time are not seen.
 */
static int read_seats(struct net *net, __u64 *seats, struct error *err)
{
	__u64 now_ns = clock_ns(CLOCK_MONOTONIC), took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int ret;

	if (now_ns < net->taken.until_ns) {
		memcpy(seats, net->taken.seats, SEATS_SIZE);
		return 0;
	}
	ret = datapath_in_flight(net->dp, 0, WEIR_MAX_SERVERS, seats, err);
	took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - took_ns;
	if (ret || took_ns < SHORT_NS)
		return ret;
	if (!net->taken.seats)
		net->taken.seats = malloc(SEATS_SIZE);
	if (!net->taken.seats)
		return 0;
	memcpy(net->taken.seats, seats, SEATS_SIZE);
	net->taken.until_ns = now_ns + (SHARE * took_ns < LONGEST_NS ? SHARE * took_ns : LONGEST_NS);
	return 0;
}

/* Of the namespace, read when it is asked for the first time. NULL: err says why not. */
static const __u64 *taken_in(struct limits_taken *taken, struct net *net, struct error *err)
{
	__u64 *seats;
	size_t i;

	for (i = 0; i < taken->n; i++)
		if (taken->of[i].net == net)
			return taken->of[i].seats;
	seats = calloc(WEIR_MAX_LIMITS, sizeof(*seats));
	if (!seats) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	if (net && read_seats(net, seats, err)) {
		free(seats);
		return NULL;
	}
	taken->of[taken->n].net = net;
	taken->of[taken->n++].seats = seats;
	return seats;
}

int limits_measure(const struct agent *agent, int slot, struct limits_taken *taken, struct metrics_limit **out,
		   struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct net *net = net_in_force(agent, slot);
	size_t most = server->n_limits + server->priorities.n_levels;
	struct metrics_limit *limits = calloc(most + 1, sizeof(*limits));
	const __u64 *seats = limits && taken ? taken_in(taken, net, err) : NULL;
	int ret = taken && !seats ? -EIO : 0;

	if (!limits)
		return error_set(err, -ENOMEM, "out of memory");
	if (!ret)
		ret = measure_limits(net, slot, server, seats ? seats + weir_limit_index(slot, 0) : NULL, limits, err);
	if (ret < 0) {
		limits_measured_free(limits, most);
		return ret;
	}
	*out = limits;
	return ret;
}

void limits_measured_free(struct metrics_limit *limits, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(limits[i].name);
	free(limits);
}

/* --- a limit that has nothing to see */

static bool is_address(__u8 key, const char *subject)
{
	struct subject parsed;

	return key == WEIR_KEY_SOURCE || (key == WEIR_KEY_USER && !parse_subject(key, subject, &parsed, NULL) &&
					  parsed.kind == WEIR_NAME_ADDRESS);
}

bool all_is_unread(const __u64 *counters)
{
	return counters[WEIR_TLS] &&
	       !(counters[WEIR_PASSED] + counters[WEIR_SHED] + counters[WEIR_EXEMPT] + counters[WEIR_DRY_RUN_SHED]);
}

char *server_unread(const struct agent *agent, int slot)
{
	struct net *net = net_in_force(agent, slot);
	__u64 counters[WEIR_REASON_COUNT];
	char *text;

	if (!net || datapath_counters(net->dp, slot, counters, NULL) || !all_is_unread(counters))
		return NULL;
	return asprintf(&text, "no request of this server could be read so far, because %llu connection%s TLS",
			counters[WEIR_TLS], counters[WEIR_TLS] == 1 ? " uses" : "s use") < 0 ?
		       NULL :
		       text;
}

char *limit_unseen(const struct agent *agent, int slot, const struct limit *limit, const char *subject)
{
	bool reads = subject && !is_address(limit->key, subject) && !weir_limit_is_of_connections(limit->kind) &&
		     !inside_explained(agent, slot); /* there, TLS hides nothing */
	CLEANUP_FREE char *unread = reads ? server_unread(agent, slot) : NULL;
	char *text;

	if (!unread || asprintf(&text, "%s: the limit for \"%s\" has no effect on them. Limit addresses, or the total",
				unread, subject) < 0)
		return NULL;
	return text;
}
