/* SPDX-License-Identifier: GPL-2.0 */
/* Keys as policy files write them, and as weir does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/names.h"

static void check(json_t *made, const char *expected)
{
	CLEANUP_FREE char *text = json_dumps(made, JSON_COMPACT | JSON_ENCODE_ANY);

	assert_string_equal(text, expected);
	json_decref(made);
}

/* What `apply` reads, and `export` writes again: only keys are another word, wherever they are. */
static void there_and_back(void **state)
{
	static const struct {
		const char *yaml, *own;
	} cases[] = {
		{ "{\"inFlight\":1}", "{\"in_flight\":1}" },
		{ "{\"qps\":\"inFlight\"}", "{\"qps\":\"inFlight\"}" },
		{ "{\"a\":{\"b\":{\"maxRetryAfter\":2}}}", "{\"a\":{\"b\":{\"max_retry_after\":2}}}" },
		{ "[{\"qps\":1},{\"forUsers\":[\"aB\"]}]", "[{\"qps\":1},{\"for_users\":[\"aB\"]}]" },
		{ "[[{\"qps\":1}],[{\"qps\":{\"xY\":1}}]]", "[[{\"qps\":1}],[{\"qps\":{\"x_y\":1}}]]" },
		{ "[{\"qps\":1},{\"burst\":2}]", "[{\"qps\":1},{\"burst\":2}]" },
		{ "[]", "[]" },
		{ "{}", "{}" },
		{ "7", "7" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_JSON json_t *yaml = json_loads(cases[i].yaml, JSON_DECODE_ANY, NULL);
		CLEANUP_JSON json_t *own = json_loads(cases[i].own, JSON_DECODE_ANY, NULL);

		check(policy_own_names(yaml), cases[i].own);
		check(policy_yaml_names(own), cases[i].yaml);
	}
}

/* Each letter of a name may need a second one. */
static void long_names(void **state)
{
	CLEANUP_JSON json_t *yaml = json_pack("{s:i}", "ABCDEFGHIJKLMNOP", 1);
	CLEANUP_JSON json_t *own = json_pack("{s:i, s:i}", "_a_b_c", 1, "end_", 2);

	(void)state;
	check(policy_own_names(yaml), "{\"_a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_p\":1}");
	check(policy_yaml_names(own), "{\"ABC\":1,\"end_\":2}");
}

/* Long lists are not copied for nothing. */
static void lists_are_shared(void **state)
{
	CLEANUP_JSON json_t *list = json_pack("[{s:i}]", "qps", 1), *other = json_pack("[{s:i}]", "inFlight", 1);
	json_t *made = policy_own_names(list);

	(void)state;
	assert_ptr_equal(made, list);
	json_decref(made);
	made = policy_own_names(other);
	assert_ptr_not_equal(made, other);
	json_decref(made);
}

/* In an error: fields, and nothing that somebody has written. */
static void words(void **state)
{
	static const char *const cases[][2] = {
		{ "in_flight: must be a number", "inFlight: must be a number" },
		{ "max_retry_after, hold_max", "maxRetryAfter, holdMax" },
		{ "user \"in_flight: x_y\" has no in_flight", "user \"in_flight: x_y\" has no inFlight" },
		{ "\"a b_c d\" and x_y z", "\"a b_c d\" and xY z" },
		{ "/etc/api_keys.csv: no_such", "/etc/api_keys.csv: noSuch" },
		{ "end_ _begin a_b", "end_ _begin aB" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[128];

		strcpy(text, cases[i][0]);
		policy_yaml_words(text);
		assert_string_equal(text, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(long_names),
		cmocka_unit_test(lists_are_shared),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests_name("policy_names", tests, NULL, NULL);
}
