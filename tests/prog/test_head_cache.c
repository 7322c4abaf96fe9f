/* SPDX-License-Identifier: GPL-2.0 */
/* Heads that come again (bpf/head_cache.h): what is kept of them is used, and comes to what reading them does. */
#include "heads.h"
#include "limited.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "../array_size.h"
#include "weir.skel.h"
#include "weir/http/head_cache.h"

static cpu_set_t cpus; /* before the test */

/* The cache is each CPU's own: the test stays on one. */
static int setup(void **state)
{
	cpu_set_t one;
	int ret = attached_setup(state);

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	heads_look();
	return ret;
}

static int teardown(void **state)
{
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	return attached_teardown(state);
}

static struct weir_conn ask_once(const char *head)
{
	connect_ends(false);
	assert_int_equal(client_says(false, 0, head), PASS);
	return conn_look(false);
}

/* Is what was kept of the head what it is said to be, when it comes again? It is put right again. */
static bool is_kept(const char *head)
{
	__u64 digest;

	for (int i = 0; i < SAYINGS; i++)
		assert_int_equal(ask_once(head).request_digest, head_digest(head));
	requests_poison();
	digest = ask_once(head).request_digest;
	requests_poison();
	assert_int_equal(ask_once(head).request_digest, head_digest(head));
	return digest != head_digest(head);
}

static void test_request_is_kept(void **state)
{
	(void)state;
	assert_true(is_kept("GET /a HTTP/1.1\r\nHost: x\r\nX-Remote-User: alice\r\n\r\n"));
	assert_true(is_kept("POST /api/v1/pods?limit=5 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"));
	/* Groups are looked up each time. */
	assert_false(is_kept("GET /a HTTP/1.1\r\nX-Remote-User: alice\r\nX-Remote-Group: b\r\n\r\n"));
	assert_false(is_kept("GET /a HTTP/1.1\r\nX-Remote-User: system:serviceaccount:a:b\r\n\r\n"));
	/* Too short. */
	assert_false(is_kept("GET /a HTTP/1.1\r\nHost: abc\r\n\r\n"));
}

/* One below, at, and above what is kept; heads of one window, and of two. */
static void test_longest_that_is_kept(void **state)
{
	static const int lengths[] = {
		200, 256, 257, 300, WEIR_CACHE_MAX - 1, WEIR_CACHE_MAX, WEIR_CACHE_MAX + 1, 600
	};
	char head[2 * WEIR_CACHE_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		head_fill(head, lengths[i], "GET /a HTTP/1.1\r\nX-Remote-User: bob\r\n");
		assert_int_equal(is_kept(head), lengths[i] <= WEIR_CACHE_MAX);
	}
}

/* Heads of which each differs in a byte from the one before, among them one that is kept. */
static void test_heads_that_differ(void **state)
{
	char head[] = "GET /a HTTP/1.1\r\nHost: x\r\nX-Remote-User: alice\r\nAccept: */*\r\n\r\n";
	char *name = strstr(head, "alice");

	(void)state;
	assert_true(is_kept(head));
	for (int i = 0; i < 5; i++)
		for (int c = 'a'; c <= 'z'; c++) {
			name[i] = c;
			assert_int_equal(ask_once(head).request_digest, head_digest(head));
		}
}

/* A head is read anew where the server's settings say to read it in another way, and as before when they say so again. */
static void test_another_reading(void **state)
{
	static const char head[] = "GET /a HTTP/1.1\r\nX-Remote-User: alice\r\nX-Other-User: bob\r\n\r\n";
	struct weir_server server, other;
	__u32 zero = 0;

	(void)state;
	assert_int_equal(bpf_map_lookup_elem(dp->maps.servers, &zero, &server), 0);
	other = server;
	assert_int_equal(weir_reading_name(&other.reading, WEIR_HEADER_USER, "x-other-user", 12), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(is_kept(head));
		done(datapath_server_write(dp, 0, i % 2 ? &server : &other, &error));
		heads_look();
	}
}

/* Other requests behind the one that is kept, whole and cut, and a body of which a part is there: each comes to the same each time. */
static void test_what_follows(void **state)
{
	static const char *const texts[] = {
		"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n",
		"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost",
		"POST /a HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
		"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
	};
	struct weir_conn first, c;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		first = ask_once(texts[i]);
		for (int k = 0; k < SAYINGS; k++) {
			c = ask_once(texts[i]);
			assert_int_equal(c.request_digest, first.request_digest);
			assert_int_equal(c.requests, first.requests);
			assert_int_equal(c.request_next, first.request_next);
			assert_int_equal(c.request_place, first.request_place);
		}
	}
}

/* A body that ends with its chunks' trailers, which end as a head does: what is kept is the head. */
static void test_trailers(void **state)
{
	static const char text[] = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n";
	struct weir_conn c;

	(void)state;
	for (int i = 0; i < SAYINGS; i++) {
		c = ask_once(text);
		assert_int_equal(c.requests, 1);
		assert_int_equal(c.request_next, CLIENT_NEXT + strlen(text));
	}
	assert_int_equal(counter(WEIR_PASSED), SAYINGS);
}

/* In each that is kept, has the answer have a body of n bytes more. */
static void answers_poison(int n)
{
	const int fd = bpf_map__fd(dp->skeleton->maps.response_cache), cpus = libbpf_num_possible_cpus();
	struct weir_cached_response *cached = calloc(cpus, sizeof(*cached));

	assert_non_null(cached);
	for (__u32 place = 0; !bpf_map_lookup_elem(fd, &place, cached); place++) {
		for (int cpu = 0; cpu < cpus; cpu++)
			cached[cpu].response.framing.left += n;
		assert_int_equal(bpf_map_update_elem(fd, &place, cached, BPF_ANY), 0);
	}
	free(cached);
}

/* Bytes of the answer, what is to come of its body included. */
static __u32 answer_length(const char *ask, const char *head)
{
	connect_ends(false);
	assert_int_equal(client_says(false, 0, ask), PASS);
	assert_int_equal(server_says(false, 0, strlen(ask), PSH_ACK, head), PASS);
	return conn_look(false).response_next - SERVER_NEXT;
}

static void test_answer_is_kept(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 0\r\n\r\n";
	/* An interim one and the one that it announces: only the first is at the begin. */
	static const char both[] = "HTTP/1.1 100 Continue\r\nA: b\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

	(void)state;
	for (int i = 0; i < SAYINGS; i++)
		assert_int_equal(answer_length(get_a, head), strlen(head));
	answers_poison(5);
	assert_int_equal(answer_length(get_a, head), strlen(head) + 5);
	answers_poison(-5);
	for (int i = 0; i < SAYINGS; i++) {
		assert_int_equal(answer_length(get_a, both), strlen(both));
		assert_int_equal(answer_length(get_a, head), strlen(head));
	}
}

/* The same answer to a GET and to a HEAD: what ends it is not kept. */
static void test_answer_to_head(void **state)
{
	static const char ask[] = "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n";
	static const char head[] = "HTTP/1.1 200 OK\r\nServer: a\r\nContent-Length: 7\r\n\r\n";

	(void)state;
	for (int i = 0; i < SAYINGS; i++) {
		assert_int_equal(answer_length(get_a, head), strlen(head) + 7);
		assert_int_equal(answer_length(ask, head), strlen(head));
	}
}

#define ON_ONE_CPU(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = { ON_ONE_CPU(request_is_kept),   ON_ONE_CPU(longest_that_is_kept),
					    ON_ONE_CPU(heads_that_differ), ON_ONE_CPU(another_reading),
					    ON_ONE_CPU(what_follows),	   ON_ONE_CPU(trailers),
					    ON_ONE_CPU(answer_is_kept),	   ON_ONE_CPU(answer_to_head) };

	return cmocka_run_group_tests_name("head_cache", tests, attached_open, attached_close);
}
