/* SPDX-License-Identifier: GPL-2.0 */
/* Compiled rules match what they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "../http/request_trace.h"
#include "rule_fixture.h"

#define ENTRIES_MAX 64
#define LIMITS (WEIR_NAMED_MAX - 1) /* beside the level of a flow schema */

struct policy {
	struct rule rules[WEIR_RULES_MAX];
	size_t n_rules;
	struct rules_entry entries[ENTRIES_MAX];
	size_t n;
};

static void policy_add(struct policy *p, struct rules_entry entry, size_t n, unsigned int sparse)
{
	entry.rules = &p->rules[p->n_rules];
	entry.n = n;
	for (size_t i = 0; i < n; i++)
		p->rules[p->n_rules++] = rule_random(RULE_ALL, sparse);
	p->entries[p->n++] = entry;
}

/* Exemptions, then flow schemas of a few levels, then limits: all the rules there can be, of `share` each at most. */
static void policy_make(struct policy *p, unsigned int share)
{
	unsigned int sparse = 2 + random_below(4);

	*p = (struct policy){ 0 };
	if (random_below(2))
		policy_add(p, (struct rules_entry){ .limit = WEIR_RULE_EXEMPT }, random_below(2), 2);
	for (unsigned int i = 0, n = random_below(20); i < n; i++)
		policy_add(p,
			   (struct rules_entry){ .limit = random_below(4) ? 20 + random_below(3) : WEIR_RULE_NOTHING,
						 .schema = true },
			   random_below(share / 8 + 2), sparse);
	for (__u16 i = 0; i < LIMITS; i++)
		policy_add(p, (struct rules_entry){ .limit = WEIR_BUILTIN_LIMITS + i }, random_below(share + 1),
			   sparse);
}

static void policy_clear(struct policy *p)
{
	for (size_t i = 0; i < p->n_rules; i++)
		rule_clear(&p->rules[i]);
}

static int compile(const struct policy *p, struct rules **rules, struct error *err)
{
	return rules_compile(p->entries, p->n, &rule_names, rules, err);
}

static void test_random(void **state)
{
	static struct policy p;
	size_t most = 0, exempt = 0, met = 0;

	(void)state;
	for (unsigned int seed = 0; seed < 120; seed++) {
		CLEANUP_RULES struct rules *rules = NULL;

		random_start(seed);
		policy_make(&p, seed % 3 == 0 ? 75 : seed % 3 == 1 ? 10 : 1);
		most = p.n_rules > most ? p.n_rules : most;
		assert_int_equal(compile(&p, &rules, NULL), 0);
		for (int i = 0; i < 150; i++) {
			struct rule_request r = rule_request_random();
			__u16 written[LIMITS_MAX], compiled[LIMITS_MAX];
			int n = rules_match_written(p.entries, p.n, &r, written);

			if (rules_match_compiled(rules, &r, compiled) != n ||
			    (n > 0 && memcmp(written, compiled, n * sizeof(*written)) != 0))
				fail_msg("seed %u: %s %s of %s from %s", seed, r.method, r.target, r.user, r.source);
			exempt += n < 0;
			met += n > 0 && n < LIMITS;
		}
		policy_clear(&p);
	}
	assert_true(most > 400 && exempt > 100 && met > 5000);
}

/* Every rule has its bit, to the last one. */
static void test_full(void **state)
{
	static struct rule rules[WEIR_RULES_MAX + 1];
	struct rules_entry entry = { .rules = rules, .n = WEIR_RULES_MAX, .limit = 4, .label = "limit all" };
	struct rule_request r = { .target = "/",
				  .path = "/",
				  .method = "GET",
				  .verb = "get",
				  .api_group = "",
				  .resource = "",
				  .subresource = "",
				  .namespace = "",
				  .user = "u1023",
				  .source = "10.0.0.1" };
	struct rules *compiled = NULL;
	struct error err;
	__u16 limits[LIMITS_MAX];

	(void)state;
	for (int i = 0; i <= WEIR_RULES_MAX; i++) {
		char text[64];

		snprintf(text, sizeof(text), "{\"users\": [\"u%d\"]}", i);
		rules[i] = rule_of(text);
	}
	assert_int_equal(rules_compile(&entry, 1, &rule_names, &compiled, &err), 0);
	assert_int_equal(compiled->n_vectors, WEIR_RULES_MAX);
	assert_int_equal(compiled->value.dimensions, 1 << WEIR_DIMENSION_SUBJECT);
	assert_int_equal(rules_match_compiled(compiled, &r, limits), 1);
	assert_int_equal(limits[0], 4);
	r.user = "u1024";
	assert_int_equal(rules_match_compiled(compiled, &r, limits), 0);
	rules_free(compiled);
	entry.n++;
	assert_int_equal(rules_compile(&entry, 1, &rule_names, &compiled, &err), -E2BIG);
	assert_string_equal(err.text, "1025 rules: a server can have at most 1024");
	for (int i = 0; i <= WEIR_RULES_MAX; i++)
		rule_clear(&rules[i]);
}

static int known_bit(void *context, const char *group)
{
	(void)group;
	return *(const int *)context;
}

/* A group is one of those that can be known, or there is no room for it. */
static void test_room_for_groups(void **state)
{
	static const int bits[] = { -1, 0, WEIR_GROUPS_MAX - 1, WEIR_GROUPS_MAX };
	CLEANUP_RULE struct rule rule = rule_of("{\"groups\": [\"dev\"]}");
	struct rules_entry entry = { .rules = &rule, .n = 1, .limit = 4 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bits); i++) {
		struct rules_names names = rule_names;
		CLEANUP_RULES struct rules *rules = NULL;
		int bit = bits[i], room = bit >= 0 && bit < WEIR_GROUPS_MAX;
		struct error err = { 0 };

		names.group = known_bit;
		names.context = &bit;
		assert_int_equal(rules_compile(&entry, 1, &names, &rules, &err), room ? 0 : -E2BIG);
		assert_string_equal(err.text,
				    room ? "" : "there is no room for the group \"dev\": at most 128 can be known");
		if (!room)
			continue;
		assert_int_equal(rules->value.groups[bit], request_subject(WEIR_NAME_GROUP, "dev", 3));
		/* Members are found by their user. */
		assert_int_equal(rules->value.dimensions, 1 << WEIR_DIMENSION_SUBJECT | 1 << WEIR_DIMENSION_GROUP);
	}
}

static void check_one(const char *rule_text, const char *method, const char *target, bool matches)
{
	CLEANUP_RULE struct rule rule = rule_of(rule_text);
	struct rules_entry entry = { .rules = &rule, .n = 1, .limit = 4 };
	struct rule_request r = { .method = method, .user = "alice", .source = "10.0.0.1" };
	CLEANUP_RULES struct rules *rules = NULL;
	__u16 limits[LIMITS_MAX];

	snprintf(r.target, sizeof(r.target), "%s", target);
	assert_int_equal(rules_compile(&entry, 1, &rule_names, &rules, NULL), 0);
	if (rules_match_compiled(rules, &r, limits) != matches)
		fail_msg("%s: %s %s", rule_text, method, target);
}

static void test_examples(void **state)
{
	(void)state;
	check_one("{}", "GET", "/", true);
	check_one("{\"paths\": [\"/\"]}", "GET", "/", true);
	check_one("{\"paths\": [\"/\"]}", "GET", "http://host", true);
	check_one("{\"paths\": [\"/healthz\"]}", "GET", "/healthz?x", true);
	check_one("{\"paths\": [\"/healthz\"]}", "GET", "/healthz/", false);
	check_one("{\"paths\": [\"/healthz\"]}", "GET", "/h%65althz", true);
	check_one("{\"paths\": [\"/healthz/*\"]}", "GET", "/healthz", false);
	check_one("{\"paths\": [\"/healthz/*\"]}", "GET", "/healthz/", true);
	check_one("{\"paths\": [\"/healthz/*\"]}", "GET", "/healthz/etcd", true);
	check_one("{\"paths\": [\"/*\"]}", "GET", "/", true);
	check_one("{\"paths\": [\"/1/2/3/4/5/6/7/8/9/*\"]}", "GET", "/1/2/3/4/5/6/7/8/9/10/11", true);
	check_one("{\"paths\": [\"/1/2/3/4/5/6/7/8/9\"]}", "GET", "/1/2/3/4/5/6/7/8/9/10", false);
	check_one("{\"paths\": [\"/1/2/3/4/5/6/7/8/9/\"]}", "GET", "/1/2/3/4/5/6/7/8/9/10/", false);
	check_one("{\"resources\": [\"pods\"]}", "GET", "/api/v1/namespaces/x/pods", true);
	check_one("{\"resources\": [\"pods\"]}", "GET", "/api/v1/namespaces/x/pods/p/log", false);
	check_one("{\"resources\": [\"pods\"]}", "GET", "/pods", false);
	check_one("{\"resources\": [\"pods\"], \"subresources\": [\"log\"]}", "GET", "/api/v1/namespaces/x/pods/p/log",
		  true);
	check_one("{\"api_groups\": [\"\"]}", "GET", "/", false);
	check_one("{\"resources\": [\"*\"]}", "GET", "/", false);
	check_one("{\"namespaces\": [\"*\"]}", "GET", "/api/v1/namespaces/x/pods", true);
	check_one("{\"namespaces\": [\"*\"]}", "GET", "/api/v1/pods", false);
	check_one("{\"cluster_scope\": true}", "GET", "/api/v1/pods", true);
	check_one("{\"cluster_scope\": true}", "GET", "/api/v1/namespaces/x/pods", false);
}

/* What a path is depends on how the server reads it. */
static void test_paths_read(void **state)
{
	(void)state;
	request_reading.paths = WEIR_PATHS_NGINX;
	check_one("{\"paths\": [\"/a/*\"]}", "GET", "/a/.", true);
	check_one("{\"paths\": [\"/a/\"]}", "GET", "/a/b/..", true);
	check_one("{\"paths\": [\"/a/\"]}", "GET", "//a//", true);
	check_one("{\"paths\": [\"/a\"]}", "GET", "/b/../a", true);
	check_one("{\"paths\": [\"/a/*\"]}", "GET", "/a", false);
	request_reading.paths = WEIR_PATHS_RAW;
	check_one("{\"paths\": [\"/\"]}", "GET", "/", true);
	check_one("{\"paths\": [\"/a/\"]}", "GET", "/a/", true);
	check_one("{\"paths\": [\"/a/*\"]}", "GET", "/a/", true);
	check_one("{\"paths\": [\"/a/*\"]}", "GET", "/a//", true);
	check_one("{\"paths\": [\"/a\"]}", "GET", "/a/", false);
	check_one("{\"paths\": [\"/a/\"]}", "GET", "/a//", false);
	check_one("{\"paths\": [\"/a\"]}", "GET", "/a/.", false);
	check_one("{\"paths\": [\"/1/2/3/4/5/6/7/8/9/\"]}", "GET", "/1/2/3/4/5/6/7/8/9/", true);
	check_one("{\"paths\": [\"/1/2/3/4/5/6/7/8/9/\"]}", "GET", "/1/2/3/4/5/6/7/8/9/10/", false);
	request_reading.paths = WEIR_PATHS_KUBERNETES;
	check_one("{\"paths\": [\"/a/*\"]}", "GET", "/a%2Fb", true);
	check_one("{\"paths\": [\"/1/2/3/4/5/6/7/8/9/\"]}", "GET", "/1/2/3/4/5/6/7/8/9/", true);
}

/* Exempt are requests under this path, whom there is no other rule for. */
static bool is_exempt(const char *rule_text, enum weir_paths paths, const char *target)
{
	CLEANUP_RULE struct rule rule = rule_of(rule_text);
	struct rules_entry entry = { .rules = &rule, .n = 1, .limit = WEIR_RULE_EXEMPT };
	struct rule_request r = { .method = "GET", .user = "alice", .source = "10.0.0.1" };
	CLEANUP_RULES struct rules *rules = NULL;
	__u16 limits[LIMITS_MAX];
	bool exempt;

	snprintf(r.target, sizeof(r.target), "%s", target);
	assert_int_equal(rules_compile(&entry, 1, &rule_names, &rules, NULL), 0);
	request_reading.paths = paths;
	exempt = rules_match_compiled(rules, &r, limits) < 0;
	request_reading.paths = WEIR_PATHS_KUBERNETES;
	return exempt;
}

static void check_exempt(const char *rule, const char *target, bool exempt)
{
	for (int paths = WEIR_PATHS_KUBERNETES; paths <= WEIR_PATHS_RAW; paths++)
		if (is_exempt(rule, (enum weir_paths)paths, target) != exempt)
			fail_msg("%s: %s, read as %d", rule, target, paths);
}

/* What some server could take for another path is exempt by its path on none. */
static void test_exempt_paths(void **state)
{
	static const char *const plain[] = {
		"/public/",    "/public/a",	      "/public/a/b.c", "/public/a?x=/../b", "/public/.well-known",
		"/public/a;b", "http://host/public/a"
	};
	static const char *const odd[] = {
		"/public/../secret",
		"/public/./a",
		"/public/..",
		"/public/.",
		"/public/..;/secret",
		"/public/.;x/a",
		"/public/..%2fsecret",
		"/public%2f..%2fsecret",
		"/public/%2e%2e/secret",
		"/public/%2E./secret",
		"/public//../secret",
		"/public//a",
		"//public/a",
		"/public/a//",
		"/public/..\\secret",
		"/public\\..\\secret",
		"/public/a%5c..%5csecret",
		"/public/a#/../secret",
		"/public/\xc0\xae./secret",
		"/public/%61",
		"/secret/../public/a",
	};
	static const char below[] = "{\"paths\": [\"/public/*\"]}";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		check_exempt(below, plain[i], true);
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		check_exempt(below, odd[i], false);
	check_exempt("{\"paths\": [\"/.well-known/*\"]}", "/.well-known/acme", true);
	check_exempt("{\"paths\": [\"/\"]}", "/", true);
	check_exempt("{\"paths\": [\"/*\"]}", "/public//a", false);
	check_exempt("{\"non_resource\": true}", "/public/../api/v1/pods", false);
	check_exempt("{\"verbs\": [\"get\"]}", "/public/../secret", false);
	check_exempt("{\"users\": [\"alice\"], \"paths\": [\"/public/*\"]}", "/public/../secret", false);
	/* Whose it is does not hang on its path. */
	check_exempt("{\"users\": [\"alice\"]}", "/public/../secret", true);
	check_exempt("{\"sources\": [\"10.0.0.0/8\"]}", "/public/../secret", true);
}

/* A rule leads to a later one or to none: steps end also where the kernel's memory says otherwise. */
static void test_steps_end(void **state)
{
	static struct weir_rule rules[WEIR_RULES_MAX] = { [5] = { .limit = 9 }, [70] = { .limit = 8 } };
	struct weir_vector set = { .words = { 1ULL << 5, 1ULL << 6 }, .summary = 3 };

	(void)state;
	for (__u16 next = 0; next <= 70; next += 5) {
		__u32 at = 0;

		rules[5].next = next;
		assert_int_equal(weir_match_step(&set, rules, &at), 9);
		assert_int_equal(at, next > 5 ? next : WEIR_RULES_MAX);
	}
	rules[5].limit = WEIR_RULE_EXEMPT;
	for (__u16 next = 0; next <= 70; next += 35) {
		__u32 at = 0;

		rules[5].next = next;
		assert_int_equal(weir_match_step(&set, rules, &at), WEIR_RULE_EXEMPT);
		assert_int_equal(at, WEIR_RULES_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_examples),	cmocka_unit_test(test_paths_read),
		cmocka_unit_test(test_exempt_paths),	cmocka_unit_test(test_full),
		cmocka_unit_test(test_random),		cmocka_unit_test(test_steps_end),
		cmocka_unit_test(test_room_for_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
