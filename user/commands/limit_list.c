/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "commands/commands.h"

/* Rates are texts where every digit counts; here they are numbers. */
static void rate_as_number(json_t *object)
{
	const char *qps = json_string_value(json_object_get(object, "qps"));

	if (qps)
		json_object_set_new(object, "qps",
				    strchr(qps, '.') ? json_real(strtod(qps, NULL)) :
						       json_integer(strtoll(qps, NULL, 10)));
}

static json_t *describe(const struct server *server, const struct limit *limit)
{
	json_t *object = json_pack("{s:s}", "server", server->name), *override;
	json_t *whole = limit_to_json(limit);
	size_t i;

	json_object_update(object, whole);
	json_decref(whole);
	json_object_del(object, "number");
	if (!json_integer_value(json_object_get(object, "keys")))
		json_object_del(object, "keys");
	rate_as_number(object);
	json_array_foreach (json_object_get(object, "overrides"), i, override)
		rate_as_number(override);
	json_object_set_new(object, "file", json_string(limit->file ?: "command line"));
	return object;
}

int agent_limit_list(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent); /* what is there is only read */
	const char *name = NULL;
	json_error_t why;
	json_t *list;

	if (json_unpack_ex(arguments, &why, 0, "{s?s !}", "server", &name))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	if (name && state_find(&agent->state, name) < 0)
		return state_unknown(&agent->state, name, err);
	list = json_array();
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = agent->state.servers[slot];

		if (!server || server->draining || (name && strcmp(name, server->name) != 0))
			continue;
		for (size_t i = 0; i < server->n_limits; i++)
			json_array_append_new(list, describe(server, &server->limits[i]));
	}
	*result = json_pack("{s:o}", "limits", list);
	return 0;
}
