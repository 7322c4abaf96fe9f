/* SPDX-License-Identifier: GPL-2.0 */
/* Limits with rules, packet by packet: whom they are for, and what they charge. */
#include "limited.h"

#include <stdio.h>

#define LIMITS (WEIR_NAMED_MAX - 1)
#define CLIENT_ADDRESS "127.0.0.9"

static void test_only_what_matches(void **state)
{
	struct datapath_limit limit = rate_of(0, 0, 1);

	(void)state;
	slot_set(&limit);
	rule_set("{\"verbs\": [\"list\"], \"resources\": [\"secrets\"]}");
	assert_true(passes(false, list_secrets));
	assert_true(passes(false, get_pod));
	assert_false(passes(false, list_secrets));
	assert_true(passes(false, get_pod));
	assert_int_equal(counter(WEIR_SHED_COMBINED), 1);
	assert_int_equal(counts(SLOT).admitted, 1);
	assert_int_equal(counts(SLOT).refused, 1);

	/* Without rules the limit is for nothing any more. */
	done(datapath_rules_set(dp, 0, NULL, NULL, 0, NULL, 0, &error));
	assert_true(passes(false, list_secrets));
}

static void test_a_change_keeps_the_buckets(void **state)
{
	struct datapath_limit limit = rate_of(0, 0, 1);

	(void)state;
	slot_set(&limit);
	rule_set("{\"verbs\": [\"list\"]}");
	assert_true(passes(false, list_secrets));
	rule_set("{\"resources\": [\"secrets\"]}");
	assert_false(passes(false, list_secrets));
}

static void test_exempt(void **state)
{
	CLEANUP_RULE struct rule exempt = rule_of("{\"resources\": [\"secrets\"]}"), any = { 0 };
	const struct rules_entry entries[] = { { .rules = &exempt, .n = 1, .limit = WEIR_RULE_EXEMPT },
					       { .rules = &any, .n = 1, .limit = SLOT } };
	struct datapath_limit limit = rate_of(0, 0, 0);

	(void)state;
	slot_set(&limit);
	rules_set(entries, 2);
	assert_false(passes(false, get_pod));
	connect_ends(false);
	assert_int_equal(client_says(false, 0, list_secrets), PASS);
	assert_int_equal(counter(WEIR_EXEMPT), 1);
}

/* As another server could read it, the path leads elsewhere. */
static void test_exempt_path(void **state)
{
	static const char *const odd[] = { "/public/../a", "/public/..%2fa", "/public/%2e%2e/a", "/public//../a" };
	CLEANUP_RULE struct rule exempt = rule_of("{\"paths\": [\"/public/*\"]}"), any = { 0 };
	const struct rules_entry entries[] = { { .rules = &exempt, .n = 1, .limit = WEIR_RULE_EXEMPT },
					       { .rules = &any, .n = 1, .limit = SLOT } };
	struct datapath_limit limit = rate_of(0, 0, 0);

	(void)state;
	slot_set(&limit);
	rules_set(entries, 2);
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		char text[64];

		snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", odd[i]);
		assert_false(passes(false, text));
	}
	assert_int_equal(counter(WEIR_EXEMPT), 0);
	connect_ends(false);
	assert_int_equal(client_says(false, 0, "GET /public/a HTTP/1.1\r\nHost: x\r\n\r\n"), PASS);
	assert_int_equal(counter(WEIR_EXEMPT), 1);
}

static void test_dry_run(void **state)
{
	struct datapath_limit limit = rate_of(0, 0, 1);

	(void)state;
	limit.flags = WEIR_LIMIT_DRY_RUN;
	slot_set(&limit);
	rule_set("{}");
	assert_true(passes(false, get_pod));
	assert_true(passes(false, get_pod));
	assert_int_equal(counts(SLOT).dry_run_refused, 1);
	assert_int_equal(counts(SLOT).refused, 0);
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(counter(WEIR_DRY_RUN_SHED), 1);
	assert_int_equal(counter(WEIR_SHED_COMBINED), 0);
}

static void test_combined_key(void **state)
{
	struct datapath_limit limit = rate_of(WEIR_KEY_NAMESPACE | WEIR_KEY_SOURCE, 0, 1);
	struct datapath_subject_use top[2];
	char text[64];

	(void)state;
	slot_set(&limit);
	rule_set("{}");
	assert_true(passes(false, list_secrets));
	assert_true(passes(true, list_secrets));
	assert_false(passes(false, list_secrets));
	assert_true(passes(false, "GET /api/v1/namespaces/b/secrets HTTP/1.1\r\n\r\n"));
	assert_true(passes(false, "GET /version HTTP/1.1\r\n\r\n"));
	assert_true(passes(false, "GET /version HTTP/1.1\r\n\r\n"));
	assert_int_equal(datapath_top(dp, 0, top, 2, &error), 1);
	assert_int_equal(top[0].slot, SLOT);
	assert_int_equal(datapath_name(dp, top[0].subject, text, sizeof(text)), 0);
	assert_string_equal(text, "a/" CLIENT_ADDRESS);
}

/* As bytes; the ends of the packets are always the same. */
static void request_text(struct rule_request *r, char *text, size_t size)
{
	int n = snprintf(text, size, "%s %s HTTP/1.1\r\nHost: x\r\n", r->method, r->target);

	r->source = CLIENT_ADDRESS;
	if (r->anonymous) {
		r->user = CLIENT_ADDRESS;
		r->groups[0] = "system:unauthenticated";
		r->groups[1] = NULL;
	} else {
		n += snprintf(text + n, size - n, "X-Remote-User: %s\r\n", r->user);
		for (int i = 0; i < 4 && r->groups[i]; i++)
			n += snprintf(text + n, size - n, "X-Remote-Group: %s\r\n", r->groups[i]);
	}
	snprintf(text + n, size - n, "\r\n");
}

static void server_with_proxy(void)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 65536 };
	struct datapath_cidr proxy = { .address = { [10] = 0xff, 0xff, 127, 0, 0, 9 }, .bits = 128 };

	weir_reading_default(&server.reading);
	weir_groups_add(&server.groups.unauthenticated, group_known("system:unauthenticated"));
	done(datapath_server_set(dp, 0, &server, &listen, 1, &proxy, 1, &error));
}

/* The limits that are charged for random requests under random rules are those that the rules, as written, say. */
static void test_random(void **state)
{
	struct rule rules[LIMITS][3];
	struct rules_entry entries[LIMITS];
	unsigned int met = 0;
	char text[1024];

	(void)state;
	for (__u32 i = 0; i < LIMITS; i++) {
		struct datapath_limit limit = rate_of(0, 0, 1000000);

		done(datapath_limit_set(dp, 0, SLOT + i, &limit, &error));
	}
	for (unsigned int seed = 1; seed <= 12; seed++) {
		random_start(seed);
		for (__u16 i = 0; i < LIMITS; i++) {
			entries[i] = (struct rules_entry){ .rules = rules[i], .n = 3, .limit = SLOT + i };
			for (int j = 0; j < 3; j++)
				rules[i][j] = rule_random(RULE_ALL, 4);
		}
		rules_set(entries, LIMITS);
		server_with_proxy();
		for (int i = 0; i < 60; i++) {
			struct rule_request r = rule_request_random();
			__u64 before[LIMITS], exempt;
			__u16 want[LIMITS_MAX];
			int n;

			request_text(&r, text, sizeof(text));
			n = rules_match_written(entries, LIMITS, &r, want);
			for (__u32 j = 0; j < LIMITS; j++)
				before[j] = counts(SLOT + j).admitted;
			connect_ends(false);
			exempt = counter(WEIR_EXEMPT);
			assert_int_equal(client_says(false, 0, text), PASS);
			if (counter(WEIR_EXEMPT) != exempt) /* it asked for the server's health */
				n = 0;
			for (__u32 j = 0; j < LIMITS; j++) {
				__u64 charged = counts(SLOT + j).admitted - before[j];
				__u64 expected = 0;

				for (int k = 0; k < n; k++)
					expected += want[k] == SLOT + j;
				if (charged != expected)
					fail_msg("seed %u: limit %u charged %d, not %d, for %s", seed, j, (int)charged,
						 (int)expected, text);
				met += expected;
			}
		}
		for (int i = 0; i < LIMITS * 3; i++)
			rule_clear(&rules[i / 3][i % 3]);
	}
	assert_true(met > 100);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(only_what_matches),
		TEST(a_change_keeps_the_buckets),
		TEST(exempt),
		TEST(exempt_path),
		TEST(dry_run),
		TEST(combined_key),
		TEST(random),
	};

	return cmocka_run_group_tests_name("rules", tests, attached_open, attached_close);
}
