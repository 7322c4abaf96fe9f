/* SPDX-License-Identifier: GPL-2.0 */
/* EventRateLimit as limits with rules: for whoever creates or changes a Kubernetes Event, unless all requests are covered. */
#include <string.h>

#include "policy/policy.h"

#define CACHE_SIZE 4096 /* Kubernetes' own, where none is given */

static const struct {
	const char *type, *name, *key;
	bool of_events; /* only an Event has such a key */
} types[] = {
	{ "Server", "event-server", "total", false },
	{ "Namespace", "event-namespace", "namespace", false },
	{ "User", "event-user", "user", false },
	{ "SourceAndObject", "event-source-and-object", "object", true },
};

static json_t *event_rules(void)
{
	return json_pack("[{s:[s, s, s], s:[s, s], s:[s]}]", "verbs", "create", "update", "patch", "api_groups", "",
			 "events.k8s.io", "resources", "events");
}

/* before: how many limits of this type stand before it; Kubernetes asks all of them. */
static json_t *limit_of(json_t *given, size_t i, size_t before, bool all)
{
	json_int_t keys = json_integer_value(json_object_get(given, "cacheSize"));
	json_t *limit = json_pack("{s:s, s:O, s:O}", "key", types[i].key, "qps", json_object_get(given, "qps"), "burst",
				  json_object_get(given, "burst"));

	json_object_set_new(limit, "name",
			    before ? json_sprintf("%s-%zu", types[i].name, before + 1) : json_string(types[i].name));
	if (!all || types[i].of_events)
		json_object_set_new(limit, "rules", event_rules());
	if (i > 0)
		json_object_set_new(limit, "keys", json_integer(keys ?: CACHE_SIZE));
	return limit;
}

json_t *policy_events_limits(json_t *document)
{
	const char *covers = json_string_value(json_object_get(document, "covers")) ?: "events";
	size_t before[sizeof(types) / sizeof(*types)] = { 0 }, at;
	json_t *limits = json_array(), *given;

	json_array_foreach (json_object_get(document, "limits"), at, given) {
		const char *type = json_string_value(json_object_get(given, "type")) ?: "";

		for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
			if (strcmp(types[i].type, type) == 0)
				json_array_append_new(limits,
						      limit_of(given, i, before[i]++, strcmp(covers, "all") == 0));
	}
	return limits;
}
