/* SPDX-License-Identifier: GPL-2.0 */
#include "rule_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "weir/http/match_path.h"

#include "../http/request_trace.h"
#include "base/cleanup.h"
#include "model/parse.h"
#include "rules/sources.h"

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
static const char *const groups[] = { "dev", "ops", "system:unauthenticated", "qa" };
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
	for (size_t i = 0; i < ARRAY_SIZE(groups) && !r.anonymous; i++)
		if (!random_below(3) && strcmp(groups[i], "system:unauthenticated") != 0)
			r.groups[n++] = groups[i];
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
		LIST_WORDS(rule, "groups", groups, true);
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

/* --- as it is written */

static bool has(const struct texts *list, const char *word)
{
	return !list->n || texts_have(list, "*") || texts_have(list, word);
}

static bool in_group(const struct rule_request *r, const char *group)
{
	for (size_t i = 0; i < ARRAY_SIZE(r->groups) && r->groups[i]; i++)
		if (strcmp(r->groups[i], group) == 0)
			return true;
	return false;
}

static bool subject_matches(const struct rule *rule, const struct rule_request *r)
{
	if (!rule->users.n && !rule->groups.n)
		return true;
	if (texts_have(&rule->users, r->user) || texts_have(&rule->users, "*") || texts_have(&rule->groups, "*"))
		return true;
	if (r->anonymous && texts_have(&rule->users, "system:anonymous"))
		return true;
	for (size_t i = 0; i < rule->groups.n; i++)
		if (in_group(r, rule->groups.items[i]))
			return true;
	return false;
}

static bool resource_matches(const struct rule *rule, const struct rule_request *r)
{
	char whole[128];

	if (!rule->api_groups.n && !rule->resources.n && !rule->subresources.n)
		return true;
	if (!r->of_resource || !has(&rule->api_groups, r->api_group))
		return false;
	if (rule->subresources.n)
		return texts_have(&rule->subresources, r->subresource) && has(&rule->resources, r->resource);
	snprintf(whole, sizeof(whole), "%s%s%s", r->resource, *r->subresource ? "/" : "", r->subresource);
	return has(&rule->resources, whole);
}

static bool namespace_matches(const struct rule *rule, const struct rule_request *r)
{
	if (!*r->namespace)
		return rule->cluster_scope || !rule->namespaces.n;
	return rule->namespaces.n ? has(&rule->namespaces, r->namespace) : !rule->cluster_scope;
}

static bool path_matches(const struct rule *rule, const struct rule_request *r)
{
	for (size_t i = 0; i < rule->paths.n; i++) {
		const char *path = rule->paths.items[i];
		size_t length = strlen(path);

		if (path[length - 1] == '*' ? strncmp(r->path, path, length - 1) == 0 : strcmp(r->path, path) == 0)
			return true;
	}
	return !rule->paths.n;
}

static bool source_matches(const struct rule *rule, const struct rule_request *r)
{
	for (size_t i = 0; i < rule->sources.n; i++) {
		struct datapath_cidr network, host;
		bool inside = true;

		assert_int_equal(parse_cidr(rule->sources.items[i], &network, NULL), 0);
		assert_int_equal(parse_cidr(r->source, &host, NULL), 0);
		for (unsigned int bit = 0; bit < network.bits; bit++)
			inside &= !((network.address[bit / 8] ^ host.address[bit / 8]) >> (7 - bit % 8) & 1);
		if (inside)
			return true;
	}
	return !rule->sources.n;
}

bool rule_matches(const struct rule *rule, const struct rule_request *r)
{
	if (rule->long_running && r->runs_long != (rule->long_running == RULE_YES))
		return false;
	return subject_matches(rule, r) && has(&rule->verbs, r->verb) && !(rule->non_resource && r->of_resource) &&
	       resource_matches(rule, r) && namespace_matches(rule, r) && path_matches(rule, r) &&
	       source_matches(rule, r);
}

static bool entry_matches(const struct rules_entry *entry, const struct rule_request *r)
{
	for (size_t i = 0; i < entry->n; i++)
		if (rule_matches(&entry->rules[i], r))
			return true;
	return !entry->n && !entry->schema && entry->limit < WEIR_SERVER_LIMITS;
}

int rules_match_written(const struct rules_entry *entries, size_t n, const struct rule_request *r,
			__u16 limits[static LIMITS_MAX])
{
	bool schema = false;
	int found = 0;

	for (size_t i = 0; i < n; i++) {
		if ((entries[i].schema && schema) || !entry_matches(&entries[i], r))
			continue;
		if (entries[i].limit == WEIR_RULE_EXEMPT)
			return -1;
		schema |= entries[i].schema;
		if (entries[i].limit != WEIR_RULE_NOTHING)
			limits[found++] = entries[i].limit;
	}
	return found;
}

/* --- as the kernel does it */

static __u64 name_subject(void *context, enum weir_name_kind kind, const void *bytes, size_t length)
{
	(void)context;
	return request_subject(kind, bytes, length);
}

static int group_bit(void *context, const char *name)
{
	(void)context;
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		if (strcmp(groups[i], name) == 0)
			return i == 0 ? 0 : (int)i + 62; /* in both words */
	return -1;
}

const struct rules_names rule_names = { .subject = name_subject, .group = group_bit };

static __u64 user_subject(const struct rule_request *r)
{
	struct subject subject;

	assert_int_equal(parse_subject(WEIR_KEY_USER, r->user, &subject, NULL), 0);
	if (subject.kind == WEIR_NAME_ADDRESS)
		return request_subject(subject.kind, (const char *)subject.address, sizeof(subject.address));
	return request_subject(subject.kind, subject.text, strlen(subject.text));
}

/* Only where a rule asks, as the kernel does. */
static void meet(const struct rules *rules, struct weir_vector *set, enum weir_dimension dimension, __u64 value)
{
	if (rules->value.dimensions >> dimension & 1)
		weir_vector_meet(set, rules_find(rules, dimension, value));
}

static void meet_subject(const struct rules *rules, struct weir_vector *set, const struct rule_request *r)
{
	struct weir_vector either;

	if (!(rules->value.dimensions >> WEIR_DIMENSION_SUBJECT & 1))
		return;
	either = *rules_find(rules, WEIR_DIMENSION_SUBJECT, user_subject(r));
	for (size_t i = 0; i < ARRAY_SIZE(r->groups) && r->groups[i]; i++) {
		int bit = group_bit(NULL, r->groups[i]);
		const struct weir_vector *v = rules_find(rules, WEIR_DIMENSION_GROUP, bit);

		if (v)
			weir_vector_join(&either, v);
	}
	weir_vector_meet(set, &either);
}

static void meet_path(const struct rules *rules, struct weir_vector *set, const struct weir_path *p)
{
	struct weir_vector either = rules->value.any[WEIR_DIMENSION_PATH];
	__u32 depth = weir_path_depth(p, (enum weir_paths)request_reading.paths);
	__u64 path = 0;

	if (!(rules->value.dimensions >> WEIR_DIMENSION_PATH & 1))
		return;
	for (__u32 n = 0; n <= depth && n <= WEIR_PATH_SEGMENTS; n++) {
		if (weir_path_is_below(p, depth, n) && rules->value.prefixes >> n & 1)
			weir_vector_join(&either, rules_find(rules, WEIR_DIMENSION_PATH, weir_path_below(path)));
		if (n < depth)
			path = weir_path_further(path, weir_path_subject(p, n));
	}
	if (depth <= WEIR_PATH_SEGMENTS)
		weir_vector_join(&either, rules_find(rules, WEIR_DIMENSION_PATH,
						     weir_path_exact(path, weir_path_is_open(p, depth))));
	weir_vector_meet(set, &either);
}

static void meet_source(const struct rules *rules, struct weir_vector *set, const char *source)
{
	struct datapath_cidr cidr;
	const struct weir_vector *v;

	if (!(rules->value.dimensions >> WEIR_DIMENSION_SOURCE & 1))
		return;
	assert_int_equal(parse_cidr(source, &cidr, NULL), 0);
	v = rules_source_find(rules, cidr.address);
	weir_vector_meet(set, v ?: &rules->value.any[WEIR_DIMENSION_SOURCE]);
}

static void parse_request(const struct rule_request *from, struct weir_request *r, struct weir_attributes *a)
{
	enum weir_frame_event event = WEIR_FRAME_MORE;
	char head[512];
	int length = snprintf(head, sizeof(head), "%s %s" V11, from->method, from->target);

	weir_request_start(r);
	for (int i = 0; i < length && event == WEIR_FRAME_MORE; i++)
		event = weir_request_byte(r, &request_reading, head[i]);
	assert_int_equal(event, WEIR_FRAME_HEAD);
	weir_attributes_of(r, &request_reading, a);
}

int rules_match_compiled(const struct rules *rules, const struct rule_request *from, __u16 limits[static LIMITS_MAX])
{
	struct weir_attributes a;
	struct weir_vector set;
	struct weir_request r;
	__u32 at = 0;
	int n = 0;

	parse_request(from, &r, &a);
	set = r.path.odd ? rules->value.odd : rules->value.all;
	meet_subject(rules, &set, from);
	meet(rules, &set, WEIR_DIMENSION_CALL,
	     weir_call(a.verb, a.flags & WEIR_ATTRIBUTE_LONG_RUNNING, a.flags & WEIR_ATTRIBUTE_RESOURCE));
	meet(rules, &set, WEIR_DIMENSION_API_GROUP, a.group);
	meet(rules, &set, WEIR_DIMENSION_RESOURCE, weir_pair(a.resource, a.subresource));
	meet(rules, &set, WEIR_DIMENSION_SUBRESOURCE, a.subresource);
	meet(rules, &set, WEIR_DIMENSION_NAMESPACE, a.namespace);
	meet_path(rules, &set, &r.path);
	meet_source(rules, &set, from->source);
	for (int step = 0; at < WEIR_RULES_MAX; step++) {
		__u16 limit = weir_match_step(&set, rules->value.rules, &at);

		assert_true(step < WEIR_MATCH_STEPS);
		if (limit == WEIR_RULE_EXEMPT)
			return -1;
		if (limit != WEIR_RULE_NOTHING)
			limits[n++] = limit;
	}
	return n;
}
