/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What outlives the machine's restart: what commands have set. Policy files that the agent follows are there again by themselves,
 * and connections that a server drained for are not.
 */
#include "base/cleanup.h"
#include "policy/objects.h"
#include "saved/saved.h"

static json_t *objects_by_command(const struct server *server)
{
	json_t *objects = json_array(), *object;
	size_t i;

	json_array_foreach (policy_objects(server), i, object)
		if (!policy_object_followed(object))
			json_array_append(objects, object);
	return objects;
}

/* A server of a followed Throttle is there with what commands have set on it, until its Throttle takes it up again. */
static json_t *of_followed_throttle(const struct server *made)
{
	json_t *json;

	if (!made->n_limits && !made->paused && !policy_objects(made))
		return NULL;
	json = server_to_json(made);
	if (!policy_objects(made))
		json_object_set_new(json, "policy", json_pack("{s:b}", "attached", 1));
	return json;
}

/* Objects that need those of followed files (a FlowSchema whose level is in one) cannot be there without them. */
json_t *server_persisted(const struct server *server)
{
	CLEANUP_JSON json_t *by_command = objects_by_command(server), *none = json_array();
	CLEANUP_SERVER struct server *made = NULL;

	if (server->draining)
		return NULL;
	if (json_array_size(by_command) == json_array_size(policy_objects(server)))
		return server_to_json(server);
	if (policy_server(server, by_command, &made, NULL) && policy_server(server, none, &made, NULL))
		return NULL;
	if (policy_attached(server) && policy_object_followed(policy_throttle_of(policy_objects(server))))
		return of_followed_throttle(made);
	return server_to_json(made);
}
