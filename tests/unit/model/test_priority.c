/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "model/priority.h"

#define LEVELS                                                                                                                   \
	"[{\"name\":\"exempt\",\"exempt\":true},{\"name\":\"system\",\"shares\":30},{\"name\":\"workload-low\",\"shares\":100}," \
	"{\"name\":\"catch-all\",\"shares\":5}]"

static int read_priorities(const char *levels, const char *schemas, struct priorities *out, struct error *err)
{
	CLEANUP_JSON json_t *levels_json = json_loads(levels, 0, NULL), *schemas_json = json_loads(schemas, 0, NULL);

	assert_non_null(levels_json);
	assert_non_null(schemas_json);
	return priorities_from_json(levels_json, schemas_json, out, err);
}

/* As in API Priority and Fairness: a part of the whole by the shares of all limited levels, rounded up. */
static void seats(void **state)
{
	struct priorities p = { 0 };

	(void)state;
	assert_int_equal(read_priorities(LEVELS, "[]", &p, NULL), 0);
	assert_int_equal(priority_seats(&p, priority_level(&p, "system"), 600), 134);	    /* 133.3 */
	assert_int_equal(priority_seats(&p, priority_level(&p, "workload-low"), 600), 445); /* 444.4 */
	assert_int_equal(priority_seats(&p, priority_level(&p, "catch-all"), 600), 23);	    /* 22.2 */
	assert_int_equal(priority_seats(&p, priority_level(&p, "catch-all"), 0), 0);
	assert_int_equal(priority_seats(&p, priority_level(&p, "workload-low"), 1000000000), 740740741);
	priorities_clear(&p);
}

static void order(void **state)
{
	struct priorities p = { 0 };

	(void)state;
	assert_int_equal(
		read_priorities(
			LEVELS,
			"[{\"name\":\"z\",\"level\":\"system\",\"precedence\":10000,\"rules\":[]},"
			"{\"name\":\"usual\",\"level\":\"system\",\"distinguisher\":\"ByUser\"},"
			"{\"name\":\"b\",\"level\":\"exempt\",\"precedence\":2,\"rules\":[{\"verbs\":[\"get\"]}]},"
			"{\"name\":\"a\",\"level\":\"system\",\"precedence\":2}]",
			&p, NULL),
		0);
	assert_string_equal(p.schemas[0].name, "a");
	assert_string_equal(p.schemas[1].name, "b");
	assert_int_equal(p.schemas[1].n_rules, 1);
	assert_string_equal(p.schemas[2].name, "usual");
	assert_int_equal(p.schemas[2].precedence, 1000);
	assert_int_equal(p.schemas[2].distinguisher, FLOW_BY_USER);
	assert_string_equal(p.schemas[3].name, "z");
	priorities_clear(&p);
}

/* Levels, schemas, and a word of the error that they must give. */
static void wrong(void **state)
{
	static const char *const cases[][3] = {
		{ "{}", "[]", "priority_levels" },
		{ "[{\"shares\":1}]", "[]", "name" },
		{ "[{\"name\":\"A\",\"shares\":1}]", "[]", "\"A\"" },
		{ "[{\"name\":\"a\"}]", "[]", "shares" },
		{ "[{\"name\":\"a\",\"exempt\":true,\"shares\":1}]", "[]", "shares" },
		{ "[{\"name\":\"a\",\"shares\":-1}]", "[]", "shares" },
		{ "[{\"name\":\"a\",\"shares\":1,\"queues\":1}]", "[]", "\"queues\"" },
		{ "[{\"name\":\"a\",\"shares\":1},{\"name\":\"a\",\"shares\":1}]", "[]", "twice" },
		{ LEVELS, "[{\"level\":\"system\"}]", "name" },
		{ LEVELS, "[{\"name\":\"s\"}]", "level" },
		{ LEVELS, "[{\"name\":\"s\",\"level\":\"none\"}]", "no priority level \"none\"" },
		{ LEVELS, "[{\"name\":\"s\",\"level\":\"system\",\"precedence\":0}]", "precedence" },
		{ LEVELS, "[{\"name\":\"s\",\"level\":\"system\",\"precedence\":10001}]", "precedence" },
		{ LEVELS, "[{\"name\":\"s\",\"level\":\"system\",\"distinguisher\":\"ByGroup\"}]", "distinguisher" },
		{ LEVELS, "[{\"name\":\"s\",\"level\":\"system\",\"rules\":[{\"verbs\":[\"steal\"]}]}]", "steal" },
		{ LEVELS,
		  "[{\"name\":\"s\",\"level\":\"system\"},{\"name\":\"s\",\"level\":\"exempt\",\"precedence\":3}]",
		  "twice" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct priorities p = { 0 };
		struct error err = { 0 };

		if (read_priorities(cases[i][0], cases[i][1], &p, &err) != -EINVAL)
			fail_msg("%s %s is taken", cases[i][0], cases[i][1]);
		priorities_clear(&p);
		if (!strstr(err.text, cases[i][2]))
			fail_msg("%s %s: %s", cases[i][0], cases[i][1], err.text);
	}
}

static void check_lists(const char *levels, __u32 concurrency, __u32 list_width, const char *expected)
{
	CLEANUP_JSON json_t *json = NULL, *wanted = json_loads(expected, 0, NULL);
	struct priorities p = { 0 };

	assert_int_equal(read_priorities(levels, "[]", &p, NULL), 0);
	json = priority_seats_to_json(&p, concurrency, list_width);
	assert_non_null(wanted);
	assert_true(json_equal(json, wanted));
	priorities_clear(&p);
}

#define LEVEL(name, shares) "{\"name\":\"" name "\",\"shares\":" shares "}"
#define SAID(name, seats, of, lists, wide) \
	"{\"level\":\"" name "\",\"seats\":" seats ",\"of\":" of ",\"lists\":" lists ",\"wide_lists\":" wide "}"

/* So many LISTs at once; one that is wider than its level takes all of it. */
static void lists(void **state)
{
	(void)state;
	check_lists(LEVELS, 600, 0,
		    "[" SAID("system", "134", "600", "134", "13") "," SAID("workload-low", "445", "600", "445",
									   "44") "," SAID("catch-all", "23", "600",
											  "23", "2") "]");
	check_lists("[" LEVEL("a", "5") "," LEVEL("b", "15") "," LEVEL("c", "0") "]", 20, 0,
		    "[" SAID("a", "5", "20", "5", "1") "," SAID("b", "15", "20", "15", "1") "," SAID("c", "0", "20",
												     "0", "0") "]");
	check_lists("[" LEVEL("a", "5") "," LEVEL("b", "15") "]", 20, 6,
		    "[" SAID("a", "5", "20", "1", "1") "," SAID("b", "15", "20", "2", "2") "]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seats),
		cmocka_unit_test(lists),
		cmocka_unit_test(order),
		cmocka_unit_test(wrong),
	};

	return cmocka_run_group_tests_name("priority", tests, NULL, NULL);
}
