/* SPDX-License-Identifier: GPL-2.0 */
/* Heads as the programs read them, in place and by their machines (bpf/frame.h): it comes to the same, however long lines and heads are. */
#include "heads.h"
#include "limited.h"

#include <stdio.h>
#include <string.h>

#define LONGEST 700 /* bytes of filling: more than the windows have in which a head is read at once */
#define STEP 13

/* In one packet, and in two. */
static void assert_read(const char *head)
{
	const __u32 length = strlen(head);
	char first[2 * LONGEST];
	struct weir_conn c;

	for (__u32 cut = length / 2; cut <= length; cut += length - length / 2) {
		snprintf(first, sizeof(first), "%.*s", (int)cut, head);
		connect_ends(false);
		assert_int_equal(client_says(false, 0, first), PASS);
		if (cut < length)
			assert_int_equal(client_says(false, cut, head + cut), PASS);
		c = conn_look(false);
		assert_int_equal(c.requests, 1);
		assert_int_equal(c.request_next, CLIENT_NEXT + length);
		assert_int_equal(c.request_digest, head_digest(head));
	}
}

/* The filling is part of a line's value, and of a name that is longer than any that means something. */
static void each_filling(const char *const *formats, size_t n, void (*check)(const char *head))
{
	char filling[LONGEST + 1], head[2 * LONGEST];

	memset(filling, 'x', sizeof(filling));
	for (size_t i = 0; i < n; i++)
		for (int length = 1; length <= LONGEST; length += STEP) {
			snprintf(head, sizeof(head), formats[i], length, filling);
			check(head);
		}
}

static void test_requests(void **state)
{
	static const char *const formats[] = {
		"GET / HTTP/1.1\r\nHost: a\r\nX-Remote-User: alice\r\nAccept: %.*s\r\n\r\n",
		"GET /api/v1/pods?limit=500&watch=%.*s HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nX-Remote-User: bob\r\n\r\n",
		"POST /api/v1/namespaces/a/pods HTTP/1.1\r\nX-%.*s: b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"GET /%.*s/b?c=d HTTP/1.1\r\nHost: a\r\nX-Remote-User: system:serviceaccount:a:b\r\n\r\n",
	};

	(void)state;
	heads_look();
	each_filling(formats, sizeof(formats) / sizeof(*formats), assert_read);
}

/* It answers a request, and ends with its head. */
static void assert_answer_read(const char *head)
{
	struct weir_conn c;

	connect_ends(false);
	assert_int_equal(client_says(false, 0, get_a), PASS);
	assert_int_equal(server_says(false, 0, strlen(get_a), PSH_ACK, head), PASS);
	c = conn_look(false);
	assert_int_equal(c.phase, WEIR_PHASE_FOLLOWED);
	assert_int_equal(c.responses, 1);
	assert_int_equal(c.response_next, SERVER_NEXT + strlen(head));
	assert_int_equal(c.response_place, WEIR_PLACE_ENDED);
}

static void test_answers(void **state)
{
	static const char *const formats[] = {
		"HTTP/1.1 200 OK\r\nServer: %.*s\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX-%.*s: a\r\nDate: b\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\nA: %.*s\r\n\r\nHTTP/1.1 204 No Content\r\nA: b\r\n\r\n",
	};

	(void)state;
	each_filling(formats, sizeof(formats) / sizeof(*formats), assert_answer_read);
}

/* One behind the other in a packet: each is read at once, where it stands whole. */
static void test_pipelined(void **state)
{
	char text[2 * LONGEST] = "";
	struct weir_conn c;

	(void)state;
	for (int i = 1; strlen(text) + strlen(get_a) < LONGEST; i++) {
		strcat(text, get_a);
		connect_ends(false);
		assert_int_equal(client_says(false, 0, text), PASS);
		c = conn_look(false);
		assert_int_equal(c.requests, i);
		assert_int_equal(c.request_next, CLIENT_NEXT + strlen(text));
	}
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = { TEST(requests), TEST(answers), TEST(pipelined) };

	return cmocka_run_group_tests_name("head", tests, attached_open, attached_close);
}
