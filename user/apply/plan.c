/* SPDX-License-Identifier: GPL-2.0 */
#include "apply/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "policy/objects.h"
#include "state/room.h"

void planned_clear(struct planned *p)
{
	server_free(p->fresh);
	server_free(p->made);
	json_decref(p->objects);
	json_decref(p->export_before);
	json_decref(p->export_after);
}

void plan_clear(struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++)
		planned_clear(&plan->servers[i]);
	free(plan->servers);
	json_decref(plan->given);
	*plan = (struct plan){ 0 };
}

/* --- servers */

/* NULL: there is no room for more, or no memory. */
static struct planned *add_planned(struct plan *plan)
{
	if (!plan->servers)
		plan->servers = calloc(WEIR_MAX_SERVERS, sizeof(*plan->servers));
	return plan->servers && plan->n < WEIR_MAX_SERVERS ? &plan->servers[plan->n++] : NULL;
}

/* Long documents are made only for who wants to see them. */
static json_t *export(const struct plan *plan, const struct server *server)
{
	return plan->compares ? policy_export(server) : policy_export_settings(server);
}

struct planned *plan_server(struct plan *plan, const struct state *state, int slot)
{
	const struct server *server = state->servers[slot];
	struct planned *p;

	for (size_t i = 0; i < plan->n; i++)
		if (plan->servers[i].slot == slot)
			return &plan->servers[i];
	p = add_planned(plan);
	if (!p)
		return NULL;
	*p = (struct planned){ .slot = slot, .export_before = export(plan, server) };
	strcpy(p->name, server->name);
	p->objects = policy_objects(server) ? json_copy(policy_objects(server)) : json_array();
	return p;
}

static int find_server(struct plan *plan, const struct state *state, int slot, struct planned **out, struct error *err)
{
	struct planned *found = plan_server(plan, state, slot);

	if (!found) {
		error_set(err, -ENOMEM, "out of memory");
		return -ENOMEM;
	}
	*out = found;
	return 0;
}

/* New servers come before old ones go. */
static int check_room(const struct plan *plan, const struct state *state, struct error *err)
{
	size_t attached = 0, fresh = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		attached += state->servers[slot] != NULL;
	for (size_t i = 0; i < plan->n; i++)
		fresh += plan->servers[i].slot < 0;
	if (attached + fresh < WEIR_MAX_SERVERS)
		return 0;
	return error_set(err, -ENOSPC,
			 "an agent has room for %d servers: %zu are attached, and these files attach more than %zu",
			 WEIR_MAX_SERVERS, attached, fresh);
}

/* One that is attached when the plan is carried out. */
static int add_fresh(struct plan *plan, const struct state *state, json_t *throttle, const char *name,
		     struct planned **out, struct error *err)
{
	CLEANUP_JSON json_t *settings = policy_attach_settings(throttle);
	struct server *fresh = NULL;
	struct planned *p;
	int ret;

	if (!json_array_size(json_object_get(settings, "listen")))
		return error_set(err, -ENOENT,
				 "there is no server \"%s\": attach it, or say in its Throttle where it listens", name);
	ret = check_room(plan, state, err);
	if (ret)
		return ret;
	json_object_set_new(settings, "name", json_string(name));
	ret = server_from_json(settings, &fresh, err);
	if (ret)
		return ret;
	p = add_planned(plan);
	if (!p) {
		server_free(fresh);
		return error_set(err, -ENOMEM, "out of memory");
	}
	*p = (struct planned){ .slot = -1, .fresh = fresh, .objects = json_array(), .export_before = json_array() };
	strcpy(p->name, fresh->name);
	*out = p;
	return 0;
}

static int check_draining(const struct state *state, int slot, struct error *err)
{
	return state->servers[slot]->draining ? state_draining(state->servers[slot], err) : 0;
}

static int server_of_throttle(struct plan *plan, const struct state *state, json_t *throttle, const char *name,
			      struct planned **out, struct error *err)
{
	int slot = state_find(state, name);

	for (size_t i = 0; i < plan->n; i++) {
		if (strcmp(plan->servers[i].name, name) == 0 && plan->servers[i].slot < 0) {
			*out = &plan->servers[i];
			return 0;
		}
	}
	if (slot < 0)
		return add_fresh(plan, state, throttle, name, out, err);
	return check_draining(state, slot, err)				       ?:
		       policy_check_fixed(state->servers[slot], throttle, err) ?:
										 find_server(plan, state, slot, out, err);
}

/* Among those that are there and those that come with the plan. */
static int server_called(struct plan *plan, const struct state *state, const char *name, struct planned **out,
			 struct error *err)
{
	int slot = name ? state_find(state, name) : -ENOENT;

	for (size_t i = 0; i < plan->n; i++) {
		if (name ? strcmp(plan->servers[i].name, name) == 0 : plan->n == 1) {
			*out = &plan->servers[i];
			return 0;
		}
	}
	if (!name && plan->n)
		return error_set(err, -EINVAL,
				 "these files are for %zu servers: say which one the rest is for with --server",
				 plan->n);
	if (!name)
		slot = state_find_only(state, err);
	if (slot < 0) {
		if (name)
			state_unknown(state, name, err);
		return slot;
	}
	return check_draining(state, slot, err) ?: find_server(plan, state, slot, out, err);
}

int plan_target(struct plan *plan, const struct state *state, json_t *object, const char *server, bool throttles,
		struct planned **out, struct error *err)
{
	const char *name;
	const struct policy_kind *kind = policy_document_kind(policy_object_document(object), &name);

	if (!kind || !policy_object_file(object))
		return error_set(err, -EINVAL, "bad arguments: an object has a file and a document of a known kind");
	if ((kind->id == POLICY_THROTTLE) != throttles)
		return 0;
	if (throttles)
		return server_of_throttle(plan, state, policy_object_document(object), name, out, err);
	return server_called(plan, state, server, out, err);
}

/* --- applying */

/* What the agent follows, a command cannot change. */
static int check_followed(json_t *object, struct error *err)
{
	char label[POLICY_LABEL];

	if (!policy_object_followed(object))
		return 0;
	policy_object_label(object, label);
	return error_set(err, -EBUSY, "%s is set by %s, which the agent follows: change it there", label,
			 policy_object_file(object));
}

static int put_object(const struct plan *plan, struct planned *p, json_t *object, struct error *err)
{
	size_t place = policy_object_place(p->objects, policy_object_document(object));
	char label[POLICY_LABEL];
	int ret;

	if (policy_object_followed(object))
		return error_set(err, -EINVAL, "bad arguments: an object that a command applies is not followed");
	if (place == json_array_size(p->objects))
		return json_array_append(p->objects, object);
	if (p->slot < 0) {
		policy_object_label(object, label);
		return error_set(err, -EEXIST, "%s is given twice", label);
	}
	ret = plan->compares ? 0 : check_followed(json_array_get(p->objects, place), err);
	return ret ?: json_array_set(p->objects, place, object);
}

static int put_objects(struct plan *plan, const struct state *state, json_t *objects, const char *server,
		       bool throttles, struct error *err)
{
	json_t *object;
	size_t i;

	json_array_foreach (objects, i, object) {
		struct planned *p = NULL;
		int ret = plan_target(plan, state, object, server, throttles, &p, err);

		if (!ret && p)
			ret = put_object(plan, p, object, err);
		if (ret)
			return ret;
	}
	return 0;
}

/* Objects that are not among the given ones go; a Throttle that attached its server takes that with it. */
static void drop_others(struct planned *p, const struct server *server, json_t *objects)
{
	for (size_t i = json_array_size(p->objects); i-- > 0;) {
		json_t *object = json_array_get(p->objects, i);

		if (policy_object_followed(object) ||
		    policy_object_place(objects, policy_object_document(object)) < json_array_size(objects))
			continue;
		if (policy_object_is(object, POLICY_THROTTLE) && policy_attached(server))
			p->ends = true;
		json_array_remove(p->objects, i);
	}
}

static int prune_all(struct plan *plan, const struct state *state, json_t *objects, const char *only, struct error *err)
{
	struct planned *p;
	int ret = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++) {
		const struct server *server = state->servers[slot];

		if (!server || server->draining || (only && strcmp(only, server->name) != 0) || !policy_objects(server))
			continue;
		ret = find_server(plan, state, slot, &p, err);
		if (!ret)
			drop_others(p, server, objects);
	}
	return ret;
}

int plan_make(struct plan *plan, const struct state *state, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < plan->n && !ret; i++) {
		struct planned *p = &plan->servers[i];
		const struct server *from = p->slot < 0 ? p->fresh : state->servers[p->slot];

		ret = policy_server(from, p->objects, &p->made, err) ?: state_check_room(state, p->made, err);
		if (ret)
			return ret;
		p->throttle_goes = policy_throttle_of(policy_objects(from)) && !policy_throttle_of(p->objects);
		p->overrides_change = !policy_same_overrides(from, p->made);
		p->export_after = export(plan, p->made);
	}
	return ret;
}

/* What could not be read again by the next agent is not taken. */
static int check_objects(json_t *objects, struct error *err)
{
	struct error why;
	json_t *object;
	size_t i;

	json_array_foreach (objects, i, object)
		if (policy_object_check(object, &why))
			return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	return 0;
}

int plan_apply(struct plan *plan, const struct state *state, json_t *objects, const char *server, bool prune,
	       struct error *err)
{
	int ret;

	plan->given = json_incref(objects);
	ret = plan->checked ? 0 : check_objects(objects, err);
	ret = ret							   ?:
		      put_objects(plan, state, objects, server, true, err) ?:
		      put_objects(plan, state, objects, server, false, err);
	if (!ret && prune)
		ret = prune_all(plan, state, objects, server, err);
	return ret ?: plan_make(plan, state, err);
}

/* --- deleting */

static int not_found(const struct policy_kind *kind, const char *name, const char *server, struct error *err)
{
	char label[POLICY_LABEL];

	policy_label(kind, name, label);
	return error_set(err, -ENOENT, "%s is not applied%s%s", label, *server ? " to server " : "", server);
}

static int delete_object(struct plan *plan, const struct state *state, json_t *object, const char *server, bool ignore,
			 struct error *err)
{
	const char *name;
	const struct policy_kind *kind = policy_document_kind(policy_object_document(object), &name);
	struct planned *p = NULL;
	size_t place;
	int slot, ret;

	if (!kind)
		return error_set(err, -EINVAL, "bad arguments: an object has a document of a known kind");
	if (kind->id == POLICY_THROTTLE)
		server = name;
	slot = server ? state_find(state, server) : 0;
	if (slot < 0 || (server && state->servers[slot]->draining))
		return ignore ? 0 : not_found(kind, name, "", err);
	ret = server_called(plan, state, server, &p, err);
	if (ret)
		return ret;
	place = policy_object_place(p->objects, policy_object_document(object));
	if (place == json_array_size(p->objects))
		return ignore ? 0 : not_found(kind, name, p->name, err);
	ret = check_followed(json_array_get(p->objects, place), err);
	if (ret)
		return ret;
	json_array_remove(p->objects, place);
	if (kind->id == POLICY_THROTTLE)
		p->ends = policy_attached(state->servers[p->slot]);
	return 0;
}

int plan_delete(struct plan *plan, const struct state *state, json_t *objects, const char *server,
		bool ignore_not_found, struct error *err)
{
	json_t *object;
	size_t i;
	int ret = 0;

	json_array_foreach (objects, i, object)
		ret = ret ?: delete_object(plan, state, object, server, ignore_not_found, err);
	return ret ?: plan_make(plan, state, err);
}
