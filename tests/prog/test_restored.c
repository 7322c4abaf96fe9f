/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server's socket that was restored from a checkpoint counts no bytes, and may be in the middle of a request all the same: its
 * connection is one that was open before.
 */
#include "attached.h"
#include "ends.h"

static const char get[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

static int setup(void **state)
{
	attached_setup(state);
	return call_inside(ends_make, NULL);
}

static int teardown(void **state)
{
	ends_close();
	return attached_teardown(state);
}

/* opened_before: it may be in the middle of anything, and an answer may be due. */
static void check(bool opened_before)
{
	struct spec spec = {
		.seq = ends_queue(TCP_RECV_QUEUE), .ack = ends_queue(TCP_SEND_QUEUE), .flags = PSH_ACK, .text = get
	};

	assert_int_equal(run(ingress, &spec), PASS);
	assert_int_equal(conn_look(false).phase != WEIR_PHASE_FOLLOWED, opened_before);
	assert_int_equal(counter(WEIR_MID_STREAM), opened_before);
}

static void test_fresh(void **state)
{
	(void)state;
	check(false);
}

static void test_restored(void **state)
{
	(void)state;
	assert_int_equal(call_inside(ends_restore, NULL), 0);
	check(true);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fresh, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restored, setup, teardown),
	};

	return cmocka_run_group_tests_name("restored", tests, attached_open, attached_close);
}
