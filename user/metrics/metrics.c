/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/metrics.h"

const struct metrics_reason metrics_reasons[WEIR_REASON_COUNT] = {
#define X(name, label, group) [WEIR_##name] = { label, METRICS_##group },
	WEIR_REASONS(X)
#undef X
};

const struct metrics_group_family metrics_group_families[] = {
	{ METRICS_DECISION, "weir_requests_total", "decision", "Requests by decision." },
	{ METRICS_SHED, "weir_shed_total", "limit",
	  "Shed requests by what the refusing limit counts. A request that several limits refuse counts for each." },
	{ METRICS_EVENT, "weir_events_total", "key",
	  "Requests that write a Kubernetes Event, by how the source-and-object limit identified it." },
	{ METRICS_UNREAD, "weir_unread_total", "reason", "Traffic that could not be read as requests, by reason." },
	{ METRICS_UNANSWERED, "weir_unanswered_total", "reason",
	  "Refused requests that could not be answered at once. Each retransmission counts again." },
	{ METRICS_SOURCE, "weir_identified_total", "source", "Requests by identity source." },
	{ METRICS_IDENTITY, "weir_identity_notes_total", "note", "Requests whose identity was ignored or unusual." },
	{ METRICS_RECORD, "weir_records_total", "decision",
	  "TLS records and packets on held connections, by decision." },
	{ METRICS_PACKET, "weir_packets_total", "action", "Packets by what weir did to them." },
	{ METRICS_INSIDE, "weir_inside_requests_total", "outcome",
	  "Requests of servers that are looked into, by what could be read of them." },
	{ 0 },
};

/* Counters are read one CPU at a time while they run: a difference can be short of zero for a moment. */
static __u64 difference(__u64 opened, __u64 closed)
{
	return opened > closed ? opened - closed : 0;
}

__u64 metrics_connections(const __u64 counters[static WEIR_REASON_COUNT])
{
	return difference(counters[WEIR_CONN_OPENED], counters[WEIR_CONN_CLOSED]);
}

__u64 metrics_translated(const __u64 counters[static WEIR_REASON_COUNT])
{
	return difference(counters[WEIR_SPLICE_OPENED], counters[WEIR_SPLICE_CLOSED]);
}

double metrics_held_s(const __u64 counters[static WEIR_REASON_COUNT])
{
	return (double)counters[WEIR_HELD_NS] / WEIR_NS_PER_S;
}

json_t *metrics_add_family(json_t *families, const char *name, const char *type, const char *help)
{
	json_t *samples = json_array();

	json_array_append_new(families, json_pack("{s:s, s:s, s:s, s:o}", "name", name, "type", type, "help", help,
						  "samples", samples));
	return samples;
}

int metrics_decision_parse(const char *text, enum weir_reason *out, struct error *err)
{
	char known[256] = "";

	for (int reason = 0; reason < WEIR_REASON_COUNT; reason++) {
		size_t length = strlen(known);

		if (metrics_reasons[reason].group != METRICS_DECISION)
			continue;
		if (strcmp(metrics_reasons[reason].label, text) == 0) {
			*out = reason;
			return 0;
		}
		snprintf(known + length, sizeof(known) - length, "%s%s", length ? ", " : "",
			 metrics_reasons[reason].label);
	}
	return error_set(err, -EINVAL, "there is no decision \"%s\": %s", text, known);
}

void metrics_add_sample(json_t *samples, json_t *labels, json_t *value)
{
	json_array_append_new(samples, json_pack("{s:o, s:o}", "labels", labels, "value", value));
}

void metrics_add_part(json_t *samples, const char *suffix, json_t *labels, json_t *value)
{
	json_array_append_new(samples,
			      json_pack("{s:s, s:o, s:o}", "suffix", suffix, "labels", labels, "value", value));
}

static void add_single(json_t *families, const char *name, const char *type, const char *help, json_t *value)
{
	metrics_add_sample(metrics_add_family(families, name, type, help), json_object(), value);
}

static void add_agent(json_t *families, const struct metrics_snapshot *snapshot)
{
	json_t *info = metrics_add_family(families, "weir_build_info", "gauge", "The agent's version. Always 1.");
	json_t *refused;

	metrics_add_sample(info, json_pack("{s:s}", "version", snapshot->version), json_integer(1));
	add_single(families, "weir_agent_start_time_seconds", "gauge", "Start time of the agent, in Unix time.",
		   json_real(snapshot->start_time_s));
	add_single(families, "weir_control_requests_total", "counter", "Commands that the agent received.",
		   json_integer(snapshot->control_requests));
	add_single(families, "weir_control_errors_total", "counter", "Commands that failed or were refused.",
		   json_integer(snapshot->control_errors));
	refused = metrics_add_family(families, "weir_control_refused_total", "counter",
				     "Control connections and commands refused because of the caller.");
	for (int why = 0; why < ACCESS_REFUSALS; why++)
		metrics_add_sample(refused, json_pack("{s:s}", "reason", access_refusal_name(why)),
				   json_integer(snapshot->control_refused[why]));
}

/* What there was too much of. */
static const char *shed_reason(enum weir_reason reason)
{
	switch (reason) {
	case WEIR_SHED_IN_FLIGHT:
	case WEIR_SHED_LEVEL:
		return "in_flight";
	case WEIR_SHED_PENALTY:
		return "penalty";
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
				   json_integer(difference(server->counters[reason], less)));
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
	json_t *used = metrics_add_family(families, "weir_conns", "gauge",
					  "Entries in the connection table of the server's network namespace.");
	json_t *max = metrics_add_family(families, "weir_conns_max", "gauge", "Size of that table.");

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

/* All modes have a sample, so that one can be waited for and watched. */
static void add_modes(json_t *families, const struct metrics_snapshot *snapshot)
{
	json_t *samples = metrics_add_family(families, "weir_server_mode", "gauge",
					     "1: the server is in this mode. A paused one limits nothing.");

	for (size_t i = 0; i < snapshot->n_servers; i++) {
		const struct metrics_server *server = &snapshot->servers[i];

		for (const char *const *mode = metrics_modes; *mode; mode++)
			metrics_add_sample(samples, json_pack("{s:s, s:s}", "server", server->name, "mode", *mode),
					   json_integer(server->mode && !strcmp(*mode, server->mode)));
	}
}

/* --- by limit */

static void add_outcomes(json_t *samples, const char *server, const struct metrics_limit *limit)
{
	const struct {
		const char *outcome;
		__u64 value;
	} outcomes[] = {
		{ "admitted", limit->counts.admitted },
		{ "refused", limit->counts.refused },
		{ "dry_run_refused", limit->counts.dry_run_refused },
	};

	for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++)
		metrics_add_sample(samples,
				   json_pack("{s:s, s:s, s:s}", "server", server, "limit", limit->name, "outcome",
					     outcomes[i].outcome),
				   json_integer(outcomes[i].value));
}

static void add_limits(json_t *families, const struct metrics_snapshot *snapshot)
{
	json_t *requests = metrics_add_family(families, "weir_limit_requests_total", "counter",
					      "Requests by limit and by that limit's outcome.");
	json_t *taken = metrics_add_family(families, "weir_limit_in_flight", "gauge",
					   "Requests in flight under the limit, over all subjects.");
	json_t *highest = metrics_add_family(families, "weir_limit_in_flight_highest", "gauge",
					     "The most requests in flight that one subject of the limit ever had.");

	for (size_t i = 0; i < snapshot->n_servers; i++) {
		const struct metrics_server *server = &snapshot->servers[i];

		for (size_t n = 0; n < server->n_limits; n++) {
			const struct metrics_limit *limit = &server->limits[n];
			json_t *labels = json_pack("{s:s, s:s}", "server", server->name, "limit", limit->name);

			add_outcomes(requests, server->name, limit);
			if (limit->in_flight) {
				metrics_add_sample(taken, json_incref(labels), json_integer(limit->taken));
				metrics_add_sample(highest, json_incref(labels), json_integer(limit->counts.highest));
			}
			json_decref(labels);
		}
	}
}

/* What is configured, with the labels of what is counted. */
static void add_configured(json_t *families, const struct metrics_snapshot *snapshot)
{
	json_t *rate = metrics_add_family(families, "weir_limit_qps", "gauge",
					  "The limit's default rate, in requests a second.");
	json_t *burst = metrics_add_family(families, "weir_limit_burst", "gauge", "The limit's default burst.");
	json_t *most = metrics_add_family(families, "weir_limit_in_flight_max", "gauge",
					  "The most requests in flight that the limit allows a subject by default.");
	json_t *dry = metrics_add_family(families, "weir_limit_dry_run", "gauge",
					 "1: what the limit would refuse passes, by its own dry run or its server's.");

	for (size_t i = 0; i < snapshot->n_servers; i++) {
		const struct metrics_server *server = &snapshot->servers[i];

		for (size_t n = 0; n < server->n_limits; n++) {
			const struct metrics_limit *limit = &server->limits[n];
			json_t *labels = json_pack("{s:s, s:s}", "server", server->name, "limit", limit->name);

			metrics_add_sample(dry, json_incref(labels), json_integer(limit->dry_run));
			if (limit->configured && limit->in_flight)
				metrics_add_sample(most, json_incref(labels), json_integer(limit->burst));
			if (limit->configured && !limit->in_flight) {
				metrics_add_sample(rate, json_incref(labels), json_real(limit->qps));
				metrics_add_sample(burst, json_incref(labels), json_integer(limit->burst));
			}
			json_decref(labels);
		}
	}
}

json_t *metrics_families(const struct metrics_snapshot *snapshot)
{
	json_t *families = json_array();

	add_agent(families, snapshot);
	for (const struct metrics_group_family *family = metrics_group_families; family->name; family++)
		add_group(families, snapshot, family);
	add_limits(families, snapshot);
	add_configured(families, snapshot);
	add_held(families, snapshot);
	add_modes(families, snapshot);
	add_paced(families, snapshot);
	add_connections(families, snapshot);
	add_table(families, snapshot);
	add_per_server(families, snapshot, "weir_trace_lost_total", "counter", metrics_reason_help(WEIR_TRACE_LOST),
		       WEIR_TRACE_LOST, NOTHING);
	metrics_add_process(families, &snapshot->process);
	metrics_add_probes(families, snapshot->nets, snapshot->n_nets);
	return families;
}

static void print_label_value(FILE *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
}

static void print_labels(FILE *out, json_t *labels)
{
	const char *name, *separator = "{";
	json_t *value;

	json_object_foreach (labels, name, value) {
		fprintf(out, "%s%s=\"", separator, name);
		print_label_value(out, json_string_value(value));
		fputc('"', out);
		separator = ",";
	}
	if (json_object_size(labels))
		fputc('}', out);
}

/* Milliseconds, but what histograms add up to the ns. */
static void print_value(FILE *out, json_t *value, bool of_histogram)
{
	if (json_is_integer(value))
		fprintf(out, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(value));
	else
		fprintf(out, " %.*f\n", of_histogram ? 9 : 3, json_real_value(value));
}

static void print_family(FILE *out, json_t *family)
{
	const char *name = json_string_value(json_object_get(family, "name"));
	json_t *sample;
	size_t i;

	fprintf(out, "# HELP %s %s\n", name, json_string_value(json_object_get(family, "help")));
	fprintf(out, "# TYPE %s %s\n", name, json_string_value(json_object_get(family, "type")));
	json_array_foreach (json_object_get(family, "samples"), i, sample) {
		const char *suffix = json_string_value(json_object_get(sample, "suffix"));

		fprintf(out, "%s%s", name, suffix ?: "");
		print_labels(out, json_object_get(sample, "labels"));
		print_value(out, json_object_get(sample, "value"), suffix);
	}
}

char *metrics_text(json_t *families)
{
	char *text = NULL;
	json_t *family;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	json_array_foreach (families, i, family)
		print_family(out, family);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}
