/* SPDX-License-Identifier: GPL-2.0 */
/* The commands that begin to follow requests, and refusals. */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/events.h"
#include "agent/trace.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "commands/commands.h"

#define READERS_MAX 16

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
		if (agent->state.servers[slot] && trace_follows(reader, slot))
			json_array_append_new(names, json_string(agent->state.servers[slot]->name));
	}
	return names;
}

/* The requests from now on are sent to this client. */
static void reader_begin(struct agent *agent, struct reader *reader)
{
	reader->agent = agent;
	reader->client = agent->client;
	reader->lines = json_array();
	reader->since_ns = clock_ns(CLOCK_MONOTONIC);
	control_stream(reader->client, trace_reader_ended, reader);
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
	trace_begin_counting(reader);
	*result = json_pack("{s:o}", "servers", list_servers(agent, reader));
	reader = NULL;
	trace_ask_kernel(agent);
	return 0;
}

/* Those that are kept; and who does not follow has heard all there is. */
static void tell_kept(struct agent *agent, struct reader *reader, bool follow)
{
	json_t *event;
	size_t i;

	trace_read_all(agent);
	json_array_foreach (agent->events, i, event)
		if (event_is_of(event, reader->slot < 0 ? NULL : agent->state.servers[reader->slot]->name))
			json_array_append_new(reader->lines, json_pack("{s:O}", "request", event));
	if (follow) {
		trace_begin_counting(reader);
		return;
	}
	trace_count_lost(reader);
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
