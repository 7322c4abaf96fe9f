/* SPDX-License-Identifier: GPL-2.0 */
/* Policies of which one request could meet too many limits are refused, with the limits and such a request; others are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <time.h>

#include "../http/request_trace.h"
#include "base/cleanup.h"
#include "rule_fixture.h"

#define ENTRIES_MAX (WEIR_SERVER_LIMITS - WEIR_BUILTIN_LIMITS)

struct policy {
	struct rule rules[WEIR_RULES_MAX];
	size_t n_rules;
	char labels[ENTRIES_MAX][32];
	struct rules_entry entries[ENTRIES_MAX];
	size_t n;
};

static struct policy p;

/* Of the next slot, with the last n rules. */
static struct rules_entry *add_limit(size_t n)
{
	struct rules_entry *entry = &p.entries[p.n];

	snprintf(p.labels[p.n], sizeof(p.labels[p.n]), "limit l%zu", p.n);
	*entry = (struct rules_entry){
		.rules = &p.rules[p.n_rules - n], .n = n, .limit = WEIR_BUILTIN_LIMITS + p.n, .label = p.labels[p.n]
	};
	p.n++;
	return entry;
}

/* printf-like, for one number. */
static void add_rule(const char *format, unsigned int number)
{
	char text[256];

	snprintf(text, sizeof(text), format, number);
	p.rules[p.n_rules++] = rule_of(text);
}

/* So many limits with one rule each, of the numbers from `first` on. */
static void add_limits(int n, const char *format, unsigned int first)
{
	for (int i = 0; i < n; i++) {
		add_rule(format, first + i);
		add_limit(1);
	}
}

static void clear(void)
{
	for (size_t i = 0; i < p.n_rules; i++)
		rule_clear(&p.rules[i]);
	p.n_rules = p.n = 0;
}

static int compile(struct error *err)
{
	CLEANUP_RULES struct rules *rules = NULL;
	int ret;

	*err = (struct error){ 0 };
	ret = rules_compile(p.entries, p.n, &rule_names, &rules, err);
	assert_true(ret == 0 || ret == -E2BIG);
	return ret;
}

static void expect(int ret, const char *text)
{
	struct error err;

	assert_int_equal(compile(&err), ret);
	assert_string_equal(err.text, text);
}

static void test_said(void **state)
{
	(void)state;
	clear();
	add_limits(WEIR_NAMED_MAX,
		   "{\"users\": [\"alice\", \"u%u\"], \"verbs\": [\"list\"], \"resources\": [\"pods\"]}", 0);
	expect(0, "");
	add_limits(1, "{\"namespaces\": [\"x\"], \"users\": [\"bob\"]}", 0);
	expect(0, "");
	add_limits(1, "{\"namespaces\": [\"x\"], \"verbs\": [\"list\", \"get\"]}", 0);
	expect(-E2BIG,
	       "one request meets more than 12 limits (user alice, list, resource pods, namespace x): limit l0, "
	       "limit l1, limit l2, limit l3, limit l4, limit l5, limit l6, limit l7, limit l8, limit l9, limit l10, "
	       "limit l11, limit l13");
	clear();
}

static void test_in_flight(void **state)
{
	(void)state;
	clear();
	for (int i = 0; i < WEIR_SEAT_SLOTS; i++)
		add_limit(0)->in_flight = true;
	expect(0, "");
	add_rule("{\"paths\": [\"/a/*\"]}", 0);
	add_limit(1)->in_flight = true;
	add_limits(1, "{\"paths\": [\"/a/b\"]}", 0);
	expect(-E2BIG, "one request meets more than 8 limits of requests in flight (path /a/b): limit l0, limit l1, "
		       "limit l2, limit l3, limit l4, limit l5, limit l6, limit l7, limit l8, limit l9");
	p.entries[0].in_flight = false;
	expect(0, "");
	clear();
}

/* Of flow schemas a request is of one; who is exempt meets none. */
static void test_schemas(void **state)
{
	(void)state;
	clear();
	add_rule("{\"users\": [\"alice\"]}", 0);
	add_limit(1)->limit = WEIR_RULE_EXEMPT;
	for (int i = 0; i < 20; i++) {
		add_rule("{}", i);
		add_limit(1)->schema = true;
		p.entries[p.n - 1].in_flight = true;
	}
	for (int i = 0; i < WEIR_NAMED_MAX - 1; i++)
		add_limit(0);
	expect(0, "");
	add_limits(1, "{\"users\": [\"alice\"]}", 0);
	expect(0, "");
	add_limits(1, "{\"users\": [\"bob\"]}", 0);
	expect(-E2BIG,
	       "one request meets more than 12 limits (user bob): limit l1, limit l21, limit l22, limit l23, "
	       "limit l24, limit l25, limit l26, limit l27, limit l28, limit l29, limit l30, limit l31, limit l33");
	p.entries[1].limit = WEIR_RULE_NOTHING;
	expect(0, "");
	clear();
}

static void test_groups(void **state)
{
	static const char *const names[] = { "dev", "ops", "qa" };

	(void)state;
	clear();
	for (int i = 0; i <= WEIR_NAMED_MAX; i++) {
		char text[64];

		snprintf(text, sizeof(text), "{\"groups\": [\"%s\"]}", names[i % 3]);
		add_rule(text, 0);
		add_limit(1);
	}
	expect(-E2BIG,
	       "one request meets more than 12 limits: limit l0, limit l1, limit l2, limit l3, limit l4, limit l5, "
	       "limit l6, limit l7, limit l8, limit l9, limit l10, limit l11, limit l12");
	clear();
}

/* Requests of no namespace. */
static void test_cluster_scope(void **state)
{
	(void)state;
	clear();
	add_limits(WEIR_NAMED_MAX + 1, "{\"namespaces\": [\"x%u\"], \"cluster_scope\": true}", 0);
	expect(-E2BIG,
	       "one request meets more than 12 limits: limit l0, limit l1, limit l2, limit l3, limit l4, limit l5, "
	       "limit l6, limit l7, limit l8, limit l9, limit l10, limit l11, limit l12");
	rule_clear(&p.rules[12]);
	p.rules[12] = rule_of("{\"namespaces\": [\"*\"]}");
	expect(0, "");
	clear();
}

static void test_sources(void **state)
{
	(void)state;
	clear();
	add_limits(WEIR_NAMED_MAX + 1, "{\"sources\": [\"10.0.0.0/%u\"]}", 8);
	expect(-E2BIG,
	       "one request meets more than 12 limits (from 10.0.0.0/20): limit l0, limit l1, limit l2, limit l3, "
	       "limit l4, limit l5, limit l6, limit l7, limit l8, limit l9, limit l10, limit l11, limit l12");
	rule_clear(&p.rules[0]);
	p.rules[0] = rule_of("{\"sources\": [\"11.0.0.0/8\"]}");
	expect(0, "");
	clear();
}

static void check_call(const char *verb, const char *conditions, bool possible)
{
	char text[128];

	snprintf(text, sizeof(text), "{\"verbs\": [\"%s\"], %s}", verb, conditions);
	clear();
	add_limits(WEIR_NAMED_MAX + 1, text, 0);
	if (compile(&(struct error){ 0 }) != (possible ? -E2BIG : 0))
		fail_msg("%s", text);
	clear();
}

/* Where a network has all addresses, nobody is outside. */
static void test_all_sources(void **state)
{
	static const char *const exempt[] = { "{\"sources\": [\"::/0\"]}", "{\"sources\": [\"::/1\"]}",
					      "{\"sources\": [\"0.0.0.0/0\"]}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(exempt); i++) {
		clear();
		p.rules[p.n_rules++] = rule_of(exempt[i]);
		add_limit(1)->limit = WEIR_RULE_EXEMPT;
		for (int k = 0; k <= WEIR_NAMED_MAX; k++)
			add_limit(0);
		assert_int_equal(compile(&(struct error){ 0 }), i ? -E2BIG : 0);
	}
	clear();
}

/* A subresource of any resource, and each of those that a rule names of its resource. */
static void test_subresources(void **state)
{
	static const char *const rules[] = { "{\"subresources\": [\"log\"]}",
					     "{\"resources\": [\"pods\"], \"subresources\": [\"s%u\", \"log\"]}" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		clear();
		add_limits(WEIR_NAMED_MAX + 1, rules[i], 0);
		assert_int_equal(compile(&(struct error){ 0 }), -E2BIG);
	}
	clear();
	add_limits(WEIR_NAMED_MAX, "{\"resources\": [\"pods/log\"]}", 0);
	expect(0, "");
	add_limits(1, rules[0], 0);
	assert_int_equal(compile(&(struct error){ 0 }), -E2BIG);
	clear();
}

/* There is no request of some kinds: their limits are met by nobody. */
static void test_calls_that_are_not(void **state)
{
	static const struct {
		const char *verb;
		bool short_of_resource, long_of_resource, short_of_path, long_of_path;
	} calls[] = {
		{ "watch", .long_of_resource = true },
		{ "proxy", .long_of_resource = true },
		{ "list", .short_of_resource = true },
		{ "deletecollection", .short_of_resource = true },
		{ "create", .short_of_resource = true, .long_of_resource = true },
		{ "update", .short_of_resource = true, .long_of_resource = true },
		{ "get", true, true, true, true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		check_call(calls[i].verb, "\"resources\": [\"*\"], \"long_running\": false",
			   calls[i].short_of_resource);
		check_call(calls[i].verb, "\"resources\": [\"*\"], \"long_running\": true", calls[i].long_of_resource);
		check_call(calls[i].verb, "\"non_resource\": true, \"long_running\": false", calls[i].short_of_path);
		check_call(calls[i].verb, "\"non_resource\": true, \"long_running\": true", calls[i].long_of_path);
	}
}

/* Who differs in one thing meets one limit, whatever else the rules have in common. */
static void test_words_of_one_kind_alone(void **state)
{
	static const char *const rules[] = {
		"{\"users\": [\"u%u\"], \"api_groups\": [\"apps\"]}",
		"{\"api_groups\": [\"a%u\"], \"resources\": [\"pods\"]}",
		"{\"resources\": [\"r%u\"], \"namespaces\": [\"prod\"]}",
		"{\"namespaces\": [\"n%u\"], \"paths\": [\"/healthz\"]}",
		"{\"paths\": [\"/p%u\"], \"sources\": [\"10.0.0.0/8\"]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		clear();
		add_limits(WEIR_NAMED_MAX + 1, rules[i], 0);
		expect(0, "");
	}
	clear();
}

/* The most limits that one of many requests meets; in_flight: of this kind. */
static int most_met(unsigned int requests, bool in_flight)
{
	int most = 0;

	for (unsigned int i = 0; i < requests; i++) {
		struct rule_request r = rule_request_random();
		__u16 limits[LIMITS_MAX];
		int n = rules_match_written(p.entries, p.n, &r, limits), counted = 0;

		for (int k = 0; k < n; k++)
			counted += !in_flight || limits[k] % 2;
		most = counted > most ? counted : most;
	}
	return most;
}

static void make_random(unsigned int seed, unsigned int conditions)
{
	random_start(seed);
	clear();
	for (unsigned int i = 0, n = 13 + random_below(30); i < n; i++) {
		unsigned int rules = random_below(3);

		for (unsigned int k = 0; k < rules; k++)
			p.rules[p.n_rules++] = rule_random(conditions, 2);
		add_limit(rules);
		if (!rules)
			p.entries[p.n - 1].limit = WEIR_RULE_NOTHING;
		else if (random_below(20) == 0)
			p.entries[p.n - 1].limit = WEIR_RULE_EXEMPT;
		p.entries[p.n - 1].in_flight = p.entries[p.n - 1].limit % 2;
	}
}

/* What is let through, no request breaks. */
static void test_safe(void **state)
{
	unsigned int good = 0;
	struct error err;

	(void)state;
	for (unsigned int seed = 0; seed < 150; seed++) {
		make_random(seed, RULE_ALL);
		if (compile(&err))
			continue;
		good++;
		assert_true(most_met(400, false) <= WEIR_NAMED_MAX);
		assert_true(most_met(400, true) <= WEIR_SEAT_SLOTS);
	}
	assert_true(good > 15 && good < 135);
	clear();
}

/* What is refused, some request would break: where words of one dimension say nothing of another. */
static void test_exact(void **state)
{
	static const unsigned int conditions[] = {
		RULE_CALLS, RULE_NAMESPACES, RULE_SOURCES, RULE_PATHS, RULE_NAMESPACES | RULE_SOURCES, RULE_RESOURCES
	};
	unsigned int refused = 0, good = 0;
	struct error err;

	(void)state;
	for (unsigned int seed = 0; seed < 200; seed++) {
		make_random(seed, conditions[seed % 6]);
		if (!compile(&err)) {
			good++;
			continue;
		}
		refused++;
		if (most_met(4000, false) <= WEIR_NAMED_MAX && most_met(4000, true) <= WEIR_SEAT_SLOTS)
			fail_msg("seed %u: %s", seed, err.text);
	}
	assert_true(refused > 15 && good > 15);
	clear();
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/* As many tenants as there can be, each with limits of his own beside those of all. */
static void test_tenants(void **state)
{
	struct error err;
	double before;

	(void)state;
	clear();
	for (unsigned int i = 0; i < ENTRIES_MAX; i++) {
		for (unsigned int k = 0; k < 4; k++)
			add_rule(
				"{\"namespaces\": [\"t%u\"], \"verbs\": [\"list\", \"get\"], \"resources\": [\"pods\"]}",
				i * 4 + k);
		add_limit(4);
	}
	before = seconds();
	assert_int_equal(compile(&err), 0);
	print_message("# %zu rules of tenants: %.3f s\n", p.n_rules, seconds() - before);
	clear();
}

/* One of five values in each of five dimensions. */
static struct rule rule_of_many(void)
{
	static const char *const keys[] = { "users", "namespaces", "paths", "sources", "api_groups" };
	static const char *const formats[] = { "u%u", "n%u", "/p%u", "10.0.0.%u", "a%u" };
	CLEANUP_JSON json_t *json = json_object();
	struct rule rule = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		json_t *list = json_array();

		for (unsigned int value = 0; value < 60; value++)
			if (random_below(5) == 0)
				json_array_append_new(list, json_sprintf(formats[i], value));
		json_object_set_new(json, keys[i], list);
	}
	assert_int_equal(rule_from_json(json, &rule, NULL), 0);
	return rule;
}

/* Every choice leaves much to choose from: the search gives up, and says what it could not rule out. */
static void test_hard(void **state)
{
	struct error err;
	double before;

	(void)state;
	clear();
	random_start(1);
	for (unsigned int i = 0; i < ENTRIES_MAX; i++) {
		for (unsigned int k = 0; k < 4; k++)
			p.rules[p.n_rules++] = rule_of_many();
		add_limit(4);
	}
	before = seconds();
	assert_int_equal(compile(&err), -E2BIG);
	print_message("# %zu rules of many values: %.3f s\n", p.n_rules, seconds() - before);
	assert_ptr_equal(strstr(err.text, "one request could meet more than 12 limits ("), err.text);
	clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_said),
		cmocka_unit_test(test_in_flight),
		cmocka_unit_test(test_schemas),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_cluster_scope),
		cmocka_unit_test(test_sources),
		cmocka_unit_test(test_safe),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_tenants),
		cmocka_unit_test(test_hard),
		cmocka_unit_test(test_all_sources),
		cmocka_unit_test(test_calls_that_are_not),
		cmocka_unit_test(test_words_of_one_kind_alone),
		cmocka_unit_test(test_subresources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
