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
static struct server *of_followed_throttle(struct server *made)
{
	if (!made->n_limits && !made->paused && !policy_objects(made))
		return NULL;
	if (!made->policy)
		made->policy = json_pack("{s:b}", "attached", 1);
	return made;
}

/* Objects that need those of followed files (a FlowSchema whose level is in one) cannot be there without them. */
struct server *server_persisted(struct server *server, struct server **made)
{
	CLEANUP_JSON json_t *by_command = objects_by_command(server), *none = json_array();

	if (server->draining)
		return NULL;
	if (json_array_size(by_command) == json_array_size(policy_objects(server)))
		return server;
	if (policy_server(server, by_command, made, NULL) && policy_server(server, none, made, NULL))
		return NULL;
	if (policy_attached(server) && policy_object_followed(policy_throttle_of(policy_objects(server))))
		return of_followed_throttle(*made);
	return *made;
}
