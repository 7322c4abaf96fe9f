/* SPDX-License-Identifier: GPL-2.0 */
/* What the servers have counted. */
#include <stdio.h>
#include <string.h>

#include "weir/base/duration.h"

#include "metrics/metrics.h"

/* What there was too much of. */
static const char *shed_reason(enum weir_reason reason)
{
	switch (reason) {
	case WEIR_SHED_IN_FLIGHT:
	case WEIR_SHED_LEVEL:
		return "in_flight";
	case WEIR_SHED_PENALTY:
		return "penalty";
	case WEIR_SHED_DENIED:
		return "denied";
	default:
		return "rate";
	}
}

/* One family for a whole group: a series for each server and reason. */
static void add_group(json_t *families, const struct metrics_snapshot *snapshot,
		      const struct metrics_group_family *family)
{
	json_t *samples = metrics_add_family(families, family->name, "counter", family->help);

	for (size_t i = 0; i < snapshot->n_servers; i++) {
		const struct metrics_server *server = &snapshot->servers[i];

		for (unsigned int reason = 0; reason < WEIR_REASON_COUNT; reason++) {
			json_t *labels;

			if (metrics_reasons[reason].group != family->group)
				continue;
			labels = json_pack("{s:s, s:s}", "server", server->name, family->label,
					   metrics_reasons[reason].label);
			if (family->group == METRICS_SHED)
				json_object_set_new(labels, "reason", json_string(shed_reason(reason)));
			metrics_add_sample(samples, labels, json_integer(server->counters[reason]));
		}
	}
}

#define NOTHING (-1)

/* One series for each server: a counter, or how far one counter is ahead of another. */
static void add_per_server(json_t *families, const struct metrics_snapshot *snapshot, const char *name,
			   const char *type, const char *help, int reason, int minus)
{
	json_t *samples = metrics_add_family(families, name, type, help);

	for (size_t i = 0; i < snapshot->n_servers; i++) {
		const struct metrics_server *server = &snapshot->servers[i];
		__u64 less = minus == NOTHING ? 0 : server->counters[minus];

		metrics_add_sample(samples, json_pack("{s:s}", "server", server->name),
				   json_integer(metrics_difference(server->counters[reason], less)));
	}
}

static void add_connections(json_t *families, const struct metrics_snapshot *snapshot)
{
	char name[96];

	add_per_server(families, snapshot, "weir_connections", "gauge", "Connections in the table.", WEIR_CONN_OPENED,
		       WEIR_CONN_CLOSED);
	add_per_server(families, snapshot, "weir_translated_connections", "gauge",
		       "Connections in the table whose sequence numbers are translated.", WEIR_SPLICE_OPENED,
		       WEIR_SPLICE_CLOSED);
	for (int reason = 0; reason < WEIR_REASON_COUNT; reason++) {
		const char *label = metrics_reasons[reason].label;

		if (metrics_reasons[reason].group != METRICS_CONN)
			continue;
		snprintf(name, sizeof(name), "weir_connections_%s_total", label);
		add_per_server(families, snapshot, name, "counter", metrics_reason_help(reason), reason, NOTHING);
	}
}

/* The table that a server shares with the others of its namespace. */
static void add_table(json_t *families, const struct metrics_snapshot *snapshot)
{
	json_t *used = metrics_add_family(families, "weir_connection_table_entries", "gauge",
					  "Entries in the connection table of the server's network namespace.");
	json_t *max = metrics_add_family(families, "weir_connection_table_max", "gauge", "Size of that table.");

	for (size_t i = 0; i < snapshot->n_servers; i++) {
		const struct metrics_server *server = &snapshot->servers[i];

		metrics_add_sample(used, json_pack("{s:s}", "server", server->name), json_integer(server->conns));
		metrics_add_sample(max, json_pack("{s:s}", "server", server->name), json_integer(server->conns_max));
	}
}

static void add_held(json_t *families, const struct metrics_snapshot *snapshot)
{
	json_t *samples = metrics_add_family(families, "weir_held_seconds_total", "counter",
					     "Total time that records were held back.");

	for (size_t i = 0; i < snapshot->n_servers; i++) {
		const struct metrics_server *server = &snapshot->servers[i];

		metrics_add_sample(samples, json_pack("{s:s}", "server", server->name),
				   json_real(metrics_held_s(server->counters)));
	}
}

/* first: the first bucket's reason. */
static void add_durations(json_t *samples, const struct metrics_server *server, enum weir_reason sum,
			  enum weir_reason first)
{
#define BOUND(ms) (ms) / 1e3,
	static const double bounds_s[] = { WEIR_DURATION_BOUNDS(BOUND) };
#undef BOUND
	json_t *labels = json_pack("{s:s}", "server", server->name);
	__u64 count = 0;
	char bound[16];

	for (unsigned int i = 0; i < WEIR_DURATION_BUCKETS; i++) {
		json_t *bucket = json_copy(labels);

		count += server->counters[first + i];
		strcpy(bound, "+Inf");
		if (i < WEIR_DURATION_BUCKETS - 1)
			snprintf(bound, sizeof(bound), "%g", bounds_s[i]);
		json_object_set_new(bucket, "le", json_string(bound));
		metrics_add_part(samples, "_bucket", bucket, json_integer(count));
	}
	metrics_add_part(samples, "_sum", json_incref(labels),
			 json_real((double)server->counters[sum] / WEIR_NS_PER_S));
	metrics_add_part(samples, "_count", labels, json_integer(count));
}

static void add_histogram(json_t *families, const struct metrics_snapshot *snapshot, const char *name, const char *help,
			  enum weir_reason sum, enum weir_reason first)
{
	json_t *samples = metrics_add_family(families, name, "histogram", help);

	for (size_t i = 0; i < snapshot->n_servers; i++)
		add_durations(samples, &snapshot->servers[i], sum, first);
}

static void add_histograms(json_t *families, const struct metrics_snapshot *snapshot)
{
	add_histogram(families, snapshot, "weir_hold_duration_seconds",
		      "How long records and packets of held traffic waited. Those that did not wait are left out.",
		      WEIR_HELD_NS, WEIR_HELD_1MS);
	add_histogram(
		families, snapshot, "weir_answer_duration_seconds",
		"Time from a request's head until its answer began, of HTTP/1.1 requests that are read on the wire one at a time.",
		WEIR_ANSWER_NS, WEIR_ANSWER_1MS);
}

static void add_paced(json_t *families, const struct metrics_snapshot *snapshot)
{
	json_t *samples = metrics_add_family(
		families, "weir_hold_paced", "gauge",
		"1 if held traffic is paced in a queue, 0 if it is dropped until the limit allows it.");

	for (size_t i = 0; i < snapshot->n_servers; i++) {
		const struct metrics_server *server = &snapshot->servers[i];

		metrics_add_sample(samples, json_pack("{s:s}", "server", server->name), json_integer(server->paced));
	}
}

const char *const metrics_modes[] = { "limiting", "dry-run", "paused", "draining", "starting", "failed", NULL };

const char *const metrics_lanes[] = { "wire", "see", "answer", "hold", NULL };

/* All words have a sample, so that one can be waited for and watched. is: which one it is now. */
static void add_words(json_t *samples, const char *server, const char *label, const char *const *words, const char *is)
{
	for (; *words; words++)
		metrics_add_sample(samples, json_pack("{s:s, s:s}", "server", server, label, *words),
				   json_integer(is && !strcmp(*words, is)));
}

static void add_modes(json_t *families, const struct metrics_snapshot *snapshot)
{
	json_t *modes = metrics_add_family(families, "weir_server_mode", "gauge",
					   "1: the server is in this mode. A paused one limits nothing.");
	json_t *lanes = metrics_add_family(
		families, "weir_server_lane", "gauge",
		"1: weir reads the requests here: on the wire, or inside the server (see, answer, hold).");

	for (size_t i = 0; i < snapshot->n_servers; i++) {
		const struct metrics_server *server = &snapshot->servers[i];

		add_words(modes, server->name, "mode", metrics_modes, server->mode);
		add_words(lanes, server->name, "lane", metrics_lanes, server->lane);
	}
}

void metrics_add_servers(json_t *families, const struct metrics_snapshot *all)
{
	const struct metrics_snapshot counted = { .servers = all->servers, .n_servers = all->n_counted };
	const struct metrics_snapshot *snapshot = &counted;
	for (const struct metrics_group_family *family = metrics_group_families; family->name; family++)
		add_group(families, snapshot, family);
	add_held(families, snapshot);
	add_histograms(families, snapshot);
	add_modes(families, all);
	add_paced(families, snapshot);
	add_connections(families, snapshot);
	add_table(families, snapshot);
	add_per_server(families, snapshot, "weir_trace_lost_total", "counter", metrics_reason_help(WEIR_TRACE_LOST),
		       WEIR_TRACE_LOST, NOTHING);
	add_per_server(families, snapshot, "weir_refusal_events_skipped_total", "counter",
		       metrics_reason_help(WEIR_EVENTS_SKIPPED), WEIR_EVENTS_SKIPPED, NOTHING);
}
