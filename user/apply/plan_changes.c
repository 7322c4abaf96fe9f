/* SPDX-License-Identifier: GPL-2.0 */
/* What a plan changes, as documents before and after it. */
#include <string.h>

#include "apply/plan.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "policy/objects.h"

static json_t *document_like(json_t *documents, json_t *wanted)
{
	json_t *document;
	size_t i;

	json_array_foreach (documents, i, document)
		if (policy_same_object(document, wanted))
			return document;
	return NULL;
}

static bool is_throttle(json_t *document)
{
	const char *name;
	const struct policy_kind *kind = policy_document_kind(document, &name);

	return kind->id == POLICY_THROTTLE;
}

/* It goes with a Throttle only if that attached it. */
static void add_server_is(json_t *change, const struct planned *p)
{
	const char *is = !p->ends ? "attached" : p->draining ? "draining" : "detached";

	json_object_set_new(change, "server_is", json_string(is));
	if (p->draining)
		json_object_set_new(change, "draining", json_integer(p->draining));
}

static void add_change(json_t *changes, const struct planned *p, json_t *document, const char *what)
{
	const char *name = "";
	const struct policy_kind *kind = policy_document_kind(document, &name);
	char label[POLICY_LABEL];
	json_t *change;

	policy_label(kind, name, label);
	change = json_pack("{s:s, s:s, s:s}", "server", p->name, "object", label, "change", what);
	if (p->throttle_goes && is_throttle(document))
		add_server_is(change, p);
	json_array_append_new(changes, change);
}

/* Overrides are in Throttles alone. */
static bool is_changed(const struct planned *p, json_t *before, json_t *after)
{
	return !json_equal(before, after) || (p->overrides_change && is_throttle(after));
}

/* A Throttle that is deleted leaves one behind: of the server's own settings, and of what commands have set. */
static const char *change_of(const struct plan *plan, const struct planned *p, json_t *before, json_t *after)
{
	bool given = policy_object_place(plan->given, after) < json_array_size(plan->given);

	if (p->throttle_goes && is_throttle(after))
		return "deleted";
	if (!before)
		return "created";
	if (is_changed(p, before, after))
		return "configured";
	return given ? "unchanged" : NULL;
}

static void add_changes(json_t *changes, const struct plan *plan, const struct planned *p, json_t *after)
{
	json_t *document;
	size_t i;

	json_array_foreach (after, i, document) {
		const char *change = change_of(plan, p, document_like(p->export_before, document), document);

		if (change)
			add_change(changes, p, document, change);
	}
	json_array_foreach (p->export_before, i, document)
		if (!document_like(after, document))
			add_change(changes, p, document, "deleted");
}

/* What its levels come to, if anything has changed that may matter to them. */
static void add_levels(json_t *levels, const struct planned *p)
{
	CLEANUP_JSON json_t *made = p->made && !json_equal(p->export_before, p->export_after) ?
					    priority_seats_to_json(&p->made->priorities, p->made->concurrency,
								   p->made->list_width) :
					    NULL;
	json_t *level;
	size_t i;

	json_array_foreach (made, i, level) {
		json_object_set_new(level, "server", json_string(p->name));
		json_array_append(levels, level);
	}
}

json_t *plan_levels(const struct plan *plan)
{
	json_t *levels = json_array();

	for (size_t i = 0; i < plan->n; i++)
		add_levels(levels, &plan->servers[i]);
	return levels;
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

void plan_log(const struct plan *plan, const char *words)
{
	CLEANUP_JSON json_t *told = plan_to_json(plan, false);
	json_t *change;
	size_t i;

	json_array_foreach (json_object_get(told, "changes"), i, change) {
		const char *what = json_string_value(json_object_get(change, "change"));

		if (strcmp(what, "unchanged") != 0)
			log_info("%sserver \"%s\": %s %s", words, json_string_value(json_object_get(change, "server")),
				 json_string_value(json_object_get(change, "object")), what);
	}
}
