/* SPDX-License-Identifier: GPL-2.0 */
#include "replay/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "metrics/metrics.h"
#include "model/key.h"
#include "replay/notes.h"
#include "replay/tally.h"
#include "rules/identity.h"
#include "rules/put.h"
#include "show/explain_request.h"
#include "weir/conn/explain.h"

/* CPUs tell of their requests side by side: so much earlier than the one before may a request be. */
#define BACK_NS (10 * WEIR_NS_PER_S)
/* Limits are older than the first request: their buckets are full. */
#define AGE_NS (24 * 3600 * WEIR_NS_PER_S)

struct replay {
	struct datapath *dp;
	struct server *servers[WEIR_MAX_SERVERS];
	char names[WEIR_MAX_SERVERS][WEIR_SERVER_LIMITS][SLOT_NAME_SIZE]; /* of their limits; "": not asked for yet */
	__u32 n_servers;
	bool by_time;		   /* the recording has no other clock */
	__u64 first_ns, latest_ns; /* by its clock */
	__u64 base_ns;		   /* what first_ns is to the programs */
	__u64 requests, elsewhere, rejected, unread, same;
	__u64 missing[RECORDED_MISSING];
	__u64 recorded[WEIR_REASON_COUNT], replayed[WEIR_REASON_COUNT];
	struct tally tally;
};

/* --- servers */

static int put_server(struct replay *replay, const struct policy *policy, const struct policy_object *throttle,
		      struct error *err)
{
	__u32 slot = replay->n_servers;
	struct server *server;
	int ret;

	if (slot >= WEIR_MAX_SERVERS)
		return error_set(err, -ENOSPC, "at most %d servers", WEIR_MAX_SERVERS);
	ret = policy_throttle_server(policy, throttle, &replay->servers[slot], err);
	if (ret)
		return ret;
	replay->n_servers++;
	server = replay->servers[slot];
	/* Nobody comes to its ports, where two servers may not have the same one. */
	server->n_listens = 0;
	return server_put_settings(replay->dp, slot, server, server_own_flags(server), err) ?:
		       server_put_limits(replay->dp, slot, server, err);
}

static int put_servers(struct replay *replay, const struct policy *policy, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < policy->n && !ret; i++)
		if (policy->objects[i].kind->type == POLICY_THROTTLE)
			ret = put_server(replay, policy, &policy->objects[i], err);
	if (!ret && !replay->n_servers)
		return error_set(err, -EINVAL,
				 "the policy has no Throttle: it says which server's requests are judged");
	return ret;
}

int replay_open(struct replay **out, const struct policy *policy, struct error *err)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	int ret;

	if (!replay)
		return error_set(err, -ENOMEM, "out of memory");
	ret = datapath_open_alone(&replay->dp, err) ?: put_servers(replay, policy, err);
	if (ret) {
		replay_close(replay);
		return ret;
	}
	*out = replay;
	return 0;
}

void replay_close(struct replay *replay)
{
	if (!replay)
		return;
	tally_clear(&replay->tally);
	for (__u32 i = 0; i < replay->n_servers; i++)
		server_free(replay->servers[i]);
	datapath_close(replay->dp);
	free(replay);
}

/* WEIR_MAX_SERVERS: the policy has none of this name. */
static __u32 find_server(const struct replay *replay, const char *name)
{
	for (__u32 i = 0; i < replay->n_servers; i++)
		if (!strcmp(replay->servers[i]->name, name))
			return i;
	return WEIR_MAX_SERVERS;
}

static const char *limit_name(struct replay *replay, __u32 server, __u32 slot)
{
	char *name = replay->names[server][slot];

	if (!*name)
		server_slot_name(replay->servers[server], slot, name);
	return name;
}

/* --- time */

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

/* --- one request */

/* A namespace that is in no path comes as the header that the server reads it from. */
static json_t *namespace_header(const struct server *server, const struct recorded *recorded)
{
	if (server->tenancy.tenant != WEIR_TENANT_HEADER || !recorded->namespace)
		return NULL;
	return json_pack("[s++]", server->tenancy.header, ": ", recorded->namespace);
}

static int ask(struct replay *replay, __u32 slot, const struct recorded *recorded, __u64 now_ns,
	       struct weir_explained *answer, struct error *err)
{
	const struct server *server = replay->servers[slot];
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
	return datapath_explain(replay->dp, slot, &question, answer, err);
}

static void count_row(struct tally_row *row, const struct weir_explained_limit *e, bool dry_run)
{
	bool refuses = e->flags & WEIR_EXPLAINED_REFUSED;

	row->asked++;
	row->refused += refuses && !dry_run;
	row->would_refuse += e->flags & WEIR_EXPLAINED_DRY_RUN || (refuses && dry_run);
}

/* Whom it has charged, too, where it does not charge all alike. */
static int count_limit(struct replay *replay, __u32 server, const struct recorded *recorded,
		       const struct weir_explained_limit *e, bool dry_run)
{
	const struct tally_key all = { server, e->slot, 0 }, one = { server, e->slot, e->subject };
	struct tally_row *row = tally_row(&replay->tally, &all);

	if (!row)
		return -ENOMEM;
	count_row(row, e, dry_run);
	if (!e->subject)
		return 0;
	row = tally_row(&replay->tally, &one);
	if (row && !row->name)
		row->name = replay_subject_name(replay->servers[server], replay->dp, e, recorded);
	if (!row || !row->name)
		return -ENOMEM;
	count_row(row, e, dry_run);
	return 0;
}

static int count_limits(struct replay *replay, __u32 server, const struct recorded *recorded,
			const struct weir_explained *answer, struct error *err)
{
	bool dry_run = answer->trace.decision == WEIR_DRY_RUN_SHED;
	int ret = 0;

	for (__u32 n = 0; n < answer->n_limits && n < WEIR_MATCHES_MAX && !ret; n++)
		if (answer->limits[n].flags & WEIR_EXPLAINED_ASKED)
			ret = count_limit(replay, server, recorded, &answer->limits[n], dry_run);
	return ret ? error_set(err, ret, "out of memory") : 0;
}

static void say(struct replay *replay, __u32 server, const struct weir_explained *answer, struct replayed *out)
{
	bool refuses = answer->trace.decision == WEIR_SHED || answer->trace.decision == WEIR_DRY_RUN_SHED;
	__u32 slot = answer->trace.named;

	*out = (struct replayed){ .decided = true, .decision = answer->trace.decision };
	if (!refuses)
		return;
	out->retry_s = answer->trace.retry_s;
	for (__u32 n = 0; n < answer->n_limits && answer->trace.decision == WEIR_DRY_RUN_SHED; n++)
		if (answer->limits[n].flags & (WEIR_EXPLAINED_DRY_RUN | WEIR_EXPLAINED_REFUSED))
			slot = answer->limits[n].slot;
	out->limit = limit_name(replay, server, slot);
}

/* Was it decided at all? One that cannot be read, or is ambiguous, is no limit's. */
static bool was_decided(const struct recorded *recorded)
{
	return recorded->decision != WEIR_REJECTED && recorded->decision != WEIR_DRY_RUN_REJECTED;
}

int replay_request(struct replay *replay, const struct recorded *recorded, struct replayed *out, struct error *err)
{
	__u32 server = find_server(replay, recorded->server);
	struct weir_explained answer;
	__u64 now_ns = 0;
	int ret = take_time(replay, recorded, &now_ns, err);

	*out = (struct replayed){ 0 };
	if (ret)
		return ret;
	replay->elsewhere += server == WEIR_MAX_SERVERS;
	replay->rejected += server < WEIR_MAX_SERVERS && !was_decided(recorded);
	if (server == WEIR_MAX_SERVERS || !was_decided(recorded))
		return 0;
	ret = ask(replay, server, recorded, now_ns, &answer, err);
	if (ret)
		return ret;
	if (answer.lost < WEIR_REASON_COUNT || !answer.whole) {
		replay->unread++;
		return 0;
	}
	replay->requests++;
	for (int i = 0; i < RECORDED_MISSING; i++)
		replay->missing[i] += recorded->missing[i];
	replay->recorded[recorded->decision]++;
	replay->replayed[answer.trace.decision]++;
	replay->same += recorded->decision == answer.trace.decision;
	say(replay, server, &answer, out);
	return count_limits(replay, server, recorded, &answer, err);
}

/* --- what came of it */

static json_t *decisions_json(const __u64 counts[static WEIR_REASON_COUNT])
{
	static const enum weir_reason reasons[] = { WEIR_PASSED, WEIR_SHED, WEIR_EXEMPT, WEIR_DRY_RUN_SHED };
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		json_object_set_new(object, metrics_reasons[reasons[i]].label, json_integer(counts[reasons[i]]));
	return object;
}

static json_t *row_json(struct replay *replay, const struct tally_row *row)
{
	json_t *object = json_pack("{s:s, s:s}", "server", replay->servers[row->key.server]->name, "limit",
				   limit_name(replay, row->key.server, row->key.slot));

	if (row->key.subject)
		json_object_set_new(object, "subject", json_string(row->name));
	json_object_set_new(object, "requests", json_integer(row->asked));
	json_object_set_new(object, "refused", json_integer(row->refused));
	json_object_set_new(object, "would_refuse", json_integer(row->would_refuse));
	return object;
}

/* Is there room for one more of the limit's subjects? */
static bool is_shown(struct replay *replay, const struct tally_row *row, size_t top)
{
	const struct tally_key limit = { row->key.server, row->key.slot, 0 };
	struct tally_row *all = tally_row(&replay->tally, &limit);

	return all && all->subjects++ < top;
}

static int add_rows(struct replay *replay, size_t top, json_t *limits, json_t *subjects)
{
	CLEANUP_FREE struct tally_row **rows = NULL;
	int n = tally_list(&replay->tally, &rows);

	for (int i = 0; i < n; i++) {
		if (!rows[i]->key.subject)
			json_array_append_new(limits, row_json(replay, rows[i]));
		else if (is_shown(replay, rows[i], top))
			json_array_append_new(subjects, row_json(replay, rows[i]));
	}
	return n;
}

json_t *replay_result(struct replay *replay, size_t top)
{
	json_t *limits = json_array(), *subjects = json_array();
	json_t *result = json_pack(
		"{s:I, s:f, s:o, s:o, s:I, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I}, s:o, s:o, s:o}", "requests",
		(json_int_t)replay->requests, "seconds", (double)(replay->latest_ns - replay->first_ns) / WEIR_NS_PER_S,
		"recorded", decisions_json(replay->recorded), "replayed", decisions_json(replay->replayed), "changed",
		(json_int_t)(replay->requests - replay->same), "left_out", "other_servers",
		(json_int_t)replay->elsewhere, "rejected", (json_int_t)replay->rejected, "unread",
		(json_int_t)replay->unread, "missing", "target", (json_int_t)replay->missing[RECORDED_NO_TARGET],
		"rest_of_target", (json_int_t)replay->missing[RECORDED_CUT_TARGET], "groups",
		(json_int_t)replay->missing[RECORDED_NO_GROUPS], "limits", limits, "subjects", subjects, "notes",
		replay_notes((const struct server *const *)replay->servers, replay->n_servers, replay->by_time));

	if (result && add_rows(replay, top, limits, subjects) < 0) {
		json_decref(result);
		return NULL;
	}
	return result;
}
