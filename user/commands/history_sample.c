/* SPDX-License-Identifier: GPL-2.0 */
#include "commands/history_sample.h"

#include <errno.h>
#include <string.h>

#include "weir/base/duration.h"

#include "agent/inside.h"
#include "agent/limit_counts.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "commands/top.h"

#define ROWS_OF_A_KIND METRICS_TOP_LEAST

struct sampling {
	struct agent *agent;
	const struct history_base *base;
	struct history_sample *out;
	double seconds;
};

void history_sample_clear(struct history_sample *sample)
{
	history_base_clear(&sample->now);
	json_decref(sample->rows);
	sample->rows = NULL;
}

/* --- counters, as lists */

static json_t *counts_list(const struct weir_heavy_counts *counts)
{
	return json_pack("[I, I, I, I]", (json_int_t)counts->requests, (json_int_t)counts->refused,
			 (json_int_t)counts->dry_run, (json_int_t)counts->held);
}

/* A counter that went back has begun anew. */
static struct weir_heavy_counts counts_since(json_t *list, const struct weir_heavy_counts *now)
{
	json_int_t requests, refused, dry_run, held;

	if (json_unpack(list, "[I, I, I, I]", &requests, &refused, &dry_run, &held) ||
	    now->requests < (__u64)requests || now->refused < (__u64)refused || now->dry_run < (__u64)dry_run ||
	    now->held < (__u64)held)
		return *now;
	return (struct weir_heavy_counts){
		.requests = now->requests - requests,
		.refused = now->refused - refused,
		.dry_run = now->dry_run - dry_run,
		.held = now->held - held,
	};
}

/* --- rows */

/* Takes over row. */
static void add_row(struct sampling *s, const char *by, json_t *row)
{
	json_t *whole = json_pack("{s:I, s:f, s:s}", "time", s->out->now.time - (json_int_t)(s->seconds + 0.5),
				  "seconds", s->seconds, "by", by);

	json_object_update(whole, row);
	json_decref(row);
	json_array_append_new(s->out->rows, whole);
}

static void add_counted(struct sampling *s, const char *by, const char *server, const char *limit,
			const struct weir_heavy_counts *counts)
{
	json_t *row;

	if (!counts->requests && !counts->held)
		return;
	row = top_counts_json(counts);
	json_object_set_new(row, "server", json_string(server));
	if (limit)
		json_object_set_new(row, "limit", json_string(limit));
	add_row(s, by, row);
}

static int sample_limits(struct sampling *s, int slot, json_t *then, json_t *now, struct error *err)
{
	const char *server = s->agent->state.servers[slot]->name;
	struct metrics_limit *limits = NULL;
	int n = limits_measure(s->agent, slot, NULL, &limits, err);

	for (int i = 0; i < n; i++) {
		const struct weir_heavy_counts counts = top_limit_counts(&limits[i].counts);
		const struct weir_heavy_counts since = counts_since(json_object_get(then, limits[i].name), &counts);

		add_counted(s, "limit", server, limits[i].name, &since);
		json_object_set_new(now, limits[i].name, counts_list(&counts));
	}
	if (n >= 0)
		limits_measured_free(limits, n);
	return n < 0 ? n : 0;
}

/*
 * Of a server that is looked into, records are the requests once more that are counted inside. An agent before this one may
 * not have noted where its records stood: then they are left in.
 */
static void sample_total(struct sampling *s, int slot, json_t *then, const struct weir_heavy_counts *total,
			 __u64 records)
{
	struct weir_heavy_counts since = counts_since(json_object_get(then, "total"), total);
	json_t *noted = json_object_get(then, "records");
	__u64 before = json_integer_value(noted);

	if (inside_explained(s->agent, slot) && (noted || !then))
		since.requests -= records >= before ? records - before : records;
	add_counted(s, "server", s->agent->state.servers[slot]->name, NULL, &since);
}

static int sample_counters(struct sampling *s, struct net *net, int slot, struct error *err)
{
	const char *name = s->agent->state.servers[slot]->name;
	json_t *then = json_object_get(s->base->servers, name), *limits = json_object();
	__u64 counters[WEIR_REASON_COUNT];
	struct weir_heavy_counts total;
	int ret = datapath_counters(net->dp, slot, counters, err);

	if (ret) {
		json_decref(limits);
		return ret;
	}
	total = top_total(counters);
	sample_total(s, slot, then, &total, top_records(counters));
	ret = sample_limits(s, slot, json_object_get(then, "limits"), limits, err);
	json_object_set_new(s->out->now.servers, name,
			    json_pack("{s:o, s:I, s:o}", "total", counts_list(&total), "records",
				      (json_int_t)top_records(counters), "limits", limits));
	return ret;
}

/* The heaviest of each kind. rows: of the whole namespace, in their order. */
static void sample_rows(struct sampling *s, struct net *net, int slot, const struct weir_heavy_row *rows, int n)
{
	int found[WEIR_HEAVY_BYS] = { 0 };

	for (int i = 0; i < n; i++) {
		const struct weir_heavy_row *row = &rows[i];

		if (row->what.server != slot || row->what.by >= WEIR_HEAVY_BYS ||
		    found[row->what.by]++ >= ROWS_OF_A_KIND)
			continue;
		add_row(s, top_bys[row->what.by], top_row_json(net, s->agent->state.servers[slot], row));
	}
}

/* --- namespaces */

static const struct history_mark *mark_of(const struct history_base *base, __u64 cookie)
{
	for (size_t i = 0; i < base->n_nets; i++)
		if (base->nets[i].cookie == cookie)
			return &base->nets[i].mark;
	return NULL;
}

static int add_mark(struct history_base *base, __u64 cookie, const struct heavy_places *places)
{
	struct history_net *nets = reallocarray(base->nets, base->n_nets + 1, sizeof(*nets));

	if (!nets)
		return -ENOMEM;
	base->nets = nets;
	nets[base->n_nets] = (struct history_net){ .cookie = cookie };
	return history_mark_set(&nets[base->n_nets++].mark, places);
}

/* The namespace stays meanwhile: only jobs end one. */
static int read_places(struct net *net, struct heavy_places *places, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_heavy_places(net->dp, places, err);
}

static int sample_net(struct sampling *s, struct net *net, struct error *err)
{
	CLEANUP_HEAVY_PLACES struct heavy_places places = { 0 };
	CLEANUP_FREE struct weir_heavy_row *rows = NULL;
	struct agent *agent = s->agent;
	int n, ret = read_places(net, &places, err);

	if (ret)
		return ret;
	n = history_added(mark_of(s->base, net->cookie), &places, &rows);
	if (n < 0 || add_mark(&s->out->now, net->cookie, &places))
		return error_set(err, -ENOMEM, "out of memory");
	for (int slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++) {
		const struct server *server = agent->state.servers[slot];

		if (!server || !agent->servers[slot].in_force || server_net(agent, server) != net)
			continue;
		ret = sample_counters(s, net, slot, err);
		if (!ret)
			sample_rows(s, net, slot, rows, n);
	}
	return ret;
}

int history_sample(struct agent *agent, const struct history_base *base, struct history_sample *out, struct error *err)
{
	struct sampling s = { .agent = agent, .base = base, .out = out };
	__u64 ms;
	int ret = 0;

	*out = (struct history_sample){ .rows = json_array() };
	out->now.servers = json_object();
	out->now.time = time(NULL);
	out->now.time_ns = clock_ns(CLOCK_MONOTONIC);
	ms = (out->now.time_ns - base->time_ns) / WEIR_NS_PER_MS;
	s.seconds = ms / 1000.0;
	for (struct net *net = agent->nets; net && !ret; net = net->next)
		ret = sample_net(&s, net, err);
	return ret;
}
