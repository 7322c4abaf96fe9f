/* SPDX-License-Identifier: GPL-2.0 */
/* How many seats of a level a list takes: by the length of the answers that it got. */
#include "seats.h"

#include <stdio.h>
#include <string.h>

#define PODS "GET /api/v1/namespaces/a/pods HTTP/1.1\r\n\r\n"

/* A level of 30 seats. */
static void level_set(void)
{
	struct datapath_limit limit = limit_on_seats(0, 30);

	limit.flags = WEIR_LIMIT_WIDE_LISTS;
	limit.reason = WEIR_SHED_LEVEL;
	slot_set(&limit);
}

/* The server says, from byte `at` on, the head of an answer with so many bytes, or in chunks, and none of the body. */
static void answer_begins(const char *request, __u32 at, const char *status, __u32 bytes)
{
	char head[128];

	snprintf(head, sizeof(head), "HTTP/1.1 %s\r\nContent-Length: %u\r\n\r\n", status, bytes);
	server_says(false, at, strlen(request), ACK, head);
}

/* On a connection of its own: what the request takes, and gives back at once. */
static __u64 seats_of(const char *request)
{
	__u64 before = taken(), seats;

	assert_true(passes(true, request));
	seats = taken() - before;
	server_says(true, 0, strlen(request), FIN_ACK, "HTTP/1.1 503 Service Unavailable\r\n\r\n");
	assert_int_equal(taken(), before);
	return seats;
}

/* The request is answered, and its seats are free. */
static void answered(const char *request, const char *status, __u32 bytes)
{
	assert_true(passes(false, request));
	answer_begins(request, 0, status, bytes);
	server_says(false, 128 + bytes, strlen(request), WEIR_TCP_RST | ACK, NULL);
	assert_int_equal(taken(), 0);
}

static void test_lists_take_one_seat_until_they_are_wide(void **state)
{
	(void)state;
	level_set();
	assert_int_equal(seats_of(PODS), 1);
	answered(PODS, "200 OK", 90000);
	assert_int_equal(seats_of(PODS), 1);
	answered(PODS, "200 OK", 450000);
	assert_int_equal(seats_of(PODS), 5);
	/* Of this namespace's pods alone. */
	assert_int_equal(seats_of("GET /api/v1/namespaces/b/pods HTTP/1.1\r\n\r\n"), 1);
	assert_int_equal(seats_of("GET /api/v1/pods HTTP/1.1\r\n\r\n"), 1);
	assert_int_equal(seats_of("GET /apis/x/v1/namespaces/a/pods HTTP/1.1\r\n\r\n"), 1);
	assert_int_equal(seats_of(list_secrets), 1);
	assert_int_equal(seats_of("GET /api/v1/namespaces/a/pods?resourceVersion=0&limit=1 HTTP/1.1\r\n\r\n"), 5);
	/* Who asks for fewer objects takes fewer seats. */
	assert_int_equal(seats_of("GET /api/v1/namespaces/a/pods?limit=250 HTTP/1.1\r\n\r\n"), 3);
	assert_int_equal(seats_of("GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name=x HTTP/1.1\r\n\r\n"), 1);
	assert_int_equal(seats_of(get_pod), 1);
}

static void test_the_latest_answers_say_how_wide(void **state)
{
	(void)state;
	level_set();
	answered(PODS, "200 OK", 5000000);
	assert_int_equal(seats_of(PODS), 10);
	for (int i = 0; i < 40; i++)
		answered(PODS, "200 OK", 20000);
	assert_int_equal(seats_of(PODS), 1);
}

/* Whatever is asked for, a list does not look narrower than it is. */
static void test_parts_do_not_make_a_list_narrow(void **state)
{
	static const char *const parts[] = {
		"GET /api/v1/namespaces/a/pods?limit=1 HTTP/1.1\r\n\r\n",
		"GET /api/v1/namespaces/a/pods?limit=1&resourceVersion=0 HTTP/1.1\r\n\r\n",
		"GET /api/v1/namespaces/a/pods?labelSelector=x%3Dy HTTP/1.1\r\n\r\n",
		"GET /api/v1/namespaces/a/pods?fieldSelector=spec.nodeName=x HTTP/1.1\r\n\r\n",
		"GET /api/v1/namespaces/a/pods?fieldSelector=metadata.name=x HTTP/1.1\r\n\r\n",
		"HEAD /api/v1/namespaces/a/pods HTTP/1.1\r\n\r\n",
	};

	(void)state;
	level_set();
	answered(PODS, "200 OK", 450000);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		for (int n = 0; n < 10; n++)
			answered(parts[i], "200 OK", 2000);
	for (int n = 0; n < 10; n++) {
		answered(PODS, "304 Not Modified", 0);
		answered(PODS, "403 Forbidden", 200);
		answered(get_pod, "200 OK", 200);
	}
	assert_int_equal(seats_of(PODS), 5);
	/* But wider they may. */
	answered(parts[2], "200 OK", 1250000);
	assert_int_equal(seats_of(PODS), 6);
}

static void test_what_is_not_served_makes_no_list_wide(void **state)
{
	(void)state;
	level_set();
	answered(PODS, "403 Forbidden", 5000000);
	answered(get_pod, "200 OK", 5000000);
	answered("GET /api/v1/namespaces/a/pods?watch=1 HTTP/1.1\r\n\r\n", "200 OK", 5000000);
	answered("POST /api/v1/namespaces/a/pods HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "200 OK", 5000000);
	assert_int_equal(seats_of(PODS), 1);
}

/* Each of several answers is that of its own request, in whatever packets they come; one list at a time is learned. */
static void test_answers_to_pipelined_lists(void **state)
{
	char both[512], text[4096];
	__u32 length;

	(void)state;
	level_set();
	connect_ends(false);
	snprintf(both, sizeof(both), "%s%s%s", get_pod, list_secrets, PODS);
	assert_int_equal(client_says(false, 0, both), PASS);
	length = snprintf(text, sizeof(text),
			  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
			  "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n");
	server_says(false, 0, strlen(both), ACK, text);
	server_says(false, length + 300000, strlen(both), ACK, "HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n");
	assert_int_equal(seats_of(PODS), 1);
	assert_int_equal(seats_of(list_secrets), 4); /* the head is counted, too */
}

/* A body in chunks, or one that the end of the connection ends: what has been sent of it is known. */
static void test_a_body_that_does_not_say_its_length(void **state)
{
	static const char *const heads[] = { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186a0\r\n",
					     "HTTP/1.0 200 OK\r\n\r\n" };

	(void)state;
	level_set();
	for (int i = 0; i < 2; i++) {
		const char *request = i ? list_secrets : PODS;
		__u32 at = strlen(heads[i]);

		assert_true(passes(false, request));
		server_says(false, 0, strlen(request), ACK, heads[i]);
		/* 0x186a0, a chunk's, are 100,000; then it goes on with another one. */
		for (__u32 sent = 0; i && sent < 100000; sent += 1000) {
			char body[1001];

			memset(body, 'x', 1000);
			body[1000] = 0;
			server_says(false, at + sent, strlen(request), ACK, body);
		}
		at += 100000;
		server_says(false, at, strlen(request), ACK, i ? "x" : "\r\n186a0\r\n");
		server_says(false, at + (i ? 1 : 9), strlen(request), FIN_ACK, "more of it");
		assert_int_equal(seats_of(request), 2);
	}
}

static void test_what_the_server_is_said_to_be(void **state)
{
	(void)state;
	level_set();
	answered(PODS, "200 OK", 450000);
	lists_set(0, 2000);
	assert_int_equal(seats_of(PODS), 3);
	lists_set(4, 0);
	assert_int_equal(seats_of(PODS), 4);
	assert_int_equal(seats_of(list_secrets), 4);
	assert_int_equal(seats_of("GET /api/v1/namespaces/a/pods?limit=100 HTTP/1.1\r\n\r\n"), 1);
	lists_set(10, 0);
	assert_int_equal(seats_of(list_secrets), 10);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		SEATS(lists_take_one_seat_until_they_are_wide),
		SEATS(the_latest_answers_say_how_wide),
		SEATS(parts_do_not_make_a_list_narrow),
		SEATS(what_is_not_served_makes_no_list_wide),
		SEATS(answers_to_pipelined_lists),
		SEATS(a_body_that_does_not_say_its_length),
		SEATS(what_the_server_is_said_to_be),
	};

	return cmocka_run_group_tests_name("width", tests, attached_open, attached_close);
}
