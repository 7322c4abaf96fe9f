/* SPDX-License-Identifier: GPL-2.0 */
#include "base/cleanup.h"
#include "state/state.h"

/* Takes out of an object what the plain one says, too. */
static void take_out(json_t *json, json_t *plain)
{
	json_t *value, *there;
	const char *key;

	json_object_foreach (plain, key, value) {
		there = json_object_get(json, key);
		if (json_equal(there, value))
			json_object_del(json, key);
		else if (json_is_object(there) && json_is_object(value))
			take_out(there, value);
	}
}

/* Of a server for which nothing was chosen, what every server has for itself is not told. */
static json_t *plain_settings(void)
{
	static const char *const own[] = { "name", "listen", "cgroup" };
	CLEANUP_JSON json_t *least = json_pack("{s:s, s:[s]}", "name", "plain", "listen", "*:1");
	CLEANUP_SERVER struct server *server = NULL;
	json_t *json;

	if (!least || server_from_json(least, &server, NULL))
		return NULL;
	json = server_settings_to_json(server);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		json_object_del(json, own[i]);
	return json;
}

json_t *server_settings_chosen(const struct server *server)
{
	CLEANUP_JSON json_t *plain = plain_settings();
	json_t *json = plain ? server_settings_to_json(server) : NULL;

	take_out(json, plain);
	return json;
}

void server_attach_defaults(json_t *json)
{
	if (!json_object_get(json, "inside"))
		json_object_set_new(json, "inside", json_string(inside_modes.words[INSIDE_AUTO]));
}
