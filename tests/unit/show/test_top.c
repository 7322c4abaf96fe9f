/* SPDX-License-Identifier: GPL-2.0 */
/* Rates of who makes the load, from one answer to the next. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "show/top.h"

static struct top top;
static struct error err;

static int setup(void **state)
{
	(void)state;
	memset(&top, 0, sizeof(top));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	top_clear(&top);
	return 0;
}

/* An answer at so many seconds: requests of all, and rows. */
static void answer(int seconds, int requests, const char *rows)
{
	CLEANUP_JSON json_t *list = json_loads(rows, 0, NULL), *json = NULL;

	assert_non_null(list);
	json = json_pack("{s:I, s:[{s:s, s:i, s:i, s:i, s:i}], s:O}", "now_ns",
			 (json_int_t)seconds * (json_int_t)WEIR_NS_PER_S, "servers", "server", "web", "requests",
			 requests, "refused", 0, "dry_run", 0, "held", 0, "rows", list);
	assert_int_equal(top_update(&top, json, &err), 0);
	top_sort(&top, TOP_REQUESTS);
}

static const struct top_subject *subject(const char *user)
{
	for (size_t i = 0; i < top.n; i++)
		if (!strcmp(json_string_value(json_object_get(top.subjects[i].row, "user")), user))
			return &top.subjects[i];
	fail_msg("no %s", user);
	return NULL;
}

#define ROW(user, first, requests, refused)                                                          \
	"{\"server\":\"web\",\"user\":\"" user "\",\"requests\":" #requests ",\"refused\":" #refused \
	",\"dry_run\":0,\"held\":0,\"first_ns\":" #first ",\"last_ns\":" #first "}"

#define LONG(id, first, requests)                                                                            \
	"{\"server\":\"web\",\"user\":\"nnn...\",\"id\":\"" id "\",\"requests\":" #requests ",\"refused\":0" \
	",\"dry_run\":0,\"held\":0,\"first_ns\":" #first ",\"last_ns\":" #first "}"

/* Two users whose names are cut to the same text; or both are gone. */
static void names_that_look_the_same(void **state)
{
	(void)state;
	answer(10, 100, "[" LONG("1", 5, 80) "," LONG("2", 6, 20) "]");
	answer(12, 140, "[" LONG("1", 5, 90) "," LONG("2", 6, 50) "]");
	assert_int_equal(top.n, 2);
	assert_true(top.subjects[0].rates.of[TOP_REQUESTS] == 15);
	assert_true(top.subjects[1].rates.of[TOP_REQUESTS] == 5);
	answer(14, 160, "[" LONG("2", 6, 70) "]");
	assert_int_equal(top.n, 1);
	assert_true(top.subjects[0].rates.of[TOP_REQUESTS] == 10);
}

static void rates(void **state)
{
	(void)state;
	answer(10, 100, "[" ROW("alice", 5, 80, 0) "," ROW("bob", 6, 20, 2) "]");
	assert_true(subject("alice")->rates.of[TOP_REQUESTS] == 0);
	assert_true(top.all.of[TOP_REQUESTS] == 0);
	answer(12, 140, "[" ROW("alice", 5, 90, 0) "," ROW("bob", 6, 50, 12) "]");
	assert_true(subject("alice")->rates.of[TOP_REQUESTS] == 5);
	assert_true(subject("bob")->rates.of[TOP_REQUESTS] == 15);
	assert_true(subject("bob")->rates.of[TOP_REFUSED] == 5);
	assert_true(top.all.of[TOP_REQUESTS] == 20);
	assert_true(subject("bob")->share == 0.75);
	assert_ptr_equal(&top.subjects[0], subject("bob"));
	assert_true(subject("bob")->trend[TOP_TREND - 1] == 15);
	assert_true(subject("bob")->trend[TOP_TREND - 2] == 0);
}

/* Who comes between two answers has a rate at once; who was only not shown before has none yet. */
static void newcomers(void **state)
{
	(void)state;
	answer(10, 0, "[]");
	answer(12, 30, "[" ROW("new", 11000000000, 20, 0) "," ROW("old", 5, 1000, 0) "]");
	assert_true(subject("new")->rates.of[TOP_REQUESTS] == 10);
	assert_true(subject("old")->rates.of[TOP_REQUESTS] == 0);
	answer(13, 40, "[" ROW("new", 11000000000, 20, 0) "," ROW("old", 5, 1010, 0) "]");
	assert_true(subject("old")->rates.of[TOP_REQUESTS] == 10);
}

/* Its row was taken over, and it has another one now. */
static void counts_that_begin_anew(void **state)
{
	(void)state;
	answer(10, 0, "[" ROW("alice", 5, 1000, 0) "]");
	answer(11, 7, "[" ROW("alice", 10500000000, 7, 0) "]");
	assert_true(subject("alice")->rates.of[TOP_REQUESTS] == 7);
	answer(12, 7, "[" ROW("alice", 10500000000, 7, 0) "]");
	assert_true(subject("alice")->rates.of[TOP_REQUESTS] == 0);
}

static void who_is_gone(void **state)
{
	(void)state;
	answer(10, 0, "[" ROW("alice", 5, 1, 0) "," ROW("bob", 5, 1, 0) "]");
	answer(11, 0, "[" ROW("bob", 5, 1, 0) "]");
	assert_int_equal(top.n, 1);
	subject("bob");
	answer(12, 0, "[]");
	assert_int_equal(top.n, 0);
}

/* A server of the same name was attached anew: its counters begin with 0. */
static void counters_that_go_back(void **state)
{
	(void)state;
	answer(10, 1000, "[]");
	answer(11, 3, "[" ROW("alice", 10500000000, 3, 0) "]");
	assert_true(top.all.of[TOP_REQUESTS] == 0);
	assert_true(subject("alice")->share == 0);
}

/* An answer at so many seconds, with these totals. */
static double all_at(int seconds, const char *total)
{
	CLEANUP_JSON json_t *json = json_pack("{s:I, s:[o], s:[]}", "now_ns",
					      (json_int_t)seconds * (json_int_t)WEIR_NS_PER_S, "servers",
					      json_loads(total, 0, NULL), "rows");

	assert_int_equal(top_update(&top, json, &err), 0);
	return top.all.of[TOP_REQUESTS];
}

#define TOTAL(requests, records, inside)                                                              \
	"{\"server\":\"web\",\"requests\":" #requests ",\"records\":" #records ",\"inside\":" #inside \
	",\"refused\":0,\"dry_run\":0,\"held\":0}"

/* Requests are with records, or without them where they are read inside. No total jumps when that changes. */
static void a_server_that_begins_to_be_looked_into(void **state)
{
	(void)state;
	all_at(10, TOTAL(1000, 900, false));
	assert_true(all_at(11, TOTAL(1010, 905, false)) == 10);
	assert_true(all_at(12, TOTAL(108, 915, true)) == 3);
	assert_true(all_at(13, TOTAL(110, 935, true)) == 2);
	assert_true(all_at(14, TOTAL(1051, 940, false)) == 6);
	assert_true(all_at(15, TOTAL(1053, 940, false)) == 2);
}

static void order(void **state)
{
	(void)state;
	answer(10, 0, "[" ROW("a", 5, 0, 0) "," ROW("b", 5, 0, 0) "," ROW("c", 5, 9, 0) "]");
	answer(11, 0, "[" ROW("a", 5, 8, 1) "," ROW("b", 5, 8, 2) "," ROW("c", 5, 18, 0) "]");
	assert_ptr_equal(&top.subjects[0], subject("c"));
	assert_ptr_equal(&top.subjects[1], subject("b"));
	top_sort(&top, TOP_REFUSED);
	assert_ptr_equal(&top.subjects[0], subject("b"));
	assert_ptr_equal(&top.subjects[2], subject("c"));
}

static void trend_text(void **state)
{
	const struct top_subject flat = { 0 };
	struct top_subject rising = { 0 };
	CLEANUP_FREE char *none = top_trend_text(&flat), *some = NULL;

	(void)state;
	assert_string_equal(none, "            ");
	rising.trend[TOP_TREND - 3] = 1;
	rising.trend[TOP_TREND - 2] = 50;
	rising.trend[TOP_TREND - 1] = 100;
	some = top_trend_text(&rising);
	assert_string_equal(some, "         \u2581\u2584\u2588");
}

static void matches(void **state)
{
	(void)state;
	answer(10, 0, "[" ROW("Alice", 5, 1, 0) "]");
	assert_true(top_matches(subject("Alice"), "lic"));
	assert_true(top_matches(subject("Alice"), "ALI"));
	assert_true(top_matches(subject("Alice"), ""));
	assert_false(top_matches(subject("Alice"), "web"));
}

static void words(void **state)
{
	enum top_number number = TOP_HELD;

	(void)state;
	assert_int_equal(top_number_parse("refused", &number, &err), 0);
	assert_int_equal(number, TOP_REFUSED);
	assert_true(top_number_parse("", &number, &err) < 0);
	assert_true(top_number_parse("most", &number, &err) < 0);
	assert_int_equal(number, TOP_REFUSED);
}

static void bad_answers(void **state)
{
	static const char *const answers[] = { "{}", "{\"rows\":[]}", "{\"rows\":{},\"servers\":[]}", "[]",
					       "{\"rows\":[],\"servers\":[],\"now_ns\":1}" };

	(void)state;
	answer(10, 0, "[]");
	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++) {
		CLEANUP_JSON json_t *json = json_loads(answers[i], 0, NULL);

		assert_true(top_update(&top, json, &err) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rates, setup, teardown),
		cmocka_unit_test_setup_teardown(names_that_look_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(newcomers, setup, teardown),
		cmocka_unit_test_setup_teardown(counts_that_begin_anew, setup, teardown),
		cmocka_unit_test_setup_teardown(who_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(counters_that_go_back, setup, teardown),
		cmocka_unit_test_setup_teardown(a_server_that_begins_to_be_looked_into, setup, teardown),
		cmocka_unit_test_setup_teardown(order, setup, teardown),
		cmocka_unit_test(trend_text),
		cmocka_unit_test_setup_teardown(matches, setup, teardown),
		cmocka_unit_test(words),
		cmocka_unit_test_setup_teardown(bad_answers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
