/* SPDX-License-Identifier: GPL-2.0 */
/* What passes at a glance, against what decides on all segments, on connections and segments of any kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../passing_check.h"
#include "any_conn.h"
#include "weir/conn/hold.h"

#define ROUNDS 200000
struct counts {
	unsigned int bare, body, opaque, asked, bare_by, bytes_by;
};

static void count_passed(struct counts *n, const struct weir_conn *c, const struct weir_segment *g, bool passed,
			 bool by)
{
	n->bare += passed && !g->len;
	n->bare_by += by && !g->len;
	n->bytes_by += by && g->len;
	n->body += passed && g->len && c->phase == WEIR_PHASE_FOLLOWED;
	n->opaque += passed && g->len && c->phase == WEIR_PHASE_OPAQUE;
	n->asked += !passed;
}

static void check_counts(const struct counts *n)
{
	assert_true(n->bare > ROUNDS / 100);
	assert_in_range(n->bare_by, ROUNDS / 100, n->bare);
	assert_in_range(n->bytes_by, ROUNDS / 1000, n->body + n->opaque);
	assert_true(n->body > ROUNDS / 1000);
	assert_true(n->opaque > ROUNDS / 1000);
	assert_true(n->asked > ROUNDS / 10);
}

static void test_client(void **state)
{
	struct random random = { 18 };
	struct weir_busy under_way = { 0 };
	struct counts n = { 0 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		enum weir_reason why = WEIR_REASON_NONE;
		const struct weir_socket nobody = { 0 };
		struct weir_request_reader r;
		struct weir_segment g = any_segment(&random, CLIENT, SERVER);
		struct weir_conn c, bare;
		bool passed, by;

		any_conn(&random, &c);
		memcpy(&bare, &c, sizeof(c));
		by = weir_conn_client_goes_by(&bare, bare.id, &g);
		checked_begin_client(&c, &under_way, &nobody, &g, &r, &why, &passed);
		count_passed(&n, &c, &g, passed, by);
	}
	check_counts(&n);
}

static void test_server(void **state)
{
	struct random random = { 81 };
	struct weir_busy under_way = { 0 };
	struct counts n = { 0 };

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		enum weir_reason why = WEIR_REASON_NONE;
		struct weir_response_reader r;
		struct weir_segment g = any_segment(&random, SERVER, CLIENT);
		struct weir_conn c, bare;
		bool passed, by;

		any_conn(&random, &c);
		memcpy(&bare, &c, sizeof(c));
		by = weir_conn_server_goes_by(&bare, bare.id, &g);
		checked_begin_server(&c, &under_way, &g, &r, &why, &passed);
		count_passed(&n, &c, &g, passed, by);
	}
	check_counts(&n);
}

/* The entry's memory is another connection's by now: that one is left as it is. */
static void test_of_another(void **state)
{
	struct random random = { 1881 };
	unsigned int passed = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct weir_segment g = any_segment(&random, CLIENT, SERVER), h = any_segment(&random, SERVER, CLIENT);
		struct weir_conn c, before;

		any_conn(&random, &c);
		memcpy(&before, &c, sizeof(c));
		assert_false(weir_conn_client_goes_by(&c, c.id + 1, &g));
		assert_false(weir_conn_server_goes_by(&c, c.id + 1, &h));
		assert_memory_equal(&before, &c, sizeof(c));
		passed += weir_conn_client_goes_by(&c, c.id, &g) && weir_conn_server_goes_by(&c, c.id, &h);
	}
	assert_in_range(passed, ROUNDS / 1000, ROUNDS);
}

/* It has become so just before the marks are moved: they are not those that were looked at. */
static void test_marks_of_another(void **state)
{
	struct weir_conn c;
	weir_marks *marks = (weir_marks *)&c.splice.server_end;
	__u64 seen;

	(void)state;
	memset(&c, 0, sizeof(c));
	c.splice.server_end = 0xfffffff0;
	c.splice.server_acked = 7;
	seen = *marks;
	assert_true(weir_marks_move(marks, seen, 0xffffff00, 7));
	assert_true(*marks == seen);
	assert_true(weir_marks_move(marks, seen, 5, 6));
	assert_int_equal(c.splice.server_end, 5);
	assert_int_equal(c.splice.server_acked, 7);
	assert_false(weir_marks_move(marks, seen, 8, 9));
	assert_int_equal(c.splice.server_end, 5);
	assert_int_equal(c.splice.server_acked, 7);
}

/* What bears the badge and was read: the hold has nothing to say, and changes nothing. */
static void test_hold(void **state)
{
	struct random random = { 188 };
	unsigned int passed = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		const struct weir_socket k = { .next = near(&random, CLIENT), .edge = near(&random, CLIENT) };
		struct weir_segment g = any_segment(&random, CLIENT, SERVER);
		enum weir_reason why = WEIR_REASON_NONE;
		struct weir_hold_reader r;
		struct weir_conn c, before;

		any_conn(&random, &c);
		if (!weir_hold_passes(&c, &g))
			continue;
		passed++;
		memcpy(&before, &c, sizeof(c));
		assert_int_equal(weir_hold_meet(&c, &k, &g, true, true), WEIR_REASON_NONE);
		assert_int_equal(weir_hold_begin(&c, &k, &g, true, &r, &why), WEIR_PASS);
		assert_memory_equal(&before, &c, sizeof(c));
	}
	assert_in_range(passed, ROUNDS / 100, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_client),	   cmocka_unit_test(test_server),
		cmocka_unit_test(test_of_another), cmocka_unit_test(test_marks_of_another),
		cmocka_unit_test(test_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
