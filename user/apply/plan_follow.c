/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The plan for what the agent follows: all that its files say, as one set, in the place of all that they said. Servers for
 * which that comes to the same are not part of the plan.
 */
#include <errno.h>
#include <string.h>

#include "apply/plan.h"
#include "policy/objects.h"

/* --- what was there */

static bool follows_any(json_t *objects)
{
	json_t *object;
	size_t i;

	json_array_foreach (objects, i, object)
		if (policy_object_followed(object))
			return true;
	return false;
}

static void take_away(struct planned *p)
{
	for (size_t i = json_array_size(p->objects); i-- > 0;)
		if (policy_object_followed(json_array_get(p->objects, i)))
			json_array_remove(p->objects, i);
}

/* It was persisted, without its Throttle. */
static bool is_orphan(const struct server *server)
{
	return policy_attached(server) && !policy_throttle_of(policy_objects(server));
}

/* Followed objects leave their servers, until they are put there again. */
static int take_all_away(struct plan *plan, const struct state *state, bool whole, struct error *err)
{
	struct planned *p;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (!server || server->draining)
			continue;
		if (!follows_any(policy_objects(server)) && !(whole && is_orphan(server)))
			continue;
		p = plan_server(plan, state, slot);
		if (!p)
			return error_set(err, -ENOMEM, "out of memory");
		take_away(p);
	}
	return 0;
}

/* --- what is wanted */

/* The name of the only server there is, or will be. */
static int only_server(const struct plan *plan, const struct state *state, const char **name, struct error *err)
{
	size_t n = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		if (state->servers[slot] && !state->servers[slot]->draining) {
			*name = state->servers[slot]->name;
			n++;
		}
	}
	for (size_t i = 0; i < plan->n; i++) {
		if (plan->servers[i].slot < 0) {
			*name = plan->servers[i].name;
			n++;
		}
	}
	if (n == 0)
		return error_set(err, -ENOENT, "no server is attached");
	if (n > 1)
		return error_set(err, -EINVAL,
				 "there are %zu servers: put it into the file or directory of its server's Throttle",
				 n);
	return 0;
}

static int put(struct planned *p, json_t *object, struct error *err)
{
	size_t place = policy_object_place(p->objects, policy_object_document(object));
	json_t *there = json_array_get(p->objects, place);
	char label[POLICY_LABEL];

	if (!there)
		return json_array_append(p->objects, object);
	policy_object_label(object, label);
	if (policy_object_followed(there))
		return error_set(err, -EEXIST, "%s of server \"%s\" is in %s and in %s", label, p->name,
				 policy_object_file(there), policy_object_file(object));
	if (!json_equal(policy_object_document(there), policy_object_document(object)))
		return error_set(err, -EEXIST,
				 "%s of server \"%s\" is in %s, and was applied by command from %s, where it says "
				 "something else: delete that first (weir delete -f)",
				 label, p->name, policy_object_file(object), policy_object_file(there));
	/* At the end, where it would be if the command had not been. */
	json_array_remove(p->objects, place);
	return json_array_append(p->objects, object);
}

static int put_one(struct plan *plan, const struct state *state, json_t *wanted, bool throttles, struct error *err)
{
	const char *server = json_string_value(json_object_get(wanted, "server"));
	json_t *object = json_object_get(wanted, "object");
	struct planned *p = NULL;
	struct error why = { 0 };
	int ret = 0;

	if (throttles != policy_object_is(object, POLICY_THROTTLE))
		return 0;
	if (!throttles && !server)
		ret = only_server(plan, state, &server, &why);
	ret = ret ?: plan_target(plan, state, object, server, throttles, &p, &why);
	if (ret)
		return error_set(err, ret, "%s: %s", policy_object_file(object), why.text);
	return put(p, object, err);
}

static int put_all(struct plan *plan, const struct state *state, json_t *wanted, bool throttles, struct error *err)
{
	json_t *one;
	size_t i;
	int ret = 0;

	json_array_foreach (wanted, i, one)
		ret = ret ?: put_one(plan, state, one, throttles, err);
	return ret;
}

/* --- what that comes to */

/* A server that a Throttle attached goes with it. */
static void find_ended(struct plan *plan, const struct state *state, bool whole)
{
	for (size_t i = 0; i < plan->n; i++) {
		struct planned *p = &plan->servers[i];

		p->ends = p->slot >= 0 && policy_attached(state->servers[p->slot]) && !policy_throttle_of(p->objects) &&
			  (whole || !is_orphan(state->servers[p->slot]));
	}
}

static bool is_same(const struct planned *p, const struct state *state)
{
	json_t *before = p->slot < 0 ? NULL : policy_objects(state->servers[p->slot]);

	return p->slot >= 0 && !p->ends && (before ? json_equal(before, p->objects) : !json_array_size(p->objects));
}

static void leave_same(struct plan *plan, const struct state *state)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n; i++) {
		if (is_same(&plan->servers[i], state))
			planned_clear(&plan->servers[i]);
		else
			plan->servers[n++] = plan->servers[i];
	}
	plan->n = n;
}

static json_t *objects_of(json_t *wanted)
{
	json_t *objects = json_array(), *one;
	size_t i;

	json_array_foreach (wanted, i, one)
		json_array_append(objects, json_object_get(one, "object"));
	return objects;
}

int plan_follow(struct plan *plan, const struct state *state, json_t *wanted, bool whole, struct error *err)
{
	int ret;

	plan->given = objects_of(wanted);
	ret = take_all_away(plan, state, whole, err)	      ?:
		      put_all(plan, state, wanted, true, err) ?:
								put_all(plan, state, wanted, false, err);
	if (ret)
		return ret;
	find_ended(plan, state, whole);
	leave_same(plan, state);
	return plan_make(plan, state, err);
}
