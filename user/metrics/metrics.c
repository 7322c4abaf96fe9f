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
	{ METRICS_SHED, "weir_shed_total", "key",
	  "Shed requests by the key of the refusing limit, twice if two limits refuse. Reasons: rate, in_flight, penalty (the client came back too early), denied." },
	{ METRICS_EVENT, "weir_events_total", "key",
	  "Requests that write a Kubernetes Event, by how the source-and-object limit identified it." },
	{ METRICS_UNREAD, "weir_unread_total", "reason", "Traffic that could not be read as requests, by reason." },
	{ METRICS_UNANSWERED, "weir_unanswered_total", "reason",
	  "Refused requests that could not be answered at once. Each retransmission counts again." },
	{ METRICS_IDENTIFIED, "weir_identified_total", "by", "Requests, by what identified their user." },
	{ METRICS_IDENTITY, "weir_identity_notes_total", "note", "Requests whose identity was ignored or unusual." },
	{ METRICS_RECORD, "weir_records_total", "decision",
	  "TLS records and packets on held connections, by decision." },
	{ METRICS_PACKET, "weir_packets_total", "action", "Packets by what weir did to them." },
	{ METRICS_INSIDE, "weir_inside_requests_total", "outcome",
	  "Requests seen inside servers (attach --inside), by what could be read of them." },
	{ METRICS_ADMISSION, "weir_connection_attempts_total", "outcome",
	  "Attempts to open a connection to a server with limits on connections, by outcome." },
	{ 0 },
};

__u64 metrics_difference(__u64 opened, __u64 closed)
{
	return opened > closed ? opened - closed : 0;
}

__u64 metrics_connections(const __u64 counters[static WEIR_REASON_COUNT])
{
	return metrics_difference(counters[WEIR_CONN_OPENED], counters[WEIR_CONN_CLOSED]);
}

__u64 metrics_translated(const __u64 counters[static WEIR_REASON_COUNT])
{
	return metrics_difference(counters[WEIR_SPLICE_OPENED], counters[WEIR_SPLICE_CLOSED]);
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

json_t *metrics_families(const struct metrics_snapshot *snapshot)
{
	json_t *families = json_array();

	add_agent(families, snapshot);
	metrics_add_servers(families, snapshot);
	metrics_add_limits(families, snapshot->servers, snapshot->n_counted);
	metrics_add_process(families, &snapshot->process);
	metrics_add_probes(families, snapshot->nets, snapshot->n_nets);
	return families;
}
