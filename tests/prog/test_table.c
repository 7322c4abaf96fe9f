/* SPDX-License-Identifier: GPL-2.0 */
/* Room in the table of connections, where some of those that have ended have gone. */
#include "attached.h"

#include <bpf/bpf.h>

#define TRIES 8 /* so many that have gone are looked past (GIVE_WAY_TRIES) */

static void finished_push(const struct weir_finished *f)
{
	assert_int_equal(bpf_map_update_elem(dp->maps.finished, NULL, f, 0), 0);
}

static void gone_push(__u32 n)
{
	for (__u32 i = 0; i < n; i++)
		finished_push(&(struct weir_finished){ .flow.client_port = 1 + i, .id = 1 });
}

static __u32 finished_count(void)
{
	struct weir_finished f;
	__u32 n = 0;

	while (!bpf_map_lookup_and_delete_elem(dp->maps.finished, NULL, &f))
		n++;
	return n;
}

/* The connection of the ends has ended. */
static void ended_push(void)
{
	struct weir_finished f = {};
	struct weir_conn c = conn_look(false);

	packet_flow(false, &f.flow);
	c.gives_way = 1;
	f.id = c.id = 77;
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &f.flow, &c, BPF_F_LOCK), 0);
	finished_push(&f);
}

/* There is room for no more. */
static void table_fill(void)
{
	const struct weir_table full = { .used = 100, .max = 100, .share = 25 };
	__u32 zero = 0;

	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_FULL_REFUSES | WEIR_SERVER_FULL_KNOWN,
				   &error));
	assert_int_equal(bpf_map_update_elem(dp->maps.table, &zero, &full, 0), 0);
}

static int handshake(bool ipv6)
{
	return run(ingress, &(struct spec){ .ipv6 = ipv6, .seq = CLIENT_NEXT - 1, .flags = WEIR_TCP_SYN });
}

static void test_full_behind_many_that_have_gone(void **state)
{
	(void)state;
	table_fill();
	gone_push(2 * TRIES);
	for (__u64 n = 1; n <= 3; n++) {
		assert_int_equal(handshake(false), DROP);
		assert_int_equal(counter(WEIR_HANDSHAKE_HELD), n);
	}
	assert_int_equal(finished_count(), 0);
}

/* One that ended stands behind some that have gone: there is room. */
static void test_room_behind_some_that_have_gone(void **state)
{
	(void)state;
	connect_ends(false);
	table_fill();
	gone_push(TRIES - 1);
	ended_push();
	assert_int_equal(handshake(true), PASS);
	assert_int_equal(counter(WEIR_HANDSHAKE_HELD), 0);
	assert_int_equal(finished_count(), 1);
}

/* Each that goes takes two away. */
static void test_what_goes_tidies(void **state)
{
	(void)state;
	connect_ends(false);
	gone_push(2);
	ended_push();
	gone_push(3);
	done(datapath_conns_clear(dp, 0, &error));
	assert_int_equal(finished_count(), 4);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(full_behind_many_that_have_gone),
		TEST(room_behind_some_that_have_gone),
		TEST(what_goes_tidies),
	};

	return cmocka_run_group_tests_name("table", tests, attached_open, attached_close);
}
