/* SPDX-License-Identifier: GPL-2.0 */
#include "audit/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_list.h"
#include "model/amount_json.h"
#include "model/key.h"

/* What follows from the rest, or is weir's own. */
static const char *const not_told[] = { "name", "netns_cookie", "last_number", "groups", "draining" };

/* --- as it is */

static json_t *settings_of(const struct server *server)
{
	json_t *settings = server_settings_to_json(server);

	for (size_t i = 0; i < sizeof(not_told) / sizeof(*not_told); i++)
		json_object_del(settings, not_told[i]);
	return settings;
}

static int keep_limit(const struct limit *limit, const char *subject, struct limit *out)
{
	char canonical[KEY_SUBJECT_TEXT];
	struct limit kept = *limit;

	if (subject) {
		kept.overrides = key_subject_parse(limit->key, subject, canonical, NULL) ?
					 NULL :
					 limit_override(limit, canonical);
		kept.n_overrides = kept.overrides ? 1 : 0;
	}
	return limit_copy(&kept, out);
}

static int keep_limits(struct audited *out, const char *subject)
{
	const struct limit *limits = out->limits;
	size_t n = out->n_limits;

	out->n_limits = 0;
	out->limits = out->copies = calloc(n + 1, sizeof(*out->copies));
	if (!out->copies)
		return -ENOMEM;
	while (out->n_limits < n) {
		size_t i = out->n_limits++;

		if (keep_limit(&limits[i], subject, &out->copies[i]))
			return -ENOMEM;
	}
	return 0;
}

static int view_server(const struct server *server, struct audited *out)
{
	strcpy(out->name, server->name);
	out->settings = settings_of(server);
	out->limits = server->limits;
	out->n_limits = server->n_limits;
	return out->settings ? 0 : -ENOMEM;
}

int audit_view_now(const struct state *state, struct audit_view *out)
{
	int ret = 0;

	*out = (struct audit_view){ .servers = calloc(WEIR_MAX_SERVERS, sizeof(*out->servers)) };
	if (!out->servers)
		return -ENOMEM;
	for (int slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++) {
		const struct server *server = state->servers[slot];

		if (server && !server->draining)
			ret = view_server(server, &out->servers[out->n++]);
	}
	return ret;
}

int audit_view(const struct state *state, const char *subject, struct audit_view *out)
{
	int ret = audit_view_now(state, out);

	out->subject = subject;
	for (size_t i = 0; i < out->n && !ret; i++)
		ret = keep_limits(&out->servers[i], subject);
	if (ret) /* what is not copied goes with the state's servers */
		audit_view_clear(out);
	return ret;
}

void audit_view_clear(struct audit_view *view)
{
	for (size_t i = 0; i < view->n; i++) {
		struct audited *server = &view->servers[i];

		for (size_t j = 0; server->copies && j < server->n_limits; j++)
			limit_clear(&server->copies[j]);
		free(server->copies);
		json_decref(server->settings);
	}
	free(view->servers);
	*view = (struct audit_view){ 0 };
}

/* --- what is another one */

struct changes {
	json_t *list;
	const char *server;
	size_t more; /* for which there is no room */
};

/* Takes over both, of which NULL is nothing. */
static void add(struct changes *c, const char *what, json_t *before, json_t *after)
{
	if (json_array_size(c->list) < AUDIT_CHANGES_MAX)
		json_array_append_new(c->list,
				      json_pack("{s:s, s:s, s:o, s:o}", "server", c->server, "what", what, "before",
						before ?: json_null(), "after", after ?: json_null()));
	else
		c->more++;
}

static void add_copy(struct changes *c, const char *what, json_t *before, json_t *after)
{
	if (!before || !after || !json_equal(before, after))
		add(c, what, json_incref(before), json_incref(after));
}

static void add_named(struct changes *c, const char *kind, const char *name, json_t *before, json_t *after)
{
	CLEANUP_FREE char *what = NULL;

	if (asprintf(&what, "%s %s", kind, name) < 0)
		what = NULL;
	add_copy(c, what ?: kind, before, after);
}

/* Is every item an object with a name? */
static bool is_named(json_t *list)
{
	json_t *item;
	size_t i;

	if (!json_array_size(list))
		return false;
	json_array_foreach (list, i, item)
		if (!json_is_string(json_object_get(item, "name")))
			return false;
	return true;
}

/* Of priority levels and flow schemas those that differ. */
static void compare_lists(struct changes *c, const char *kind, json_t *before, json_t *after)
{
	json_t *item;
	size_t i;

	json_array_foreach (before, i, item) {
		const char *name = json_string_value(json_object_get(item, "name"));

		add_named(c, kind, name, item, list_named(after, name));
	}
	json_array_foreach (after, i, item) {
		const char *name = json_string_value(json_object_get(item, "name"));

		if (!list_named(before, name))
			add_named(c, kind, name, NULL, item);
	}
}

static void compare_settings(struct changes *c, json_t *before, json_t *after)
{
	const char *key;
	json_t *value;

	json_object_foreach (after, key, value) {
		json_t *was = json_object_get(before, key);

		if (is_named(value) || is_named(was))
			compare_lists(c, key, was, value);
		else
			add_copy(c, key, was, value);
	}
}

/* NULL for none. */
static json_t *amount_of(const struct limit *limit, const struct override *override)
{
	json_t *amount = override ? json_object() : NULL;

	if (override)
		amount_to_json(&override->amount, limit->kind, amount);
	return amount;
}

static void add_override(struct changes *c, const struct limit *before, const struct limit *after, const char *subject)
{
	CLEANUP_JSON json_t *then = before ? amount_of(before, limit_override(before, subject)) : NULL;
	CLEANUP_JSON json_t *now = after ? amount_of(after, limit_override(after, subject)) : NULL;
	CLEANUP_FREE char *kind = NULL;

	if (asprintf(&kind, "limit %s for", (before ?: after)->name) < 0)
		kind = NULL;
	add_named(c, kind ?: "limit", subject, then, now);
}

/* Who changes more than there is room for may have changed very many: those are only counted. */
static void add_overrides(struct changes *c, const struct limit *before, const struct limit *after,
			  const struct override *const *overrides, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (json_array_size(c->list) < AUDIT_CHANGES_MAX)
			add_override(c, before, after, overrides[i]->subject);
		else
			c->more++;
	}
}

static void compare_overrides(struct changes *c, const struct limit *before, const struct limit *after)
{
	static const struct limit none;
	CLEANUP_OVERRIDES_DIFF struct overrides_diff diff = { 0 };

	if (limit_overrides_diff(before, after ?: &none, &diff))
		return;
	add_overrides(c, before, after, diff.gone, diff.n_gone);
	add_overrides(c, before, after, diff.put, diff.n_put);
}

/* Without its overrides, and what only weir needs. */
static json_t *limit_told(const struct limit *limit)
{
	json_t *told = limit ? limit_settings_to_json(limit) : NULL;

	json_object_del(told, "name");
	json_object_del(told, "number");
	if (!json_integer_value(json_object_get(told, "keys")))
		json_object_del(told, "keys");
	return told;
}

static void compare_limit(struct changes *c, const struct limit *before, const struct limit *after)
{
	CLEANUP_JSON json_t *then = limit_told(before), *now = limit_told(after);

	add_named(c, "limit", (before ?: after)->name, then, now);
	compare_overrides(c, before, after);
}

static const struct limit *find_limit(const struct audited *server, const char *name)
{
	for (size_t i = 0; server && i < server->n_limits; i++)
		if (!strcmp(server->limits[i].name, name))
			return &server->limits[i];
	return NULL;
}

static void compare_limits(struct changes *c, const struct audited *before, const struct audited *after)
{
	for (size_t i = 0; before && i < before->n_limits; i++)
		compare_limit(c, &before->limits[i], find_limit(after, before->limits[i].name));
	for (size_t i = 0; after && i < after->n_limits; i++)
		if (!find_limit(before, after->limits[i].name))
			compare_limit(c, NULL, &after->limits[i]);
}

static void compare_server(struct changes *c, const struct audited *before, const struct audited *after)
{
	c->server = (before ?: after)->name;
	if (before && after)
		compare_settings(c, before->settings, after->settings);
	else
		add_copy(c, "server", before ? before->settings : NULL, after ? after->settings : NULL);
	compare_limits(c, before, after);
}

static const struct audited *find_server(const struct audit_view *view, const char *name)
{
	for (size_t i = 0; i < view->n; i++)
		if (!strcmp(view->servers[i].name, name))
			return &view->servers[i];
	return NULL;
}

json_t *audit_changes(const struct audit_view *before, const struct audit_view *after)
{
	struct changes c = { .list = json_array() };

	for (size_t i = 0; i < before->n; i++)
		compare_server(&c, &before->servers[i], find_server(after, before->servers[i].name));
	for (size_t i = 0; i < after->n; i++)
		if (!find_server(before, after->servers[i].name))
			compare_server(&c, NULL, &after->servers[i]);
	if (c.more)
		json_array_append_new(c.list,
				      json_pack("{s:s, s:o, s:n, s:n}", "server", c.server, "what",
						json_sprintf("%zu more change%s", c.more, c.more == 1 ? "" : "s"),
						"before", "after"));
	return c.list;
}
