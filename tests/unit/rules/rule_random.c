/* SPDX-License-Identifier: GPL-2.0 */
/* Random rules, and random requests that often meet them. */
#include "rule_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../array_size.h"
#include "base/cleanup.h"
#include "model/parse.h"

static __u64 sequence;

void random_start(unsigned int seed)
{
	sequence = seed * 0x9e3779b97f4a7c15ULL + 1;
}

unsigned int random_below(unsigned int n)
{
	sequence = sequence * 6364136223846793005ULL + 1442695040888963407ULL;
	return (sequence >> 33) % n;
}

#define PICK(words) words[random_below(ARRAY_SIZE(words))]

static const char *const users[] = { "alice", "bob", "system:serviceaccount:x:y", "system:anonymous" };
const char *const rule_groups[RULE_GROUPS] = { "dev", "ops", "system:unauthenticated", "qa" };
static const char *const api_groups[] = { "", "apps", "batch.example.com" };
static const char *const resources[] = { "pods", "secrets", "log" };
static const char *const subresources[] = { "", "", "log", "exec", "status" };
static const char *const namespaces[] = { "", "w", "x", "y", "z" }; /* rules name the last three */
/* Each, and the user that it is when it is nobody else. */
static const char *const addresses[] = { "10.0.0.1",	    "10.1.2.3",	     "10.1.2.4", "2001:db8::1",
					 "2001:db8:0:1::1", "2001:db8:5::1", "fd00::1",	 "192.0.2.1" };
static const char *const address_users[] = { "10.0.0.1",	  "10.1.2.3",	     "10.1.2.4",  "2001:db8::/64",
					     "2001:db8:0:1::/64", "2001:db8:5::/64", "fd00::/64", "192.0.2.1" };
static const char *const segments[] = { "a", "b", "healthz", "v1" };

static const char *const paths[] = { "/a",
				     "/a/",
				     "/a/*",
				     "/a/b",
				     "/a/b/*",
				     "/healthz",
				     "/*",
				     "/",
				     "/api/v1/*",
				     "/apis/*",
				     "/v1/v1/v1/v1/v1/v1/v1/v1/v1",
				     "/b/*",
				     "/b/b/",
				     "/b/b/b/a/*" };

/* --- requests */

/* A resource's method and verb: of itself, or of all there are. */
static const struct {
	const char *method, *verb, *query;
	bool named;
} calls[] = {
	{ "GET", "get", "", true },
	{ "GET", "list", "", false },
	{ "GET", "watch", "?watch=1", false },
	{ "POST", "create", "", false },
	{ "PUT", "update", "", true },
	{ "PATCH", "patch", "", true },
	{ "DELETE", "delete", "", true },
	{ "DELETE", "deletecollection", "?x", false },
};

static const struct {
	const char *method, *verb;
} path_calls[] = {
	{ "GET", "get" }, { "HEAD", "head" }, { "POST", "post" }, { "DELETE", "delete" }, { "BREW", "other" }
};

static void make_resource(struct rule_request *r)
{
	size_t call = random_below(ARRAY_SIZE(calls));
	const char *subresource = PICK(subresources);
	int n;

	r->of_resource = true;
	r->method = calls[call].method;
	r->verb = calls[call].verb;
	r->api_group = PICK(api_groups);
	r->resource = PICK(resources);
	r->subresource = calls[call].named ? subresource : "";
	r->namespace = PICK(namespaces);
	r->runs_long = strcmp(r->verb, "watch") == 0 || strcmp(r->subresource, "log") == 0 ||
		       strcmp(r->subresource, "exec") == 0;
	n = snprintf(r->path, sizeof(r->path), *r->api_group ? "/apis/%s/v1" : "/api%s/v1", r->api_group);
	if (*r->namespace)
		n += snprintf(r->path + n, sizeof(r->path) - n, "/namespaces/%s", r->namespace);
	n += snprintf(r->path + n, sizeof(r->path) - n, "/%s%s", r->resource, calls[call].named ? "/name" : "");
	if (*r->subresource)
		snprintf(r->path + n, sizeof(r->path) - n, "/%s", r->subresource);
	snprintf(r->target, sizeof(r->target), "%s%s", r->path, calls[call].query);
}

/* A path with a meaning: profiles take long, and of an API without a resource only the method is known. */
static void make_odd_path(struct rule_request *r)
{
	r->of_resource = random_below(2);
	r->runs_long = !r->of_resource;
	snprintf(r->path, sizeof(r->path), r->of_resource ? "/api/v1/watch" : "/debug/pprof/heap");
}

/* One of those that rules name, or something below it. */
static void make_named_path(struct rule_request *r)
{
	const char *path = PICK(paths);

	snprintf(r->path, sizeof(r->path), "%s", strncmp(path, "/api", 4) == 0 ? "/" : path);
	if (r->path[strlen(r->path) - 1] == '*')
		r->path[strlen(r->path) - 1] = 'x';
	r->of_resource = false;
}

static void make_path(struct rule_request *r)
{
	size_t call = random_below(ARRAY_SIZE(path_calls));
	unsigned int depth = random_below(random_below(8) ? 4 : 12);
	size_t n = 0;

	r->method = path_calls[call].method;
	r->verb = path_calls[call].verb;
	r->api_group = r->resource = r->subresource = r->namespace = "";
	for (unsigned int i = 0; i < depth; i++)
		n += snprintf(r->path + n, sizeof(r->path) - n, "/%s", PICK(segments));
	if (!depth || !random_below(3))
		snprintf(r->path + n, sizeof(r->path) - n, "/");
	if (!random_below(3))
		make_named_path(r);
	else if (!random_below(8))
		make_odd_path(r);
	memcpy(r->target, r->path, sizeof(r->target));
}

struct rule_request rule_request_random(void)
{
	size_t address = random_below(ARRAY_SIZE(addresses)), n = 0;
	struct rule_request r = { .source = addresses[address] };

	if (random_below(3))
		make_resource(&r);
	else
		make_path(&r);
	r.anonymous = !random_below(3);
	r.user = r.anonymous ? address_users[address] : random_below(5) ? PICK(users) : "mallory";
	if (r.anonymous)
		r.groups[n++] = "system:unauthenticated";
	for (size_t i = 0; i < ARRAY_SIZE(rule_groups) && !r.anonymous; i++)
		if (!random_below(3) && strcmp(rule_groups[i], "system:unauthenticated") != 0)
			r.groups[n++] = rule_groups[i];
	return r;
}

/* --- rules */

static void list_words(json_t *rule, const char *key, const char *const *words, size_t n, bool any)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (!random_below(3))
			json_array_append_new(list, json_string(words[i]));
	if (any && !random_below(8))
		json_array_append_new(list, json_string("*"));
	json_object_set_new(rule, key, list);
}

#define LIST_WORDS(rule, key, words, any) list_words(rule, key, words, ARRAY_SIZE(words), any)

static void say_subjects(json_t *rule)
{
	if (random_below(2))
		LIST_WORDS(rule, "users", users, true);
	else if (random_below(2))
		LIST_WORDS(rule, "users", address_users, false);
	if (random_below(2))
		LIST_WORDS(rule, "groups", rule_groups, true);
}

static void say_calls(json_t *rule)
{
	static const char *const verbs[] = { "get", "list", "watch", "create", "delete", "head", "other" };

	LIST_WORDS(rule, "verbs", verbs, true);
	if (!random_below(3))
		json_object_set_new(rule, "long_running", json_boolean(random_below(2)));
	if (!random_below(6))
		json_object_set_new(rule, "non_resource", json_boolean(random_below(4)));
}

static void say_resources(json_t *rule)
{
	static const char *const some[] = { "pods", "secrets", "pods/log", "secrets/status", "log" };

	if (random_below(2))
		LIST_WORDS(rule, "api_groups", api_groups, true);
	if (random_below(2))
		LIST_WORDS(rule, "resources", some, true);
	else if (random_below(2))
		LIST_WORDS(rule, "resources", resources, true);
	if (!random_below(3))
		LIST_WORDS(rule, "subresources", subresources, false);
}

static void say_paths(json_t *rule)
{
	LIST_WORDS(rule, "paths", paths, true);
}

static void say_sources(json_t *rule)
{
	static const char *const sources[] = { "10.0.0.0/8",  "10.1.0.0/16", "10.1.2.3",  "2001:db8::/32",
					       "2001:db8::1", "::/0",	     "0.0.0.0/0", "2001:db8:0:1::/64" };

	LIST_WORDS(rule, "sources", sources, false);
}

static void say_namespaces(json_t *rule)
{
	list_words(rule, "namespaces", namespaces + 2, ARRAY_SIZE(namespaces) - 2, true);
	if (!random_below(4))
		json_object_set_new(rule, "cluster_scope", json_true());
}

static bool read_rule(json_t *json, struct rule *rule)
{
	*rule = (struct rule){ 0 };
	return !rule_from_json(json, rule, NULL);
}

struct rule rule_random(unsigned int conditions, unsigned int sparse)
{
	static void (*const say[])(json_t *) = { say_subjects,	 say_calls, say_resources,
						 say_namespaces, say_paths, say_sources };
	struct rule rule;

	for (;;) {
		CLEANUP_JSON json_t *json = json_object();

		for (size_t i = 0; i < ARRAY_SIZE(say); i++)
			if (conditions >> i & 1 && !random_below(sparse))
				say[i](json);
		if (read_rule(json, &rule))
			return rule;
	}
}

struct rule rule_of(const char *text)
{
	CLEANUP_JSON json_t *json = json_loads(text, 0, NULL);
	struct rule rule;

	assert_non_null(json);
	assert_true(read_rule(json, &rule));
	return rule;
}
