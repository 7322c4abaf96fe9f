/* SPDX-License-Identifier: GPL-2.0 */
/* When a SYN may be answered by a cookie in the kernel's place, and by what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "weir/admission/cookie.h"

#define HZ 250

/* Its queue is full, and it has just sent a cookie. */
static const struct weir_listen_queue full = {
	.setting = WEIR_COOKIES_IN_FLOODS, .waiting = 9, .ready = 0, .backlog = 8, .marked = 1000, .room = 131072
};

static bool lends(const struct weir_listen_queue *q)
{
	return weir_queue_lends_cookies(q, q->marked, HZ);
}

static void full_queues(void **state)
{
	struct weir_listen_queue q = full;

	(void)state;
	assert_true(weir_queue_sends_cookies(&q) && lends(&q));
	q.waiting = 8;
	assert_false(weir_queue_sends_cookies(&q) || lends(&q));
	q.waiting = 0;
	assert_false(weir_queue_sends_cookies(&q) || lends(&q));
	q.waiting = UINT32_MAX;
	assert_true(weir_queue_sends_cookies(&q) && lends(&q));
	q.backlog = UINT32_MAX;
	assert_false(weir_queue_sends_cookies(&q) || lends(&q));
	q = full;
	q.backlog = q.waiting = 0;
	assert_false(weir_queue_sends_cookies(&q));
	q.waiting = 1;
	assert_true(weir_queue_sends_cookies(&q));
}

static void settings(void **state)
{
	struct weir_listen_queue q = full;

	(void)state;
	q.setting = WEIR_COOKIES_NEVER;
	assert_false(weir_queue_sends_cookies(&q) || lends(&q));
	q.setting = WEIR_COOKIES_ALWAYS;
	q.waiting = 0;
	assert_true(weir_queue_sends_cookies(&q) && lends(&q));
}

/* The kernel would drop what comes back; or it sends cookies, but takes none from elsewhere. */
static void kernel_alone(void **state)
{
	struct weir_listen_queue q = full;

	(void)state;
	q.ready = 8;
	assert_true(lends(&q));
	q.ready = 9;
	assert_true(weir_queue_sends_cookies(&q));
	assert_false(lends(&q));
	q = full;
	q.signs = 1;
	assert_false(lends(&q));
}

static void marks(void **state)
{
	static const uint32_t times[] = { 0, 1000, UINT32_MAX - 10 * HZ, UINT32_MAX };
	struct weir_listen_queue q = full;

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		q.marked = times[i];
		assert_true(weir_queue_lends_cookies(&q, q.marked, HZ));
		assert_true(weir_queue_lends_cookies(&q, q.marked + 60 * HZ - 1, HZ));
		assert_false(weir_queue_lends_cookies(&q, q.marked + 60 * HZ, HZ));
		assert_false(weir_queue_lends_cookies(&q, q.marked + 3600 * HZ, HZ));
		assert_false(weir_queue_lends_cookies(&q, q.marked + (1U << 31), HZ));
		/* Another CPU's clock may be a little ahead. */
		assert_true(weir_queue_lends_cookies(&q, q.marked - 1, HZ));
		assert_true(weir_queue_lends_cookies(&q, q.marked - HZ, HZ));
		assert_false(weir_queue_lends_cookies(&q, q.marked - HZ - 1, HZ));
	}
}

static void answers(void **state)
{
	struct weir_segment syn = { .seq = UINT32_MAX, .len = 700, .window = 5, .flags = WEIR_TCP_SYN, .has_ts = 1 };
	struct weir_listen_queue q = full;
	struct weir_segment reply;

	(void)state;
	weir_cookie_answer(&syn, 77, &q, &reply);
	assert_int_equal(reply.seq, 77);
	assert_int_equal(reply.ack, 0); /* its data counts for nothing */
	assert_int_equal(reply.flags, WEIR_TCP_SYN | WEIR_TCP_ACK);
	assert_int_equal(reply.window, 65535);
	assert_false(reply.has_ts || reply.len || reply.sacks);
	q.room = 131069;
	assert_int_equal(weir_queue_window(&q), 65534);
	q.room = 4600;
	assert_int_equal(weir_queue_window(&q), 2300);
	q.room = UINT32_MAX;
	assert_int_equal(weir_queue_window(&q), 65535);
}

static void sources(void **state)
{
	static const struct {
		__u8 address[16];
		bool reaches;
	} cases[] = {
		{ { [10] = 255, 255, 192, 0, 2, 1 }, true },
		{ { [10] = 255, 255, 1, 0, 0, 0 }, true },
		{ { [10] = 255, 255, 223, 255, 255, 255 }, true },
		{ { [10] = 255, 255, 0, 0, 0, 1 }, false },
		{ { [10] = 255, 255, 224, 0, 0, 1 }, false },
		{ { [10] = 255, 255, 255, 255, 255, 255 }, false },
		{ { 0xfd, [15] = 1 }, true },
		{ { 0xfe, 0x80, [15] = 1 }, true },
		{ { [15] = 1 }, true },
		{ { 0 }, false },
		{ { 0xff, 2, [15] = 1 }, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(weir_cookie_reaches(cases[i].address), cases[i].reaches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(full_queues), cmocka_unit_test(settings), cmocka_unit_test(kernel_alone),
		cmocka_unit_test(marks),       cmocka_unit_test(answers),  cmocka_unit_test(sources),
	};

	return cmocka_run_group_tests_name("cookie", tests, NULL, NULL);
}
