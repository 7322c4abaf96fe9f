/* SPDX-License-Identifier: GPL-2.0 */
/* The options of `limit set` that say which requests a limit is for. What they give is one rule (rule.h). */
#include <string.h>

#include "base/json_list.h"
#include "cli/cli.h"
#include "model/rule.h"

enum {
	KEY_VERB = 0x400,
	KEY_API_GROUP,
	KEY_RESOURCE,
	KEY_SUBRESOURCE,
	KEY_NAMESPACE,
	KEY_USER,
	KEY_GROUP,
	KEY_PATH,
	KEY_SOURCE,
	KEY_LONG_RUNNING,
	KEY_CLUSTER_SCOPE,
	KEY_NON_RESOURCE,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0,
	  "Requests that a new limit applies to (default: all). Of the values of one option, one must match. "
	  "All options must match:",
	  5 },
	{ "verb", KEY_VERB, "VERB[,VERB]", 0,
	  "get, list, watch, create, ...; of a non-resource path get, head, post, ...", 5 },
	{ "resource", KEY_RESOURCE, "NAME[,NAME]", 0, "resource, like pods or pods/log", 5 },
	{ "subresource", KEY_SUBRESOURCE, "NAME[,NAME]", 0, "subresource of any resource, like log; '': none", 5 },
	{ "api-group", KEY_API_GROUP, "NAME[,NAME]", 0, "API group, like apps; '': the core group", 5 },
	{ "for-namespace", KEY_NAMESPACE, "NAME[,NAME]", 0, "namespace; '*': any, but not cluster scope", 5 },
	{ "cluster-scope", KEY_CLUSTER_SCOPE, NULL, 0,
	  "requests without a namespace; this or --for-namespace must match", 5 },
	{ "for-user", KEY_USER, "NAME", 0, "user or address", 5 },
	{ "for-group", KEY_GROUP, "NAME", 0, "group of the user; this or --for-user must match", 5 },
	{ "path", KEY_PATH, "PATH", 0, "path, like /healthz, or /healthz/* for everything below it", 5 },
	{ "non-resource", KEY_NON_RESOURCE, NULL, 0, "requests for non-resource paths", 5 },
	{ "source", KEY_SOURCE, "CIDR[,CIDR]", 0, "network of the peer's address", 5 },
	{ "long-running", KEY_LONG_RUNNING, "yes|no", 0,
	  "only long-running requests (watch, exec, logs), or only the others", 5 },
	{ 0 },
};

static const struct list {
	const char *key;
	const char *name;
	int option;
	bool commas; /* else they may be part of a name */
} lists[] = {
	{ "verbs", "--verb", KEY_VERB, true },
	{ "resources", "--resource", KEY_RESOURCE, true },
	{ "subresources", "--subresource", KEY_SUBRESOURCE, true },
	{ "api_groups", "--api-group", KEY_API_GROUP, true },
	{ "namespaces", "--for-namespace", KEY_NAMESPACE, true },
	{ "users", "--for-user", KEY_USER, false },
	{ "groups", "--for-group", KEY_GROUP, false },
	{ "paths", "--path", KEY_PATH, false },
	{ "sources", "--source", KEY_SOURCE, true },
};

static const struct list *find_list(int key)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (lists[i].option == key)
			return &lists[i];
	return NULL;
}

static void check_whole(const struct argp_state *state, json_t *rule)
{
	CLEANUP_RULE struct rule read = { 0 };
	struct error err;

	cli_check(state, rule_from_json(rule, &read, &err), "which requests", &err);
}

static void add_item(const struct argp_state *state, json_t *rule, const struct list *list, const char *item)
{
	struct error err;

	cli_check(state, rule_check_word(list->key, item, &err), list->name, &err);
	list_append(rule, list->key, json_string(item));
}

static void add_items(const struct argp_state *state, json_t *rule, const struct list *list, char *arg)
{
	char *item;

	if (!list->commas) {
		add_item(state, rule, list, arg);
		return;
	}
	while ((item = strsep(&arg, ",")))
		add_item(state, rule, list, item);
}

static void set_long_running(const struct argp_state *state, json_t *rule, const char *arg)
{
	bool yes = strcmp(arg, "yes") == 0;

	if (!yes && strcmp(arg, "no") != 0)
		cli_refuse(state, "--long-running: \"%s\" is neither yes nor no", arg);
	json_object_set_new(rule, "long_running", json_boolean(yes));
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	const struct list *list = find_list(key);
	json_t *rule = state->input;

	if (list) {
		add_items(state, rule, list, arg);
		return 0;
	}
	switch (key) {
	case KEY_LONG_RUNNING:
		set_long_running(state, rule, arg);
		return 0;
	case KEY_CLUSTER_SCOPE:
		json_object_set_new(rule, "cluster_scope", json_true());
		return 0;
	case KEY_NON_RESOURCE:
		json_object_set_new(rule, "non_resource", json_true());
		return 0;
	case ARGP_KEY_END:
		check_whole(state, rule);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cli_limit_rule = { .options = options, .parser = parse };
