/* SPDX-License-Identifier: GPL-2.0 */
/* Settings of a server beside its limits: those of attach, pausing it, and its dry run. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_read.h"
#include "policy/names.h"
#include "policy/objects.h"

/* What of a Throttle's spec comes into force when its server is attached (server.c). */
static const char *const not_settings[] = { "limits",	 "concurrency",	   "dryRun",	     "exempt",
					    "paused",	 "maxInFlight",	   "priorityLevels", "flowSchemas",
					    "listWidth", "listObjectBytes" };

json_t *policy_attach_settings(json_t *throttle)
{
	CLEANUP_JSON json_t *settings = json_copy(json_object_get(throttle, "spec"));
	json_t *own;

	for (size_t i = 0; i < sizeof(not_settings) / sizeof(*not_settings); i++)
		json_object_del(settings, not_settings[i]);
	own = policy_own_names(settings);
	server_attach_defaults(own);
	return own;
}

/* --- what objects change */

/*
 * What an object may say of a server that is attached, beside its limits. Where it does not say it, what commands have set
 * holds; of a server that its Throttle attached, the default, or for what has none what was said before.
 */
static const struct {
	const char *name;
	enum {
		BY_COMMANDS, /* can be set beside the objects */
		BY_ATTACH,
		BY_ATTACH_ALWAYS, /* has no default */
	} set;
} settings[] = {
	{ "concurrency", BY_COMMANDS },
	{ "dry_run", BY_COMMANDS },
	{ "exempt", BY_COMMANDS },
	{ "list_object_bytes", BY_COMMANDS },
	{ "list_width", BY_COMMANDS },
	{ "paused", BY_COMMANDS },
	{ "bodies", BY_ATTACH },
	{ "framing", BY_ATTACH },
	{ "hold", BY_ATTACH },
	{ "hold_max", BY_ATTACH },
	{ "identity", BY_ATTACH },
	{ "inside", BY_ATTACH },
	{ "inside_share", BY_ATTACH },
	{ "interfaces", BY_ATTACH },
	{ "loopback", BY_ATTACH },
	{ "max_retry_after", BY_ATTACH },
	{ "namespace_from", BY_ATTACH },
	{ "paths", BY_ATTACH },
	{ "proxy_protocol", BY_ATTACH },
	{ "refusals", BY_ATTACH },
	{ "trusted_proxies", BY_ATTACH },
	{ "syn_cookies", BY_ATTACH },
	{ "when_full", BY_ATTACH },
	{ "write_memory", BY_ATTACH },
	{ "xdp", BY_ATTACH },
	{ "cgroup", BY_ATTACH_ALWAYS },
	{ "listen", BY_ATTACH_ALWAYS },
};

#define SETTINGS (sizeof(settings) / sizeof(*settings))

/* Is the setting as it was before objects were applied kept beside them? */
static bool kept_in_base(const struct server *server, size_t i)
{
	return settings[i].set == BY_COMMANDS || !policy_attached(server);
}

json_t *policy_base(const struct server *server)
{
	CLEANUP_JSON json_t *chosen = server_settings_chosen(server), *all = server_settings_to_json(server);
	json_t *kept = json_object_get(server->policy, "base"), *base = json_object();

	for (size_t i = 0; i < SETTINGS; i++) {
		/* An older version takes what is not there for what is in force. It knows all that commands set. */
		json_t *from = kept ?: settings[i].set == BY_COMMANDS ? all : chosen;

		if (kept_in_base(server, i))
			json_object_set(base, settings[i].name, json_object_get(from, settings[i].name));
	}
	return base;
}

int policy_check_base(const struct server *server, struct error *err)
{
	json_t *base = json_object_get(server->policy, "base");
	const char *names[SETTINGS + 1] = { NULL };

	for (size_t i = 0; i < SETTINGS; i++)
		names[i] = settings[i].name;
	return base ? members_check(base, "the base", names, err) : 0;
}

json_t *policy_bare(const struct server *server, json_t *base, json_t *objects)
{
	json_t *json = server_settings_to_json(server);
	bool anew = policy_attached(server) && policy_throttle_of(objects);

	for (size_t i = 0; i < SETTINGS; i++)
		if (settings[i].set != BY_ATTACH_ALWAYS && (anew || kept_in_base(server, i)))
			json_object_del(json, settings[i].name);
	json_object_update(json, base);
	if (anew)
		server_attach_defaults(json);
	json_object_set_new(json, "priority_levels", json_array());
	json_object_set_new(json, "flow_schemas", json_array());
	return json;
}

/* A pause by command stays. */
void policy_settings_set(json_t *json, json_t *spec)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		json_t *value = json_object_get(spec, settings[i].name);

		if (value && (strcmp(settings[i].name, "paused") != 0 || json_is_true(value)))
			json_object_set(json, settings[i].name, value);
	}
}

bool policy_same_settings(const struct server *a, const struct server *b)
{
	CLEANUP_JSON json_t *left = server_settings_to_json(a), *right = server_settings_to_json(b);

	for (size_t i = 0; i < SETTINGS; i++)
		if (settings[i].set != BY_COMMANDS &&
		    !json_equal(json_object_get(left, settings[i].name), json_object_get(right, settings[i].name)))
			return false;
	return true;
}

/* In another namespace it would be another server, and buckets that exist have their room. */
int policy_check_fixed(const struct server *server, json_t *throttle, struct error *err)
{
	static const char *const fixed[] = { "netns", "keys" };
	CLEANUP_JSON json_t *before = server_settings_to_json(server);
	json_t *spec = json_object_get(throttle, "spec");

	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
		json_t *wanted = json_object_get(spec, fixed[i]);

		if (wanted && !json_equal(wanted, json_object_get(before, fixed[i])))
			return error_set(err, -EBUSY,
					 "server \"%s\": its %s cannot be changed while it is attached: %s",
					 server->name, fixed[i],
					 policy_attached(server) ? "delete its Throttle first, then add it again" :
								   "detach it first");
	}
	return 0;
}

/* --- what commands change beside them */

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
				 policy_object_file(throttle));
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
				 policy_object_file(throttle), dry_run ? "false" : "true");
	base_set(server, "dry_run", dry_run);
	server->dry_run = dry_run;
	return 0;
}
