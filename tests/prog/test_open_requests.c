/* SPDX-License-Identifier: GPL-2.0 */
/* Requests in flight, and whose they are, without any limit. */
#include "limited.h"

#include <bpf/bpf.h>
#include <string.h>

#define IN_B "GET /api/v1/namespaces/b/pods HTTP/1.1\r\nHost: x\r\n\r\n"

static const char ok_head[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";

static size_t open_of(const char *namespace)
{
	struct weir_heavy_what what = { .by = WEIR_HEAVY_NAMESPACE };
	struct open_requests open;
	size_t n;

	done(datapath_open_requests(dp, WEIR_HEAVY_NAMESPACE, &open, &error));
	what.subjects[0] = datapath_subject(dp, WEIR_NAME_NAMESPACE, namespace, strlen(namespace));
	n = open_requests_of(&open, &what).n;
	open_requests_clear(&open);
	return n;
}

static size_t open_in_all(void)
{
	struct open_requests open;
	size_t n;

	done(datapath_open_requests(dp, WEIR_HEAVY_SOURCE, &open, &error));
	n = open_requests_of_server(&open, 0).n;
	assert_int_equal(n, open.n);
	assert_int_equal(open_requests_of_server(&open, 1).n, 0);
	open_requests_clear(&open);
	return n;
}

static void test_until_the_answer_is_sent(void **state)
{
	(void)state;
	assert_int_equal(open_in_all(), 0);
	assert_true(passes(false, get_pod));
	assert_int_equal(open_of("a"), 1);
	assert_int_equal(open_of("b"), 0);
	assert_int_equal(server_says(false, 0, strlen(get_pod), ACK, ok_head), PASS);
	assert_int_equal(open_of("a"), 1);
	assert_int_equal(server_says(false, strlen(ok_head), strlen(get_pod), ACK, "hi"), PASS);
	assert_int_equal(open_of("a"), 0);
	assert_int_equal(open_in_all(), 0);
}

static void test_the_next_may_be_another(void **state)
{
	(void)state;
	assert_true(passes(false, get_pod));
	server_says(false, 0, strlen(get_pod), ACK, ok_head);
	server_says(false, strlen(ok_head), strlen(get_pod), ACK, "hi");
	client_says(false, strlen(get_pod), IN_B);
	assert_int_equal(open_of("a"), 0);
	assert_int_equal(open_of("b"), 1);
}

static void test_each_connection_has_one(void **state)
{
	(void)state;
	assert_true(passes(false, get_pod));
	assert_true(passes(true, get_pod));
	assert_int_equal(open_of("a"), 2);
	client_says(false, strlen(get_pod), IN_B);
	assert_int_equal(open_of("a"), 1);
	assert_int_equal(open_of("b"), 1);
	assert_int_equal(open_in_all(), 2);
	server_says(true, 0, strlen(get_pod), WEIR_TCP_RST | ACK, NULL);
	assert_int_equal(open_in_all(), 1);
}

static void test_a_refused_one_is_none(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	assert_false(passes(false, get_pod));
	assert_int_equal(open_in_all(), 0);
}

static void test_in_pause_and_dry_run(void **state)
{
	static const __u32 flags[] = { WEIR_SERVER_PAUSED, WEIR_SERVER_DRY_RUN };

	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "0", 0);
	for (size_t i = 0; i < 2; i++) {
		done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | flags[i], &error));
		assert_true(passes(false, get_pod));
		assert_int_equal(open_of("a"), 1);
	}
}

/* Nobody reads on: it lasts as long as its connection. */
static void test_until_another_protocol_ends(void **state)
{
	static const char upgrade[] = "GET /x HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
	static const char switching[] = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";

	(void)state;
	assert_true(passes(false, upgrade));
	server_says(false, 0, strlen(upgrade), ACK, switching);
	server_says(false, strlen(switching), strlen(upgrade), ACK, "frames");
	assert_int_equal(open_in_all(), 1);
	server_says(false, strlen(switching) + 6, strlen(upgrade), WEIR_TCP_RST | ACK, NULL);
	assert_int_equal(open_in_all(), 0);
}

/* What was asked before weir came is nobody's. */
static void test_joined_midway(void **state)
{
	struct weir_conn conn;
	struct weir_flow flow;

	(void)state;
	assert_true(passes(false, get_pod));
	packet_flow(false, &flow);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &conn), 0);
	conn.user = 0;
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &conn, BPF_EXIST), 0);
	assert_int_equal(open_in_all(), 0);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(until_the_answer_is_sent),	   TEST(the_next_may_be_another), TEST(each_connection_has_one),
		TEST(a_refused_one_is_none),	   TEST(in_pause_and_dry_run),	  TEST(joined_midway),
		TEST(until_another_protocol_ends),
	};

	return cmocka_run_group_tests_name("open requests", tests, attached_open, attached_close);
}
