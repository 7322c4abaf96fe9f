/* SPDX-License-Identifier: GPL-2.0 */
#include "policy/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/json_list.h"
#include "policy/inside.h"
#include "policy/names.h"
#include "policy/shape.h"
#include "rules/limit_idle.h"
#include "rules/limit_inside.h"
#include "state/room.h"

void policy_clear(struct policy *policy)
{
	for (size_t i = 0; i < policy->n; i++)
		json_decref(policy->objects[i].document);
	for (size_t i = 0; i < policy->n_files; i++) {
		free(policy->files[i].path);
		free(policy->files[i].name);
	}
	json_decref(policy->levels);
	free(policy->objects);
	free(policy->files);
	documents_clear(&policy->documents);
	problems_clear(&policy->problems);
	*policy = (struct policy){ 0 };
}

void policy_label(const struct policy_kind *kind, const char *name, char label[static POLICY_LABEL])
{
	snprintf(label, POLICY_LABEL, "%s%s%s", kind->id == POLICY_EVENT_RATE_LIMIT ? "EventRateLimit" : kind->kind,
		 *name ? " " : "", name);
}

const struct policy_kind *policy_document_kind(json_t *document, const char **name)
{
	const char *word = json_string_value(json_object_get(document, "kind"));
	const char *named = json_string_value(json_object_get(json_object_get(document, "metadata"), "name"));

	for (const struct policy_kind *kind = policy_kinds; word && kind->kind; kind++) {
		bool has_name = kind->id != POLICY_EVENT_RATE_LIMIT;

		if (strcmp(kind->kind, word) != 0 || kind->id == POLICY_ADMISSION || (has_name && !named))
			continue;
		*name = has_name ? named : "";
		return kind;
	}
	return NULL;
}

json_t *policy_to_json(const struct policy *policy)
{
	json_t *array = json_array();

	for (size_t i = 0; i < policy->n; i++)
		json_array_append_new(array, json_pack("{s:s, s:O}", "file", policy->objects[i].file, "document",
						       policy->objects[i].document));
	return array;
}

/* --- checks of the whole */

static void say_twice(struct policy *policy, const struct policy_object *object, const struct policy_object *before)
{
	char label[POLICY_LABEL];

	policy_label(object->kind, object->name, label);
	problem_node(&policy->problems, object->node, "%s is there twice: first in %s:%u", label, before->node->file,
		     before->node->line);
}

static void check_twice(struct policy *policy)
{
	CLEANUP_JSON json_t *places = json_object(); /* of the first of each label */

	for (size_t i = 0; i < policy->n; i++) {
		const struct policy_object *object = &policy->objects[i];
		char label[POLICY_LABEL];
		json_t *before;

		policy_label(object->kind, object->name, label);
		before = json_object_get(places, label);
		if (before)
			say_twice(policy, object, &policy->objects[json_integer_value(before)]);
		else
			json_object_set_new(places, label, json_integer(i));
	}
}

/* The names of all levels, as keys: those of objects of their own, those among a Throttle's, and those that are always there. */
static json_t *level_names(const struct policy *policy)
{
	json_t *names = json_pack("{s:b, s:b}", "exempt", 1, "catch-all", 1), *level;
	size_t n;

	for (size_t i = 0; i < policy->n; i++) {
		const struct policy_object *object = &policy->objects[i];
		json_t *spec = json_object_get(object->document, "spec");

		if (object->kind->id == POLICY_PRIORITY_LEVEL)
			json_object_set_new(names, object->name, json_true());
		if (object->kind->id == POLICY_THROTTLE)
			json_array_foreach (json_object_get(spec, "priorityLevels"), n, level)
				json_object_set_new(names, json_string_value(json_object_get(level, "name")),
						    json_true());
	}
	return names;
}

/* Has each schema its level? It may be there already where this is applied. */
static bool check_levels(struct policy *policy)
{
	CLEANUP_JSON json_t *names = level_names(policy);
	bool complete = true;

	for (size_t i = 0; i < policy->n; i++) {
		const struct node *node = policy->objects[i].node;
		const struct node *level = node_find(node, "spec.priorityLevelConfiguration.name");

		if (policy->objects[i].kind->id != POLICY_FLOW_SCHEMA || json_object_get(names, node_text(level)))
			continue;
		complete = false;
		warn_node(&policy->problems, level, "there is no priority level \"%s\" in these files",
			  node_text(level));
	}
	return complete;
}

/* Of a Throttle's limits: what is never used. */
static void warn_idle(struct policy *policy, const struct policy_object *throttle, const struct server *server)
{
	const struct node *limits = node_find(throttle->node, "spec.limits");

	for (size_t i = 0; limits && i < limits->n; i++) {
		const char *name = node_text(node_member(limits->items[i], "name"));
		const struct limit *limit = server_limit(server, name);
		CLEANUP_JSON json_t *idle = limit ? limit_idle(limit, server->tenancy.tenant == WEIR_TENANT_PATH) :
						    NULL;
		json_t *text;
		size_t n;

		if (idle && policy_asks_inside(server))
			limit_inside(limit,
				     (struct inside_refusals){ .holds = server->inside == INSIDE_HOLD,
							       .writes = server->write_memory },
				     idle);
		json_array_foreach (idle, n, text)
			warn_node(&policy->problems, limits->items[i], "limit \"%s\": %s", name,
				  json_string_value(text));
	}
}

/* Does every request match? A list without items asks for nothing, nor does false, except that a request be not long-running. */
static bool matches_all(const struct node *rule)
{
	for (size_t i = 0; i < rule->n; i++) {
		const struct node *member = rule->items[i];

		if (member->n || (member->type == NODE_FLAG &&
				  (!strcmp(member->text, "true") || !strcmp(member->key, "longRunning"))))
			return false;
	}
	return true;
}

/* A template whose list has become empty would switch every limit off. */
static void warn_exempt(struct policy *policy, const struct policy_object *throttle)
{
	const struct node *rules = node_find(throttle->node, "spec.exempt");

	for (size_t i = 0; rules && i < rules->n; i++)
		if (matches_all(rules->items[i]))
			warn_node(&policy->problems, rules->items[i],
				  "it asks for nothing, so all requests are exempt, and no limit is for any");
}

static void note_levels(struct policy *policy, const struct policy_object *throttle, const struct server *server)
{
	CLEANUP_JSON json_t *levels = priority_seats_to_json(&server->priorities, server->concurrency,
							     server->list_width);
	json_t *level;
	size_t i;

	policy->levels = policy->levels ?: json_array();
	json_array_foreach (levels, i, level) {
		if (throttle)
			json_object_set_new(level, "server", json_string(throttle->name));
		json_array_append(policy->levels, level);
	}
}

int policy_throttle_server(const struct policy *policy, const struct policy_object *throttle, struct server **out,
			   struct error *err)
{
	CLEANUP_JSON json_t *bare = json_pack("{s:s, s:[s]}", "name", throttle ? throttle->name : "any", "listen",
					      "*:80"),
			    *objects = json_array();
	CLEANUP_SERVER struct server *server = NULL;

	for (size_t i = 0; i < policy->n; i++) {
		const struct policy_object *object = &policy->objects[i];

		/* cppcheck-suppress nullPointerRedundantCheck ; an address in an array is never that of no throttle */
		if (object->kind->id == POLICY_THROTTLE && object != throttle)
			continue;
		json_array_append_new(objects,
				      json_pack("{s:s, s:O}", "file", object->file, "document", object->document));
	}
	if (throttle)
		json_object_update_new(bare, policy_attach_settings(throttle->document));
	return server_from_json(bare, &server, err) ?: policy_server(server, objects, out, err);
}

/* Where a problem of all of them is said to be. */
static const struct node *first_node(const struct policy *policy)
{
	for (size_t i = 0; i < policy->n; i++)
		if (policy->objects[i].kind->id != POLICY_THROTTLE)
			return policy->objects[i].node;
	return NULL;
}

/* What late checks find in the object that is wrong stands there; else what is wrong with the whole. */
static void say_wrong(struct policy *policy, const struct policy_object *throttle, const struct node *where,
		      struct error *why)
{
	size_t errors = policy->problems.errors;

	if (throttle)
		shape_check(throttle->kind->shape, throttle->node, &policy->problems);
	if (policy->problems.errors == errors)
		problem_error(&policy->problems, throttle ? node_member(throttle->node, "spec") ?: where : where, why);
}

/* The server's place among those before, and one number for all whose network namespaces have the same name. */
static int place_of(const struct state *before, struct server *server)
{
	int slot = 0;

	server->netns_cookie = 0;
	for (; slot < WEIR_MAX_SERVERS && before->servers[slot]; slot++)
		if (strcmp(before->servers[slot]->netns ?: "", server->netns ?: "") == 0)
			server->netns_cookie = before->servers[slot]->netns_cookie;
	if (!server->netns_cookie)
		server->netns_cookie = slot + 1;
	return slot;
}

/*
 * Can the server be attached beside those of the Throttles before? It is added to them. Where one without `listen` is attached, the files do
 * not say: it must have room for itself.
 */
static void check_beside(struct policy *policy, struct state *before, const struct policy_object *throttle,
			 struct server **made)
{
	const struct node *listen = node_find(throttle->node, "spec.listen");
	const struct state nobody = { 0 };
	struct error why = { 0 };
	int slot;

	if (!listen) {
		if (state_check_room(&nobody, *made, &why))
			problem_node(&policy->problems, throttle->node, "%s", why.text);
		return;
	}
	slot = place_of(before, *made);
	if (slot == WEIR_MAX_SERVERS) {
		problem_node(&policy->problems, listen, "there are more than %d servers", WEIR_MAX_SERVERS);
	} else if (state_check(before, *made, &why) || state_check_room(before, *made, &why)) {
		problem_node(&policy->problems, listen, "%s", why.text);
	} else {
		before->servers[slot] = *made;
		*made = NULL;
	}
}

/* Do they go together, with a server that has nothing else? It is given the name of the Throttle, if there is one. */
static void check_together(struct policy *policy, const struct policy_object *throttle, struct state *before)
{
	const struct node *where = throttle ? throttle->node : first_node(policy);
	CLEANUP_SERVER struct server *made = NULL;
	struct error why = { 0 };

	if (!where)
		return;
	if (policy_throttle_server(policy, throttle, &made, &why))
		say_wrong(policy, throttle, where, &why);
	else
		note_levels(policy, throttle, made);
	if (made && throttle) {
		warn_idle(policy, throttle, made);
		warn_exempt(policy, throttle);
		warn_inside(policy, throttle, made);
		check_beside(policy, before, throttle, &made);
	}
}

static void check_throttles(struct policy *policy, bool complete)
{
	struct state servers = { 0 };
	bool throttles = false;

	for (size_t i = 0; i < policy->n; i++) {
		const struct policy_object *object = &policy->objects[i];

		if (object->kind->id != POLICY_THROTTLE)
			continue;
		if (complete && !policy->problems.errors)
			check_together(policy, object, &servers);
		else
			shape_check(object->kind->shape, object->node, &policy->problems);
		throttles = true;
	}
	if (complete && !throttles && !policy->problems.errors)
		check_together(policy, NULL, &servers);
	state_clear(&servers);
}

void policy_check(struct policy *policy)
{
	check_twice(policy);
	policy_flow_warn(policy->objects, policy->n, &policy->problems);
	check_throttles(policy, check_levels(policy));
	problems_sort(&policy->problems);
}
