/* SPDX-License-Identifier: GPL-2.0 */
/* Everything that the command line can say of a server and its limits can be said in a Throttle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "policy/policy.h"

/* Where an option's word has its place. */
static const struct word {
	const char *option, *field; /* below spec; NULL: it says no more than which server, or how to print */
} words[] = {
	/* attach */
	{ "port", "listen" },
	{ "listen", "listen" },
	{ "netns", "netns" },
	{ "interface", "interfaces" },
	{ "cgroup", "cgroup" },
	{ "trusted-proxy", "trustedProxies" },
	{ "proxy-protocol", "proxyProtocol" },
	{ "dry-run", "dryRun" },
	{ "framing", "framing" },
	{ "bodies", "bodies" },
	{ "keys", "keys" },
	{ "loopback", "loopback" },
	{ "paths", "paths" },
	{ "namespace-from", "namespaceFrom" },
	{ "hold", "hold" },
	{ "when-full", "whenFull" },
	{ "inside", "inside" },
	{ "inside-share", "insideShare" },
	{ "write-memory", "writeMemory" },
	{ "hold-max", "holdMax" },
	{ "refusals", "refusals" },
	{ "xdp", "xdp" },
	{ "syn-cookies", "synCookies" },
	{ "max-retry-after", "maxRetryAfter" },
	{ "exempt-source", "exempt.sources" },
	{ "exempt-path", "exempt.paths" },
	{ "user-header", "identity.userHeader" },
	{ "group-header", "identity.groupHeader" },
	{ "token-file", "identity.tokenFile" },
	{ "address", "identity.addresses" },
	{ "address-file", "identity.addressFile" },
	{ "new-subjects", "identity.newSubjects" },
	{ "exempt-group", "identity.exemptGroups" },
	{ "exempt-user", "identity.exemptUsers" },
	/* limit set */
	{ "qps", "limits.qps" },
	{ "burst", "limits.burst" },
	{ "in-flight", "limits.inFlight" },
	{ "deny", "limits.deny" },
	{ "connections", "limits.connections" },
	{ "open", "limits.open" },
	{ "over", "limits.over" },
	{ "key", "limits.key" },
	{ "enforce", "limits.mode" },
	{ "penalty", "limits.penalty" },
	{ "verb", "limits.rules.verbs" },
	{ "resource", "limits.rules.resources" },
	{ "subresource", "limits.rules.subresources" },
	{ "api-group", "limits.rules.apiGroups" },
	{ "for-namespace", "limits.rules.namespaces" },
	{ "cluster-scope", "limits.rules.clusterScope" },
	{ "for-user", "limits.rules.users" },
	{ "for-group", "limits.rules.groups" },
	{ "path", "limits.rules.paths" },
	{ "non-resource", "limits.rules.nonResource" },
	{ "source", "limits.rules.sources" },
	{ "long-running", "limits.rules.longRunning" },
	/* max-in-flight */
	{ "read-only", "maxInFlight.readOnly" },
	{ "mutating", "maxInFlight.mutating" },
	/* all */
	{ "server", NULL },
};

/* What has no option. */
static const char *const others[] = {
	"paused",		    /* pause, resume */
	"limits.name",		    /* limit set NAME SUBJECT */
	"limits.overrides.subject", /* the same */
	"limits.overrides.qps",
	"limits.overrides.burst",
	"limits.overrides.inFlight",
	"limits.overrides.deny",
	"limits.keys",
	"limits.mode",
};

static json_t *throttle_schema(json_t *schema)
{
	json_t *kind;
	size_t i;

	json_array_foreach (json_object_get(schema, "oneOf"), i, kind) {
		json_t *properties = json_object_get(kind, "properties");
		const char *name = json_string_value(json_object_get(json_object_get(properties, "kind"), "const"));

		if (name && strcmp(name, "Throttle") == 0)
			return json_object_get(properties, "spec");
	}
	return NULL;
}

static bool has_field(json_t *schema, const char *path)
{
	CLEANUP_FREE char *copy = strdup(path);
	char *rest = copy, *key;

	while (schema && (key = strsep(&rest, "."))) {
		schema = json_object_get(json_object_get(schema, "properties"), key);
		schema = json_object_get(schema, "items") ?: schema;
	}
	return schema;
}

static const struct word *word_of(const char *option)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(words[i].option, option) == 0)
			return &words[i];
	return NULL;
}

static void check_option(json_t *schema, const char *option)
{
	const struct word *word = word_of(option);

	if (!word)
		fail_msg("nothing is known of --%s: can a Throttle say it?", option);
	else if (word->field && !has_field(schema, word->field))
		fail_msg("a Throttle has no %s, which --%s would be", word->field, option);
}

static int check_options(json_t *schema, const struct argp_option *options)
{
	int n = 0;

	for (; options->name || options->doc; options++) {
		if (!options->name)
			continue;
		check_option(schema, options->name);
		n++;
	}
	return n;
}

static void all_options(void **state)
{
	CLEANUP_JSON json_t *schema = policy_schema();
	json_t *throttle = throttle_schema(schema);

	(void)state;
	assert_non_null(throttle);
	assert_true(check_options(throttle, cli_attach_options) >= 15);
	assert_true(check_options(throttle, cli_attach_identity.options) >= 8);
	assert_true(check_options(throttle, cli_limit_set_options) >= 9);
	assert_true(check_options(throttle, cli_limit_rule.options) >= 12);
	assert_true(check_options(throttle, cli_max_in_flight_options) >= 3);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!has_field(throttle, others[i]))
			fail_msg("a Throttle has no %s", others[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all_options) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
