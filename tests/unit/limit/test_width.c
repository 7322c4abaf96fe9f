/* SPDX-License-Identifier: GPL-2.0 */
/* What LISTs take of a level's seats: what answers say, and which lists are told apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "weir/http/list.h"
#include "weir/http/request.h"
#include "weir/limit/width.h"

#define SECOND WEIR_NS_PER_S

static void seats_of_bytes(void **state)
{
	(void)state;
	assert_int_equal(weir_seats_of_bytes(0, 0), 1);
	assert_int_equal(weir_seats_of_bytes(100000, 0), 1);
	assert_int_equal(weir_seats_of_bytes(100001, 0), 2);
	assert_int_equal(weir_seats_of_bytes(900000, 0), 9);
	assert_int_equal(weir_seats_of_bytes(900001, 0), 10);
	assert_int_equal(weir_seats_of_bytes(1000001, 0), 10);
	assert_int_equal(weir_seats_of_bytes(~0ULL, 0), 10);
	assert_int_equal(weir_seats_of_bytes(~0ULL, ~0U), 10);
	assert_int_equal(weir_seats_of_bytes(100, 1), 1);
	assert_int_equal(weir_seats_of_bytes(101, 1), 2);
	assert_false(weir_width_is_news(100000, 0));
	assert_true(weir_width_is_news(100001, 0));
}

static void seats_of_pages(void **state)
{
	static const __u32 pages[][2] = { { 0, 10 },   { 1, 1 },     { 100, 1 },   { 101, 2 }, { 900, 9 },
					  { 901, 10 }, { 1000, 10 }, { 1001, 10 }, { ~0U, 10 } };

	(void)state;
	for (size_t i = 0; i < sizeof(pages) / sizeof(*pages); i++)
		assert_int_equal(weir_seats_of_page(pages[i][0]), pages[i][1]);
}

static void check_width(__u64 bytes, __u32 set, __u32 page, bool named, __u32 seats, enum weir_width_why why)
{
	struct weir_width_said said = weir_list_width(bytes, 0, set, page, named);

	assert_int_equal(said.seats, seats);
	assert_int_equal(said.why, why);
}

static void why(void **state)
{
	(void)state;
	check_width(0, 0, 0, false, 1, WEIR_WIDTH_UNKNOWN);
	check_width(0, 0, 5000, false, 1, WEIR_WIDTH_UNKNOWN);
	check_width(500000, 0, 0, false, 5, WEIR_WIDTH_LEARNED);
	check_width(500000, 0, 500, false, 5, WEIR_WIDTH_LEARNED);
	check_width(500000, 0, 400, false, 4, WEIR_WIDTH_PAGE);
	check_width(500000, 0, 0, true, 1, WEIR_WIDTH_NAME);
	check_width(500000, 7, 0, false, 7, WEIR_WIDTH_SET);
	check_width(0, 7, 601, false, 7, WEIR_WIDTH_SET);
	check_width(0, 7, 600, false, 6, WEIR_WIDTH_PAGE);
	check_width(0, 7, 0, true, 1, WEIR_WIDTH_NAME);
}

static void the_mean(void **state)
{
	struct weir_width width = {};

	(void)state;
	weir_width_learn(&width, 800000, true, SECOND);
	assert_int_equal(weir_width_bytes(&width, SECOND), 800000);
	weir_width_learn(&width, 0, true, SECOND);
	assert_int_equal(width.mean, 700000);
	weir_width_learn(&width, 1500000, true, SECOND);
	assert_int_equal(width.mean, 800000);
	/* It comes to what is said again and again, from above and from below. */
	for (int i = 0; i < 200; i++)
		weir_width_learn(&width, 80000, true, SECOND);
	assert_in_range(width.mean, 80000, 80008);
	for (int i = 0; i < 200; i++)
		weir_width_learn(&width, ~0U, true, SECOND);
	assert_in_range(width.mean, ~0U - 8, ~0U);
}

static void a_part_only_raises(void **state)
{
	struct weir_width width = {};

	(void)state;
	weir_width_learn(&width, 800000, true, SECOND);
	weir_width_learn(&width, 799999, false, 2 * SECOND);
	assert_int_equal(width.mean, 800000);
	assert_int_equal(width.said_ns, SECOND);
	weir_width_learn(&width, 800000, false, 3 * SECOND);
	assert_int_equal(width.said_ns, 3 * SECOND);
	weir_width_learn(&width, 1600000, false, 3 * SECOND);
	assert_int_equal(width.mean, 900000);
}

static void nobody_says_it_again(void **state)
{
	struct weir_width width = {};

	(void)state;
	weir_width_learn(&width, 800000, true, SECOND);
	assert_int_equal(weir_width_bytes(&width, SECOND + WEIR_WIDTH_NS), 800000);
	assert_int_equal(weir_width_bytes(&width, SECOND + WEIR_WIDTH_NS + 1), 0);
	/* A packet's time may be a little before that of another CPU's. */
	assert_int_equal(weir_width_bytes(&width, 0), 800000);
	weir_width_learn(&width, 200000, false, 2 * SECOND + WEIR_WIDTH_NS);
	assert_int_equal(width.mean, 200000);
}

/* --- which list */

static __u64 list_of(const char *line, bool *narrowed)
{
	struct weir_reading how = { .seed = { 1, 2 } };
	struct weir_attributes a;
	struct weir_request r;

	weir_reading_default(&how);
	weir_request_start(&r);
	while (weir_request_byte(&r, &how, *line++) != WEIR_FRAME_HEAD)
		assert_true(*line);
	weir_attributes_of(&r, &how, &a);
	*narrowed = a.flags & WEIR_ATTRIBUTE_NARROWED;
	return weir_list_of(&r.path, &a);
}

#define LIST(path) list_of("GET " path " HTTP/1.1\r\n\r\n ", &narrowed)
#define WHOLE(path) (LIST(path) && !narrowed)
#define PART(path) (LIST(path) && narrowed)

static void which_list(void **state)
{
	bool narrowed;
	__u64 pods = LIST("/api/v1/namespaces/a/pods");

	(void)state;
	assert_true(pods);
	assert_true(LIST("/api/v1/namespaces/a/pods/") == pods);
	assert_true(LIST("/api/v1/namespaces/%61/pods?limit=1") == pods);
	assert_false(LIST("/api/v1/namespaces/b/pods") == pods);
	assert_false(LIST("/api/v1/namespaces/a/secrets") == pods);
	assert_false(LIST("/api/v1/pods") == pods);
	assert_false(LIST("/apis/metrics.k8s.io/v1beta1/namespaces/a/pods") == pods);
	assert_true(LIST("/apis/apps/v1beta1/deployments") == LIST("/apis/apps/v1/deployments"));
	assert_true(LIST("/api/v1/namespaces"));
	assert_true(LIST("/api/v1/namespaces/a/pods/x") == 0);
	assert_true(LIST("/api/v1/namespaces/a/pods?watch=1") == 0);
	assert_true(LIST("/version") == 0);
	assert_true(list_of("POST /api/v1/namespaces/a/pods HTTP/1.1\r\n\r\n ", &narrowed) == 0);
}

static void which_part(void **state)
{
	bool narrowed;

	(void)state;
	assert_true(WHOLE("/api/v1/pods"));
	assert_true(WHOLE("/api/v1/pods?resourceVersion=0"));
	assert_true(WHOLE("/api/v1/pods?watch=false&resourceVersion=17"));
	assert_true(PART("/api/v1/pods?limit=500"));
	assert_true(PART("/api/v1/pods?limit=0"));
	assert_true(PART("/api/v1/pods?resourceVersion=0&limit=500"));
	assert_true(PART("/api/v1/pods?labelSelector=a%3Db"));
	assert_true(PART("/api/v1/pods?fieldSelector=spec.nodeName%3Dx"));
	assert_true(PART("/api/v1/pods?continue=abc"));
	assert_true(PART("/api/v1/pods?resourceVersion=0&resourceVersion=1"));
	assert_true(PART("/api/v1/pods?x"));
	assert_true(PART("/api/v1/pods?%zz=1"));
	assert_true(list_of("HEAD /api/v1/pods HTTP/1.1\r\n\r\n ", &narrowed) && narrowed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seats_of_bytes),
		cmocka_unit_test(seats_of_pages),
		cmocka_unit_test(why),
		cmocka_unit_test(the_mean),
		cmocka_unit_test(a_part_only_raises),
		cmocka_unit_test(nobody_says_it_again),
		cmocka_unit_test(which_list),
		cmocka_unit_test(which_part),
	};

	return cmocka_run_group_tests_name("width", tests, NULL, NULL);
}
