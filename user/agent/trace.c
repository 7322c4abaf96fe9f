/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests, told as they are decided to whoever asks. The kernel writes them while somebody does, and only as long as
 * the agent asks for it anew: it stops by itself when the agent dies.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/events.h"
#include "agent/servers.h"
#include "agent/trace.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

#define TRACE_FOR_NS (60 * WEIR_NS_PER_S)
#define LINES_MAX 4096U /* of a reader, that the event loop has not sent yet */

static bool is_followed(const struct agent *agent, int slot)
{
	const struct reader *reader;

	LIST_FOREACH (reader, &agent->readers, entry) {
		if (!reader->events && trace_follows(reader, slot))
			return true;
	}
	return false;
}

/* --- what was decided */

static bool wants(const struct reader *reader, const struct weir_trace *trace)
{
	return trace_follows(reader, trace->server) && reader->decisions[trace->decision] &&
	       trace->time_ns >= reader->since_ns;
}

static void tell(void *arg, const struct weir_trace_record *record)
{
	CLEANUP_JSON json_t *request = NULL;
	struct net *net = arg;
	struct reader *reader;

	if (record->trace.server >= WEIR_MAX_SERVERS || record->trace.decision >= WEIR_REASON_COUNT ||
	    !net->agent->state.servers[record->trace.server])
		return;
	if (event_is(record->trace.decision)) {
		request = event_json(net, record);
		event_keep(net->agent, request);
	}
	LIST_FOREACH (reader, &net->agent->readers, entry) {
		if (!wants(reader, &record->trace))
			continue;
		if (!request)
			request = event_json(net, record);
		if (json_array_size(reader->lines) >= LINES_MAX ||
		    json_array_append_new(reader->lines, json_pack("{s:O}", "request", request)))
			reader->lost++;
	}
}

void trace_read(struct net *net)
{
	datapath_trace_read(net->dp, tell, net);
}

void trace_read_all(struct agent *agent)
{
	struct net *net;

	for (net = agent->nets; net; net = net->next) {
		for (int i = 0; i < 64 && datapath_trace_read(net->dp, tell, net); i++)
			;
	}
}

/* --- what was lost */

/* What a reader was not told of: it found the ring full or, of refusals, no room in the sample. */
static __u64 not_told(const struct reader *reader, const __u64 *counters)
{
	return counters[WEIR_TRACE_LOST] + (reader->events ? counters[WEIR_EVENTS_SKIPPED] : 0);
}

void trace_count_lost(struct reader *reader)
{
	const struct agent *agent = reader->agent;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		__u64 counters[WEIR_REASON_COUNT];

		if (!trace_follows(reader, slot) || !agent->servers[slot].in_force ||
		    datapath_counters(server_net(agent, agent->state.servers[slot])->dp, slot, counters, NULL))
			continue;
		reader->lost += not_told(reader, counters) - reader->ring_lost[slot];
		reader->ring_lost[slot] = not_told(reader, counters);
	}
}

static void tell_lost(struct reader *reader)
{
	trace_count_lost(reader);
	if (reader->lost == reader->told ||
	    !control_send(reader->client, json_pack("{s:I}", "lost", (json_int_t)(reader->lost - reader->told))))
		return;
	reader->told = reader->lost;
}

/* --- readers */

void trace_ask_kernel(struct agent *agent)
{
	__u64 until_ns = clock_ns(CLOCK_MONOTONIC) + TRACE_FOR_NS;
	struct error err;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		bool wanted = is_followed(agent, slot);

		if (!agent->servers[slot].in_force || (!wanted && !agent->servers[slot].traced))
			continue;
		if (datapath_trace_until(server_net(agent, agent->state.servers[slot])->dp, slot, wanted ? until_ns : 0,
					 &err))
			log_error("trace: %s", err.text);
		agent->servers[slot].traced = wanted;
	}
}

void trace_refresh(struct agent *agent)
{
	struct reader *reader;

	trace_ask_kernel(agent);
	trace_flush(agent);
	LIST_FOREACH (reader, &agent->readers, entry)
		tell_lost(reader);
}

static void reader_free(struct reader *reader)
{
	json_decref(reader->lines);
	free(reader);
}

/* A reader that ends is one no more. */
static void send_lines(struct reader *reader)
{
	json_t *line;
	size_t i;

	json_array_foreach (reader->lines, i, line)
		reader->lost += !control_send(reader->client, json_incref(line));
	json_array_clear(reader->lines);
	if (!reader->over)
		return;
	control_end(reader->client, reader->last);
	LIST_REMOVE(reader, entry);
	reader_free(reader);
}

void trace_flush(struct agent *agent)
{
	struct reader *reader = LIST_FIRST(&agent->readers), *next;

	for (; reader; reader = next) {
		next = LIST_NEXT(reader, entry);
		if (!reader->begins)
			send_lines(reader);
	}
}

void trace_reader_ended(void *arg)
{
	struct reader *reader = arg;
	struct agent *agent = reader->agent;

	agent_lock(agent);
	if (!reader->over) {
		trace_read_all(agent);
		trace_flush(agent);
		trace_count_lost(reader);
		reader->over = true;
		reader->last = json_pack("{s:{s:I}}", "end", "lost", (json_int_t)(reader->lost - reader->told));
	}
	send_lines(reader);
	trace_refresh(agent);
	agent_unlock(agent);
}

void trace_begin_counting(struct reader *reader)
{
	__u64 lost = reader->lost;

	trace_count_lost(reader);
	reader->lost = lost;
}

void trace_server_begins(struct agent *agent)
{
	struct reader *reader;

	LIST_FOREACH (reader, &agent->readers, entry)
		trace_begin_counting(reader);
	trace_ask_kernel(agent);
}

void trace_server_ends(struct agent *agent, int slot)
{
	struct reader *reader;

	if (!LIST_EMPTY(&agent->readers))
		trace_read_all(agent);
	LIST_FOREACH (reader, &agent->readers, entry) {
		reader->ring_lost[slot] = 0;
		if (reader->slot != slot)
			continue;
		reader->slot = NO_SERVER;
		reader->over = true;
		reader->last = json_pack("{s:s++}", "error", "server \"", agent->state.servers[slot]->name,
					 "\" is no longer attached");
	}
	agent->servers[slot].traced = false;
}
