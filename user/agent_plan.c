/* SPDX-License-Identifier: GPL-2.0 */
#include "agent_plan.h"

#include <errno.h>
#include <string.h>

#include "cleanup.h"

void plan_clear(struct plan *plan)
{
	for (size_t i = 0; i < plan->n; i++) {
		server_free(plan->servers[i].fresh);
		server_free(plan->servers[i].made);
		json_decref(plan->servers[i].objects);
		json_decref(plan->servers[i].export_before);
		json_decref(plan->servers[i].export_after);
	}
	plan->n = 0;
}

/* --- objects in lists */

static json_t *document_of(json_t *object)
{
	return json_object_get(object, "document");
}

static bool same_object(json_t *a, json_t *b)
{
	const char *name_a = "", *name_b = "";
	const struct policy_kind *kind = policy_document_kind(a, &name_a);

	return kind && kind == policy_document_kind(b, &name_b) && strcmp(name_a, name_b) == 0;
}

/* Its place among objects, or how many there are. */
static size_t place_of(json_t *objects, json_t *document)
{
	json_t *object;
	size_t i;

	json_array_foreach (objects, i, object)
		if (same_object(document_of(object), document))
			return i;
	return json_array_size(objects);
}

static json_t *document_like(json_t *documents, json_t *wanted)
{
	json_t *document;
	size_t i;

	json_array_foreach (documents, i, document)
		if (same_object(document, wanted))
			return document;
	return NULL;
}

/* --- servers */

static bool attached_by_throttle(const struct server *server)
{
	return json_is_true(json_object_get(server->policy, "attached"));
}

/* A server that is there, as it is. */
static struct planned *add_server(struct plan *plan, const struct state *state, int slot)
{
	const struct server *server = state->servers[slot];
	struct planned *p;

	for (size_t i = 0; i < plan->n; i++)
		if (plan->servers[i].slot == slot)
			return &plan->servers[i];
	p = &plan->servers[plan->n++];
	*p = (struct planned){ .slot = slot, .export_before = policy_export(server) };
	strcpy(p->name, server->name);
	p->objects = policy_objects(server) ? json_copy(policy_objects(server)) : json_array();
	return p;
}

/* One that is attached when the plan is carried out. */
static int add_fresh(struct plan *plan, json_t *throttle, const char *name, struct planned **out, struct error *err)
{
	CLEANUP_JSON json_t *settings = policy_attach_settings(throttle);
	struct server *fresh = NULL;
	int ret;

	if (!json_array_size(json_object_get(settings, "listen")))
		return error_set(err, -ENOENT,
				 "there is no server \"%s\": attach it, or say in its Throttle where it listens", name);
	if (plan->n == WEIR_MAX_SERVERS)
		return error_set(err, -ENOSPC, "%d servers are attached: there is no room for more", WEIR_MAX_SERVERS);
	json_object_set_new(settings, "name", json_string(name));
	ret = server_from_json(settings, &fresh, err);
	if (ret)
		return ret;
	*out = &plan->servers[plan->n++];
	**out = (struct planned){ .slot = -1, .fresh = fresh, .objects = json_array(), .export_before = json_array() };
	strcpy((*out)->name, fresh->name);
	return 0;
}

static int check_draining(const struct state *state, int slot, struct error *err)
{
	if (!state->servers[slot]->draining)
		return 0;
	return error_set(err, -EBUSY, "server \"%s\" is detached and draining", state->servers[slot]->name);
}

static int server_of_throttle(struct plan *plan, const struct state *state, json_t *throttle, const char *name,
			      struct planned **out, struct error *err)
{
	int slot = state_find(state, name), ret;

	if (slot < 0)
		return add_fresh(plan, throttle, name, out, err);
	ret = check_draining(state, slot, err) ?: policy_check_settings(state->servers[slot], throttle, err);
	if (!ret)
		*out = add_server(plan, state, slot);
	return ret;
}

/* Among those that are there and those that come with the plan. */
static int server_called(struct plan *plan, const struct state *state, const char *name, struct planned **out,
			 struct error *err)
{
	int slot = name ? state_find(state, name) : -ENOENT, ret;

	for (size_t i = 0; i < plan->n; i++) {
		if (name ? strcmp(plan->servers[i].name, name) == 0 : plan->n == 1) {
			*out = &plan->servers[i];
			return 0;
		}
	}
	if (!name)
		slot = state_find_only(state, err);
	if (slot < 0)
		return name ? error_set(err, -ENOENT, "there is no server \"%s\"", name) : slot;
	ret = check_draining(state, slot, err);
	if (!ret)
		*out = add_server(plan, state, slot);
	return ret;
}

/* The server that an object is for. Throttles come first, so that the servers that they attach are known. */
static int target_of(struct plan *plan, const struct state *state, json_t *object, const char *server, bool throttles,
		     struct planned **out, struct error *err)
{
	const char *name;
	const struct policy_kind *kind = policy_document_kind(document_of(object), &name);

	if (!kind || !json_is_string(json_object_get(object, "source")))
		return error_set(err, -EINVAL, "bad arguments: an object has a source and a document of a known kind");
	if ((kind->type == POLICY_THROTTLE) != throttles)
		return 0;
	if (throttles)
		return server_of_throttle(plan, state, document_of(object), name, out, err);
	return server_called(plan, state, server, out, err);
}

/* --- applying */

static void put_object(struct planned *p, json_t *object)
{
	size_t place = place_of(p->objects, document_of(object));

	if (place < json_array_size(p->objects))
		json_array_set(p->objects, place, object);
	else
		json_array_append(p->objects, object);
}

static int put_objects(struct plan *plan, const struct state *state, json_t *objects, const char *server,
		       bool throttles, struct error *err)
{
	json_t *object;
	size_t i;

	json_array_foreach (objects, i, object) {
		struct planned *p = NULL;
		int ret = target_of(plan, state, object, server, throttles, &p, err);

		if (ret)
			return ret;
		if (p)
			put_object(p, object);
	}
	return 0;
}

/* Objects that are not among the given ones go; a Throttle that attached its server takes that with it. */
static void drop_others(struct planned *p, const struct server *server, json_t *objects)
{
	for (size_t i = json_array_size(p->objects); i-- > 0;) {
		json_t *document = document_of(json_array_get(p->objects, i));
		const char *name;

		if (place_of(objects, document) < json_array_size(objects))
			continue;
		if (policy_document_kind(document, &name)->type == POLICY_THROTTLE && attached_by_throttle(server))
			p->ends = true;
		json_array_remove(p->objects, i);
	}
}

static void prune_all(struct plan *plan, const struct state *state, json_t *objects, const char *only)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (!server || server->draining || (only && strcmp(only, server->name) != 0) || !policy_objects(server))
			continue;
		drop_others(add_server(plan, state, slot), server, objects);
	}
}

/* What every server is to be: each is checked as a whole. */
static int make_servers(struct plan *plan, const struct state *state, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < plan->n && !ret; i++) {
		struct planned *p = &plan->servers[i];

		ret = policy_server(p->slot < 0 ? p->fresh : state->servers[p->slot], p->objects, &p->made, err);
		if (!ret)
			p->export_after = policy_export(p->made);
	}
	return ret;
}

int plan_apply(struct plan *plan, const struct state *state, json_t *objects, const char *server, bool prune,
	       struct error *err)
{
	int ret;

	plan->given = objects;
	ret = put_objects(plan, state, objects, server, true, err) ?:
		      put_objects(plan, state, objects, server, false, err);
	if (ret)
		return ret;
	if (prune)
		prune_all(plan, state, objects, server);
	return make_servers(plan, state, err);
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
	const struct policy_kind *kind = policy_document_kind(document_of(object), &name);
	struct planned *p = NULL;
	size_t place;
	int slot, ret;

	if (!kind)
		return error_set(err, -EINVAL, "bad arguments: an object has a document of a known kind");
	if (kind->type == POLICY_THROTTLE)
		server = name;
	slot = server ? state_find(state, server) : 0;
	if (slot < 0 || (server && state->servers[slot]->draining))
		return ignore ? 0 : not_found(kind, name, "", err);
	ret = server_called(plan, state, server, &p, err);
	if (ret)
		return ret;
	place = place_of(p->objects, document_of(object));
	if (place == json_array_size(p->objects))
		return ignore ? 0 : not_found(kind, name, p->name, err);
	json_array_remove(p->objects, place);
	if (kind->type == POLICY_THROTTLE)
		p->ends = attached_by_throttle(state->servers[p->slot]);
	return 0;
}

int plan_delete(struct plan *plan, const struct state *state, json_t *objects, const char *server,
		bool ignore_not_found, struct error *err)
{
	json_t *object;
	size_t i;
	int ret = 0;

	plan->given = objects;
	plan->deletes = true;
	json_array_foreach (objects, i, object)
		ret = ret ?: delete_object(plan, state, object, server, ignore_not_found, err);
	return ret ?: make_servers(plan, state, err);
}

/* --- what it changes */

static void add_change(json_t *changes, const struct planned *p, json_t *document, const char *change)
{
	const char *name = "";
	const struct policy_kind *kind = policy_document_kind(document, &name);
	char label[POLICY_LABEL];

	policy_label(kind, name, label);
	json_array_append_new(changes,
			      json_pack("{s:s, s:s, s:s}", "server", p->name, "object", label, "change", change));
}

/* A Throttle that is deleted leaves one behind: of the server's own settings, and of what commands have set. */
static const char *change_of(const struct plan *plan, json_t *before, json_t *after)
{
	bool given = place_of(plan->given, after) < json_array_size(plan->given);

	if (plan->deletes && given)
		return "deleted";
	if (!before)
		return "created";
	if (!json_equal(before, after))
		return "configured";
	return given ? "unchanged" : NULL;
}

static void add_changes(json_t *changes, const struct plan *plan, const struct planned *p, json_t *after)
{
	json_t *document;
	size_t i;

	json_array_foreach (after, i, document) {
		const char *change = change_of(plan, document_like(p->export_before, document), document);

		if (change)
			add_change(changes, p, document, change);
	}
	json_array_foreach (p->export_before, i, document)
		if (!document_like(after, document))
			add_change(changes, p, document, "deleted");
}

json_t *plan_to_json(const struct plan *plan, bool documents)
{
	json_t *changes = json_array(), *before = json_array(), *after = json_array();
	json_t *json = json_pack("{s:o}", "changes", changes);

	for (size_t i = 0; i < plan->n; i++) {
		const struct planned *p = &plan->servers[i];
		CLEANUP_JSON json_t *left = p->ends ? json_array() : json_incref(p->export_after);

		add_changes(changes, plan, p, left);
		json_array_extend(before, p->export_before);
		json_array_extend(after, left);
	}
	if (documents) {
		json_object_set(json, "before", before);
		json_object_set(json, "after", after);
	}
	json_decref(before);
	json_decref(after);
	return json;
}
