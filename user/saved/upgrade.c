/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What earlier agents have left in state.json. In version 1 a server's limits were a flat list of {type, subject, qps, burst,
 * keys}, where a subject of null was the default. In version 2 the file that limits and objects are from was once `source`.
 */
#include "base/json_list.h"
#include "saved/saved.h"

/* The limit of this name, which is made if it is not there. */
static json_t *limit_called(json_t *limits, const char *name)
{
	json_t *limit = list_named(limits, name);

	if (limit)
		return limit;
	limit = json_pack("{s:s}", "name", name);
	json_array_append_new(limits, limit);
	return limit;
}

/* What is not as it should be is copied all the same: it is found out when the limit is read. */
static void move_members(json_t *from, json_t *to, const char *const *keys)
{
	for (; *keys; keys++)
		if (json_object_get(from, *keys))
			json_object_set(to, *keys, json_object_get(from, *keys));
}

static void upgrade_limit(json_t *old, json_t *limits)
{
	static const char *const amount[] = { "qps", "burst", NULL }, *const keys[] = { "keys", NULL };
	const char *type = json_string_value(json_object_get(old, "type"));
	json_t *limit = limit_called(limits, type ?: ""), *override;

	if (!json_string_value(json_object_get(old, "subject"))) {
		move_members(old, limit, amount);
		move_members(old, limit, keys);
		return;
	}
	override = json_pack("{s:O}", "subject", json_object_get(old, "subject"));
	move_members(old, override, amount);
	list_append(limit, "overrides", override);
}

static void upgrade_server(json_t *server)
{
	json_t *limits = json_array(), *old = json_object_get(server, "limits"), *limit;
	size_t i;

	json_array_foreach (old, i, limit)
		upgrade_limit(limit, limits);
	json_object_set_new(server, "limits", limits);
}

void state_upgrade(json_t *servers)
{
	const char *slot;
	json_t *server;

	json_object_foreach (servers, slot, server)
		upgrade_server(server);
}

/* Where there is a file as well, it stays for the reader, who takes no member that he does not know. */
static void name_files(json_t *items)
{
	json_t *item, *source;
	size_t i;

	json_array_foreach (items, i, item) {
		source = json_object_get(item, "source");
		if (!source || json_object_get(item, "file"))
			continue;
		json_object_set(item, "file", source);
		json_object_del(item, "source");
	}
}

void state_name_files(json_t *servers)
{
	const char *slot;
	json_t *server;

	json_object_foreach (servers, slot, server) {
		name_files(json_object_get(server, "limits"));
		name_files(json_object_get(json_object_get(server, "policy"), "objects"));
	}
}
