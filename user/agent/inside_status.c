/* SPDX-License-Identifier: GPL-2.0 */
/* What `status` says of servers that are looked into. */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "weir/conn/explain.h"
#include "weir/inside/share.h"

#include "agent/inside_private.h"
#include "base/cleanup.h"
#include "rules/limit_inside.h"

static json_t *list_processes(const struct inside_server *inside)
{
	json_t *list = json_array();

	for (size_t i = 0; inside && i < inside->n; i++) {
		const struct inside_served *served = &inside->served[i];
		const char *why = inside_not_seen(served);

		json_array_append_new(list, json_pack("{s:i, s:s, s:b, s:s?, s:s?}", "pid", (int)served->process.id,
						      "command", served->process.command, "foreign", served->foreign,
						      "what", why ? NULL : served->binary.what, "why", why));
	}
	return list;
}

static const struct inside_served *first_seen(const struct inside_server *inside)
{
	for (size_t i = 0; inside && inside->lane != INSIDE_OFF && i < inside->n; i++)
		if (!inside_not_seen(&inside->served[i]))
			return &inside->served[i];
	return NULL;
}

/* "answer by memory to 5 % of connections (kube-apiserver v1.20.2, go1.19.8, Linux 6.1.0)" */
static char *lane_text(const struct server *server, const char *lane, const struct inside_served *seen)
{
	bool answers = strcmp(lane, "answer") == 0;
	__u32 share = answers ? inside_share(server) : WEIR_INSIDE_ALL;
	struct utsname kernel;
	char some[64] = "";
	char *text;

	if (share < WEIR_INSIDE_ALL)
		snprintf(some, sizeof(some), " to %u %% of connections", share);
	uname(&kernel);
	return asprintf(&text, "%s%s%s (%s, Linux %s)", lane, answers && !seen->answers ? " by memory" : "", some,
			seen->binary.what, kernel.release) < 0 ?
		       NULL :
		       text;
}

/* What becomes of a process' requests that are over a limit. */
static const char *lane_of(const struct agent *agent, int slot, const struct inside_served *served)
{
	if (inside_is_answered(agent, slot, served))
		return "answer";
	return inside_holds(agent, agent->state.servers[slot]) ? "hold" : "see";
}

const char *inside_why_slow(const struct inside_served *seen)
{
	const struct datapath_binary *see = &seen->binary.see;

	return see->n_probes && see->probes[0].point == WEIR_INSIDE_REQUEST ? seen->binary.no_answer.text : NULL;
}

/* Why it is not in its lane yet, `auto` does not have it answer, or TLS is held though it does; NULL: none of that. */
static const char *why_chosen(const struct inside_server *inside, enum inside_mode asked)
{
	if (inside->lane != INSIDE_OFF && !inside->in_force)
		return "its processes are about to be looked into";
	if (asked != INSIDE_AUTO)
		return NULL;
	if (inside->unchosen.text[0])
		return inside->unchosen.text;
	return inside->lane == INSIDE_ANSWER && !inside->proven ? "TLS is held until a request was seen in it" : NULL;
}

/* Why a request costs more than one hit that is emulated. */
static const char *why_slow(const struct inside_server *inside, const struct inside_served *seen)
{
	return inside_why_slow(seen) ?:
		       inside->ends ?
		       "limits on requests in flight and priority levels need to see where requests end" :
		       NULL;
}

json_t *inside_status(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;
	const struct server *server = agent->state.servers[slot];
	struct error refused = { 0 };
	const struct inside_served *seen = inside && inside->in_force ? first_seen(inside) : NULL;
	const char *why = inside && inside->why.text[0] ? inside->why.text : NULL, *lane = "off";
	const char *failed = inside && inside->failed.text[0] ? inside->failed.text : NULL;
	CLEANUP_FREE char *text = NULL;

	if (server->inside != INSIDE_OFF && inside_check_allowed(agent, &refused))
		why = refused.text;
	if (seen && !why) {
		lane = lane_of(agent, slot, seen);
		text = lane_text(server, lane, seen);
	}
	if (inside && !why)
		why = why_chosen(inside, server->inside);
	if (seen && !why && inside->blind.text[0])
		why = inside->blind.text;
	why = failed ?: why;
	return json_pack("{s:s, s:s, s:i, s:b, s:s?, s:s?, s:s?, s:o}", "asked", inside_modes.words[server->inside],
			 "lane", lane, "share", (int)inside_share(server), "write_memory", server->write_memory, "text",
			 text, "why", why, "why_slow", text ? why_slow(inside, seen) : NULL, "processes",
			 list_processes(inside));
}

/* A server that Go has not made is limited by its packets, as ever. */
static bool is_go(const struct inside_server *inside)
{
	for (size_t i = 0; inside && i < inside->n; i++)
		if (inside->served[i].foreign)
			return false;
	return inside && inside->n;
}

char *inside_chosen(const struct agent *agent, int slot)
{
	CLEANUP_JSON json_t *status = NULL;
	const char *text, *why;
	char *out;

	if (agent->state.servers[slot]->inside != INSIDE_AUTO || !is_go(agent->servers[slot].inside))
		return NULL;
	status = inside_status(agent, slot);
	text = json_string_value(json_object_get(status, "text"));
	why = json_string_value(json_object_get(status, "why"));
	return asprintf(&out, "%s%s%s", text ?: "off", why ? ": " : "", why ?: "") < 0 ? NULL : out;
}

static enum inside_mode lane_now(const struct agent *agent, int slot)
{
	return agent->servers[slot].inside ? agent->servers[slot].inside->lane : INSIDE_OFF;
}

char *inside_chosen_anew(struct agent *agent, int slot)
{
	enum inside_mode before = lane_now(agent, slot);

	if (agent->state.servers[slot]->inside != INSIDE_AUTO)
		return NULL;
	inside_limits_changed(agent);
	return lane_now(agent, slot) == before ? NULL : inside_chosen(agent, slot);
}

/* NULL: the server is not looked into. */
static const struct inside_served *seen_in(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;

	return inside && inside->in_force && !inside->why.text[0] ? first_seen(inside) : NULL;
}

const char *inside_lane(const struct agent *agent, int slot)
{
	const struct inside_served *seen = seen_in(agent, slot);

	if (!seen)
		return "wire";
	return lane_of(agent, slot, seen);
}

char *inside_refuses_not(const struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];
	CLEANUP_JSON json_t *status = NULL;
	const char *why;
	char *text;

	if (strcmp(inside_lane(agent, slot), "see") != 0 || server->inside == INSIDE_AUTO)
		return NULL; /* while `auto` takes it, nothing is enforced */
	status = inside_status(agent, slot);
	why = json_string_value(json_object_get(status, "why"));
	if (server->inside == INSIDE_SEE)
		why = "inside: see";
	return asprintf(&text, "%s", why ?: "see") < 0 ? NULL : text;
}

__u32 inside_explained(const struct agent *agent, int slot)
{
	const struct inside_served *seen = seen_in(agent, slot);

	if (!seen)
		return 0;
	return WEIR_EXPLAIN_INSIDE | (seen->binary.layout.user_itab ? 0 : WEIR_EXPLAIN_BARE) |
	       (!inside_is_answered(agent, slot, seen) ? WEIR_EXPLAIN_SEE :
		seen->answers			       ? 0 :
							 WEIR_EXPLAIN_TOO_MANY);
}

char *inside_idle_limit(const struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];
	char *text;

	if (!(inside_explained(agent, slot) & WEIR_EXPLAIN_BARE))
		return NULL;
	for (size_t i = 0; i < server->n_limits; i++) {
		const char *why = limit_inside_any(&server->limits[i]);

		if (why)
			return asprintf(&text, "limit \"%s\": %s", server->limits[i].name, why) < 0 ? NULL : text;
	}
	return NULL;
}
