/* SPDX-License-Identifier: GPL-2.0 */
/* A recorded request as the programs are asked about it: what it says, and when it comes. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "replay/private.h"
#include "show/explain_request.h"

/* CPUs tell of their requests side by side: so much earlier than the one before may a request be. */
#define BACK_NS (10 * WEIR_NS_PER_S)
/* Limits are older than the first request: their buckets are full. */
#define AGE_NS (24 * 3600 * WEIR_NS_PER_S)

/* WEIR_MAX_SERVERS: the policy has none of this name. */
static __u32 find_server(const struct replay *replay, const char *name)
{
	for (__u32 i = 0; i < replay->n_servers; i++)
		if (!strcmp(replay->servers[i]->name, name))
			return i;
	return WEIR_MAX_SERVERS;
}

/* As the programs have it. */
static int take_time(struct replay *replay, const struct recorded *recorded, __u64 *now_ns, struct error *err)
{
	__u64 ns;

	if (!replay->first_ns)
		replay->by_time = !recorded->monotonic_ns;
	ns = replay->by_time ? recorded->time_ns : recorded->monotonic_ns;
	if (!ns)
		return error_set(err, -EINVAL, "it has no monotonic_ns, as lines before it have");
	if (!replay->first_ns) {
		replay->first_ns = replay->latest_ns = ns;
		replay->base_ns = clock_ns(CLOCK_MONOTONIC) + AGE_NS;
	}
	if (ns + BACK_NS < replay->latest_ns)
		return error_set(
			err, -EINVAL,
			"it came before the requests of earlier lines: a recording is in order, and of one boot");
	if (ns > replay->latest_ns)
		replay->latest_ns = ns;
	*now_ns = replay->base_ns + ns - replay->first_ns;
	return 0;
}

/* A namespace that is in no path comes as the header that the server reads it from. */
static json_t *namespace_header(const struct server *server, const struct recorded *recorded)
{
	if (server->tenancy.tenant != WEIR_TENANT_HEADER || !recorded->namespace)
		return NULL;
	return json_pack("[s++]", server->tenancy.header, ": ", recorded->namespace);
}

static int put(struct replay *replay, const struct replay_line *line, __u64 now_ns, __u32 slot, struct error *err)
{
	const struct server *server = replay->servers[line->server];
	const struct recorded *recorded = &line->recorded;
	CLEANUP_JSON json_t *headers = namespace_header(server, recorded);
	const struct explain_request request = {
		.method = recorded->method,
		.path = recorded->target,
		.user = recorded->user,
		.groups = recorded->user ? recorded->groups : NULL,
		.headers = headers,
	};
	struct datapath_question question = { .believed = recorded->user, .now_ns = now_ns };
	CLEANUP_FREE char *bytes = explain_request_bytes(&request, &server->identity, &question.length);

	if (!bytes)
		return error_set(err, -ENOMEM, "out of memory");
	question.request = bytes;
	memcpy(question.source, recorded->address, sizeof(question.source));
	return datapath_replay_put(replay->dp, slot, line->server, &question, err);
}

/* Was it decided at all? One that cannot be read, or is ambiguous, is no limit's. */
static bool was_decided(const struct recorded *recorded)
{
	return recorded->decision != WEIR_REJECTED && recorded->decision != WEIR_DRY_RUN_REJECTED;
}

int replay_ask(struct replay *replay, struct replay_line *line, __u32 slot, struct error *err)
{
	__u64 now_ns = 0;
	int ret = take_time(replay, &line->recorded, &now_ns, err);

	if (ret)
		return ret;
	line->server = find_server(replay, line->recorded.server);
	line->asked = line->server < WEIR_MAX_SERVERS && was_decided(&line->recorded);
	if (line->asked)
		return put(replay, line, now_ns, slot, err);
	replay->elsewhere += line->server == WEIR_MAX_SERVERS;
	replay->rejected += line->server < WEIR_MAX_SERVERS;
	return 0;
}
