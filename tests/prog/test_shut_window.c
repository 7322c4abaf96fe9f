/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A server whose window is shut gets no byte of what comes, for nobody has read it. But it is asked for its window, so that
 * its client is told.
 */
#include "attached.h"
#include "ends.h"

#include <bpf/bpf.h>
#include <string.h>

static const char get[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
static __u32 next_seq, next_ack; /* of the client */

static int setup(void **state)
{
	attached_setup(state);
	assert_int_equal(call_inside(ends_make, NULL), 0);
	next_seq = ends_queue(TCP_RECV_QUEUE);
	next_ack = ends_queue(TCP_SEND_QUEUE);
	return 0;
}

static int teardown(void **state)
{
	ends_close();
	return attached_teardown(state);
}

/* As far as is known, too; shed: one request was answered before. */
static void shut(bool shed, enum weir_reason opaque_why)
{
	struct weir_flow flow;
	struct weir_conn c = {};

	packet_flow(false, &flow);
	weir_conn_open(&c, 0, WEIR_PHASE_FOLLOWED, next_seq, next_ack, 0);
	if (shed) {
		c.splice.cuts = 1;
		c.splice.in_off = c.splice.out_off = 100;
		c.splice.cut_end += 100;
		c.splice.answer_length = 100;
		c.splice.client_acked += 100;
		c.request_next += 100;
	}
	if (opaque_why != WEIR_REASON_NONE)
		weir_conn_opaque(&c, next_seq, opaque_why);
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_ANY), 0);
	ends_room(0);
}

static struct spec spec_of(const char *text, __u32 translated)
{
	return (struct spec){
		.seq = next_seq + translated,
		.ack = next_ack + translated,
		.flags = PSH_ACK,
		.text = text,
	};
}

static void probes(const char *text, bool shed, enum weir_reason opaque_why)
{
	struct spec spec = spec_of(text, shed ? 100 : 0);
	__u64 before = counter(WEIR_OUT_OF_WINDOW);
	struct seen seen;

	shut(shed, opaque_why);
	assert_int_equal(run(ingress, &spec), PASS);
	packet_see(&packet, &seen);
	assert_int_equal(seen.n_text, 0);
	assert_true(seen.seq == next_seq - 1);
	assert_true(seen.ack == next_ack);
	assert_true(seen.flags & ACK);
	assert_int_equal(counter(WEIR_OUT_OF_WINDOW), before + 1);
}

static void test_no_byte_comes_to_it(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	for (int shed = 0; shed < 2; shed++) {
		probes("G", shed, WEIR_REASON_NONE);
		probes(get, shed, WEIR_REASON_NONE);
		probes("G", shed, WEIR_UNSEEN);
		probes(get, shed, WEIR_TLS);
	}
	assert_int_equal(counter(WEIR_SHED), 0);
}

static void test_a_signed_segment_is_not_changed(void **state)
{
	struct spec spec = spec_of("G", 0);

	(void)state;
	shut(false, WEIR_SIGNED);
	assert_int_equal(run(ingress, &spec), DROP);
}

/* It is read when there is room for it, which the server may not have said yet. */
static void test_room_for_it(void **state)
{
	struct spec spec = spec_of(get, 0);

	(void)state;
	shut(false, WEIR_REASON_NONE);
	ends_room(strlen(get) - 1);
	assert_int_equal(run(ingress, &spec), DROP);
	ends_room(strlen(get));
	assert_untouched(ingress, &spec);
	assert_int_equal(counter(WEIR_PASSED), 1);
}

#define TEST_SHUT(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST_SHUT(no_byte_comes_to_it),
		TEST_SHUT(a_signed_segment_is_not_changed),
		TEST_SHUT(room_for_it),
	};

	return cmocka_run_group_tests_name("shut_window", tests, attached_open, attached_close);
}
