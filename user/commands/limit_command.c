/* SPDX-License-Identifier: GPL-2.0 */
/* The command `limit set`, and what it says of a limit that does less than one may think. */
#include <errno.h>
#include <string.h>

#include "weir/conn/explain.h"

#include "agent/inside.h"
#include "agent/limit_counts.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "commands/commands.h"
#include "commands/limits.h"
#include "model/key.h"
#include "rules/limit_idle.h"
#include "rules/limit_inside.h"

/* A list. */
static json_t *warnings_of(struct agent *agent, int slot, const struct limit *limit, const char *subject)
{
	const struct server *server = agent->state.servers[slot];
	CLEANUP_FREE char *unseen = limit_unseen(agent, slot, limit, subject);
	json_t *texts = limit_idle(limit, server->tenancy.tenant == WEIR_TENANT_PATH);

	if (server->inside != INSIDE_OFF && (server->inside != INSIDE_AUTO || strcmp(inside_lane(agent, slot), "wire")))
		limit_inside(limit,
			     (struct inside_refusals){ .holds = server->inside == INSIDE_HOLD,
						       .writes = server->write_memory },
			     texts);
	if (inside_explained(agent, slot) & WEIR_EXPLAIN_BARE && limit_inside_any(limit))
		json_array_append_new(texts, json_string(limit_inside_any(limit)));
	if (unseen)
		json_array_append_new(texts, json_string(unseen));
	return texts;
}

/* Connections are counted in packets, whatever is done with requests. */
static const char *lane_of(const struct agent *agent, int slot, const struct limit *limit)
{
	return weir_limit_is_of_connections(limit->kind) ? "wire" : inside_lane(agent, slot);
}

/* The amount that was set, the limit's or a subject's, lets nothing pass: a mistake, perhaps. */
static bool admits_nothing(const struct limit *limit, const char *subject)
{
	const struct override *override = subject ? limit_override(limit, subject) : NULL;
	const struct datapath_amount *amount = override ? &override->amount : &limit->amount;

	if (!amount->set || amount->deny)
		return false;
	return weir_limit_has_seats(limit->kind) ? !amount->seats : !amount->burst;
}

int agent_limit_set(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	const char *server = NULL, *subject = NULL, *name;
	CLEANUP_FREE char *refuses_not = NULL, *inside = NULL;
	const struct limit *limit;
	json_t *idle;
	char canonical[KEY_SUBJECT_TEXT];
	json_error_t why;
	json_t *given;
	int slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s:o, s?s !}", "server", &server, "limit", &given, "subject",
			   &subject))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	slot = server_named(agent, server, err);
	if (slot < 0)
		return slot;
	ret = limit_set(agent, slot, given, subject, err);
	if (ret)
		return ret;
	name = json_string_value(json_object_get(given, "name"));
	limit = server_limit(agent->state.servers[slot], name);
	if (subject)
		key_subject_parse(limit->key, subject, canonical, NULL);
	inside = inside_chosen_anew(agent, slot);
	if (!limit->dry_run && !weir_limit_is_of_connections(limit->kind))
		refuses_not = inside_refuses_not(agent, slot);
	*result = json_pack("{s:s, s:s, s:s?, s:s, s:s, s:s, s:b, s:s*, s:s*}", "server",
			    agent->state.servers[slot]->name, "limit", name, "subject", subject ? canonical : NULL,
			    "mode", limit->dry_run ? "dry-run" : "enforce", "server_mode", server_mode(agent, slot),
			    "lane", lane_of(agent, slot, limit), "admits_nothing",
			    admits_nothing(limit, subject ? canonical : NULL), "inside", inside, "refuses_not",
			    refuses_not);
	log_info("server \"%s\": limit %s%s%s is set", agent->state.servers[slot]->name, name, subject ? " " : "",
		 subject ? canonical : "");
	idle = warnings_of(agent, slot, limit, subject ? canonical : NULL);
	if (json_array_size(idle))
		json_object_set(*result, "warnings", idle);
	json_decref(idle);
	server_tell_failed(agent, slot, *result);
	return 0;
}
