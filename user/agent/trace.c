/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests, told as they are decided to whoever asks. The kernel writes them while somebody does, and only as long as
 * the agent asks for it anew: it stops by itself when the agent dies.
 */
#include <errno.h>
#include <string.h>

#include "agent/events.h"
#include "agent/log.h"
#include "agent/private.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define TRACE_FOR_NS (60 * WEIR_NS_PER_S)
#define READERS_MAX 16
#define ALL_SERVERS (-1)
#define NO_SERVER (-2)	/* the one it was about has ended */
#define LINES_MAX 4096U /* of a reader, that the event loop has not sent yet */

struct reader {
	struct agent *agent;
	struct control_client *client;
	LIST_ENTRY(reader) entry;
	int slot;      /* or ALL_SERVERS, NO_SERVER */
	json_t *lines; /* to be sent */
	bool over;     /* and then the last of all: */
	json_t *last;
	bool begins; /* its command is not answered yet: nothing is sent before */
	bool events; /* it wants refusals alone, as they are told when nobody traces (events.c) */
	bool decisions[WEIR_REASON_COUNT];
	__u64 since_ns;			   /* CLOCK_MONOTONIC: what came before is not for it */
	__u64 lost, told;		   /* requests it was not told of, and how many it knows it was not */
	__u64 ring_lost[WEIR_MAX_SERVERS]; /* the counters up to which `lost` has them */
};

static bool follows(const struct reader *reader, int slot)
{
	return reader->slot == ALL_SERVERS || reader->slot == slot;
}

static bool is_followed(const struct agent *agent, int slot)
{
	const struct reader *reader;

	LIST_FOREACH (reader, &agent->readers, entry) {
		if (!reader->events && follows(reader, slot))
			return true;
	}
	return false;
}

/* --- what was decided */

static bool wants(const struct reader *reader, const struct weir_trace *trace)
{
	return follows(reader, trace->server) && reader->decisions[trace->decision] &&
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

/* What is in the ring now. More may come as fast as it is read. */
static void read_all(struct agent *agent)
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

/* Brings the reader's count of that up to date. */
static void count_lost(struct reader *reader)
{
	const struct agent *agent = reader->agent;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		__u64 counters[WEIR_REASON_COUNT];

		if (!follows(reader, slot) || !agent->servers[slot].in_force ||
		    datapath_counters(server_net(agent, agent->state.servers[slot])->dp, slot, counters, NULL))
			continue;
		reader->lost += not_told(reader, counters) - reader->ring_lost[slot];
		reader->ring_lost[slot] = not_told(reader, counters);
	}
}

static void tell_lost(struct reader *reader)
{
	count_lost(reader);
	if (reader->lost == reader->told ||
	    !control_send(reader->client, json_pack("{s:I}", "lost", (json_int_t)(reader->lost - reader->told))))
		return;
	reader->told = reader->lost;
}

/* --- readers */

static void ask_kernel(struct agent *agent)
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

	ask_kernel(agent);
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

/* Its client wants no more: it is told what was decided up to now. */
static void reader_ended(void *arg)
{
	struct reader *reader = arg;
	struct agent *agent = reader->agent;

	agent_lock(agent);
	if (!reader->over) {
		read_all(agent);
		trace_flush(agent);
		count_lost(reader);
		reader->over = true;
		reader->last = json_pack("{s:{s:I}}", "end", "lost", (json_int_t)(reader->lost - reader->told));
	}
	send_lines(reader);
	trace_refresh(agent);
	agent_unlock(agent);
}

/* What was lost before is nobody's. */
static void begin_counting(struct reader *reader)
{
	__u64 lost = reader->lost;

	count_lost(reader);
	reader->lost = lost;
}

void trace_server_begins(struct agent *agent)
{
	struct reader *reader;

	LIST_FOREACH (reader, &agent->readers, entry)
		begin_counting(reader);
	ask_kernel(agent);
}

void trace_server_ends(struct agent *agent, int slot)
{
	struct reader *reader;

	if (!LIST_EMPTY(&agent->readers))
		read_all(agent);
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

/* Without decisions, all are meant. */
static int choose_decisions(struct reader *reader, json_t *decisions, struct error *err)
{
	json_t *decision;
	size_t i;

	for (int reason = 0; reason < WEIR_REASON_COUNT; reason++)
		reader->decisions[reason] = json_array_size(decisions) == 0;
	json_array_foreach (decisions, i, decision) {
		enum weir_reason chosen;
		int ret = metrics_decision_parse(json_string_value(decision) ?: "", &chosen, err);

		if (ret)
			return ret;
		reader->decisions[chosen] = true;
	}
	return 0;
}

static int reader_check(struct agent *agent, struct reader *reader, const char *name, json_t *decisions,
			struct error *err)
{
	const struct reader *other;
	int n = 0;

	LIST_FOREACH (other, &agent->readers, entry)
		n++;
	if (n >= READERS_MAX)
		return error_set(err, -EBUSY, "%d traces are running already", n);
	reader->slot = name ? state_find(&agent->state, name) : ALL_SERVERS;
	if (name && reader->slot < 0)
		return state_unknown(&agent->state, name, err);
	return choose_decisions(reader, decisions, err);
}

/* The servers that are followed from now on; others may come. */
static json_t *list_servers(const struct agent *agent, const struct reader *reader)
{
	json_t *names = json_array();

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		if (agent->state.servers[slot] && follows(reader, slot))
			json_array_append_new(names, json_string(agent->state.servers[slot]->name));
	}
	return names;
}

/* Whom it is told, from now on. */
static void reader_begin(struct agent *agent, struct reader *reader)
{
	reader->agent = agent;
	reader->client = agent->client;
	reader->lines = json_array();
	reader->since_ns = clock_ns(CLOCK_MONOTONIC);
	control_stream(reader->client, reader_ended, reader);
	LIST_INSERT_HEAD(&agent->readers, reader, entry);
}

int agent_trace(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_FREE struct reader *reader = calloc(1, sizeof(*reader));
	json_t *decisions = NULL;
	const char *name = NULL;
	json_error_t why;
	int ret;

	if (!reader)
		return error_set(err, -ENOMEM, "out of memory");
	if (json_unpack_ex(arguments, &why, 0, "{s?s, s?o !}", "name", &name, "decisions", &decisions))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	ret = reader_check(agent, reader, name, decisions, err);
	if (ret)
		return ret;
	reader_begin(agent, reader);
	begin_counting(reader);
	*result = json_pack("{s:o}", "servers", list_servers(agent, reader));
	reader = NULL;
	ask_kernel(agent);
	return 0;
}

/* Those that are kept; and who does not follow has heard all there is. */
static void tell_kept(struct agent *agent, struct reader *reader, bool follow)
{
	json_t *event;
	size_t i;

	read_all(agent);
	json_array_foreach (agent->events, i, event)
		if (event_is_of(event, reader->slot < 0 ? NULL : agent->state.servers[reader->slot]->name))
			json_array_append_new(reader->lines, json_pack("{s:O}", "request", event));
	if (follow) {
		begin_counting(reader);
		return;
	}
	count_lost(reader);
	reader->over = true;
	reader->last = json_pack("{s:{s:I}}", "end", "lost", (json_int_t)reader->lost);
}

/* The command is answered by now. */
static void send_kept(evutil_socket_t fd, short what, void *context)
{
	struct agent *agent = context;
	struct reader *reader;

	(void)fd;
	(void)what;
	agent_lock(agent);
	LIST_FOREACH (reader, &agent->readers, entry)
		reader->begins = false;
	trace_flush(agent);
	agent_unlock(agent);
}

int agent_events(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_JSON json_t *decisions = json_pack("[s, s]", "shed", "rejected");
	CLEANUP_FREE struct reader *reader = calloc(1, sizeof(*reader));
	const char *name = NULL;
	json_error_t why;
	const struct timeval soon = { 0 };
	int follow = 0, ret;

	if (!reader)
		return error_set(err, -ENOMEM, "out of memory");
	if (json_unpack_ex(arguments, &why, 0, "{s?s, s?b !}", "name", &name, "follow", &follow))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	ret = reader_check(agent, reader, name, decisions, err);
	if (ret)
		return ret;
	if (event_base_once(agent->base, -1, EV_TIMEOUT, send_kept, agent, &soon))
		return error_set(err, -ENOMEM, "out of memory");
	reader->events = true;
	reader->begins = true;
	reader_begin(agent, reader);
	*result = json_pack("{s:o}", "servers", list_servers(agent, reader));
	tell_kept(agent, reader, follow);
	reader = NULL;
	return 0;
}
