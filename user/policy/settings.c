/* SPDX-License-Identifier: GPL-2.0 */
/* Settings of a server beside its limits: those that only attach can set, pausing it, and its dry run. */
#include <errno.h>

#include "base/cleanup.h"
#include "policy/objects.h"

/* What of a Throttle's spec is applied to a server that is attached (policy_server.c). */
static const char *const not_settings[] = { "limits",	 "concurrency",	   "dryRun",	     "exempt",
					    "paused",	 "maxInFlight",	   "priorityLevels", "flowSchemas",
					    "listWidth", "listObjectBytes" };

json_t *policy_attach_settings(json_t *throttle)
{
	CLEANUP_JSON json_t *settings = json_copy(json_object_get(throttle, "spec"));

	for (size_t i = 0; i < sizeof(not_settings) / sizeof(*not_settings); i++)
		json_object_del(settings, not_settings[i]);
	return policy_own_names(settings);
}

int policy_check_settings(const struct server *server, json_t *throttle, struct error *err)
{
	CLEANUP_JSON json_t *before = server_settings_to_json(server), *wanted = json_deep_copy(before), *after = NULL;
	CLEANUP_JSON json_t *settings = policy_attach_settings(throttle);
	CLEANUP_SERVER struct server *made = NULL;
	const char *key;
	json_t *value;
	int ret;

	json_object_update(wanted, settings);
	ret = server_from_json(wanted, &made, err);
	if (ret)
		return ret;
	after = server_settings_to_json(made);
	json_object_foreach (settings, key, value)
		if (!json_equal(json_object_get(before, key), json_object_get(after, key)))
			return error_set(err, -EBUSY,
					 "server \"%s\": its %s cannot be changed while it is attached: %s",
					 server->name, key,
					 policy_attached(server) ? "delete its Throttle first, then add it again" :
								   "detach it first");
	return 0;
}

/* A command has changed what there is beside the objects. */
static void base_set(struct server *server, const char *key, bool value)
{
	json_t *base = json_object_get(server->policy, "base"), *policy;

	if (!base)
		return;
	policy = json_copy(server->policy);
	base = json_copy(base);
	json_object_set_new(base, key, json_boolean(value));
	json_object_set_new(policy, "base", base);
	json_decref(server->policy);
	server->policy = policy;
}

/* A command pauses beside what the file says, and cannot resume what that pauses. */
int policy_pause(struct server *server, bool paused, struct error *err)
{
	json_t *throttle = policy_throttle_of(policy_objects(server));
	json_t *spec = json_object_get(policy_object_document(throttle), "spec");

	if (!paused && json_is_true(json_object_get(spec, "paused")))
		return error_set(err, -EBUSY, "server \"%s\" is paused by %s: change it there", server->name,
				 policy_object_source(throttle));
	base_set(server, "paused", paused);
	server->paused = paused;
	return 0;
}

/* What the file says of it, that stays. */
int policy_dry_run(struct server *server, bool dry_run, struct error *err)
{
	json_t *throttle = policy_throttle_of(policy_objects(server));
	json_t *said = json_object_get(json_object_get(policy_object_document(throttle), "spec"), "dryRun");

	if (said && json_is_true(said) != dry_run)
		return error_set(err, -EBUSY, "server \"%s\": %s says dryRun: %s: change it there", server->name,
				 policy_object_source(throttle), dry_run ? "false" : "true");
	base_set(server, "dry_run", dry_run);
	server->dry_run = dry_run;
	return 0;
}
