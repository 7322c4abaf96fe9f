/* SPDX-License-Identifier: GPL-2.0 */
/* Heads as the programs read them, in place and by their machines (bpf/frame.h): it comes to the same, however long lines and heads are. */
#include "limited.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weir.skel.h"
#include "weir/http/head_cache.h"

#define LONGEST 700 /* bytes of filling: more than the windows have in which a head is read at once */
#define STEP 13

static struct weir_reading how;

static void reading_look(void)
{
	struct weir_server server;
	__u32 zero = 0;

	assert_int_equal(bpf_map_lookup_elem(dp->maps.servers, &zero, &server), 0);
	how = server.reading;
}

/* By the machine alone, a byte at a time. */
static __u64 digest_of(const char *head)
{
	struct weir_request r;

	weir_request_start(&r);
	for (const char *byte = head; *byte; byte++)
		weir_request_byte(&r, &how, *byte);
	assert_true(weir_request_ended(&r));
	return weir_request_digest(&r, (const struct weir_digest_keys *)dp->skeleton->rodata_keys->digest_keys);
}

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
		assert_int_equal(c.request_digest, digest_of(head));
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
	reading_look();
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

/* --- heads that come again (bpf/head_cache.h) */

#define SAYINGS 130 /* of one head: within so many it is looked for, and kept */

/* The cache is each CPU's own. */
static void stay_on_this_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static struct weir_conn ask_once(const char *head)
{
	connect_ends(false);
	assert_int_equal(client_says(false, 0, head), PASS);
	return conn_look(false);
}

/* In each request that is kept, has the user be another one. What follows from that is found out anew. */
static void requests_poison(void)
{
	const int fd = bpf_map__fd(dp->skeleton->maps.request_cache), cpus = libbpf_num_possible_cpus();
	struct weir_cached_request *cached = calloc(cpus, sizeof(*cached));
	__u32 place;

	assert_non_null(cached);
	for (place = 0; !bpf_map_lookup_elem(fd, &place, cached); place++) {
		for (int cpu = 0; cpu < cpus; cpu++) {
			cached[cpu].request.user_subject ^= 1;
			cached[cpu].digest = 0;
		}
		assert_int_equal(bpf_map_update_elem(fd, &place, cached, BPF_ANY), 0);
	}
	assert_true(place > 1);
	free(cached);
}

/* Is what was kept of the head what it is said to be, when it comes again? It is put right again. */
static bool is_kept(const char *head)
{
	__u64 digest;

	for (int i = 0; i < SAYINGS; i++)
		assert_int_equal(ask_once(head).request_digest, digest_of(head));
	requests_poison();
	digest = ask_once(head).request_digest;
	requests_poison();
	assert_int_equal(ask_once(head).request_digest, digest_of(head));
	return digest != digest_of(head);
}

static void test_request_is_kept(void **state)
{
	(void)state;
	stay_on_this_cpu();
	reading_look();
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
	static const char line[] = "A-Name: a value that means nothing\r\n";
	char head[2 * WEIR_CACHE_MAX];

	(void)state;
	stay_on_this_cpu();
	reading_look();
	for (int length = 200; length<WEIR_CACHE_MAX + 40; length += length> WEIR_CACHE_MAX - 3 ? 1 : 61) {
		snprintf(head, sizeof(head), "GET /a HTTP/1.1\r\nX-Remote-User: bob\r\n");
		while (strlen(head) + 2 * strlen(line) < (size_t)length)
			strcat(head, line);
		snprintf(head + strlen(head), sizeof(head) - strlen(head), "A: %.*s\r\n\r\n",
			 length - (int)strlen(head) - 7,
			 "-------------------------------------------------------------------------");
		assert_int_equal(strlen(head), length);
		assert_int_equal(is_kept(head), length <= WEIR_CACHE_MAX);
	}
}

/* Heads of which each differs in a byte from the one before, among them one that is kept. */
static void test_heads_that_differ(void **state)
{
	char head[] = "GET /a HTTP/1.1\r\nHost: x\r\nX-Remote-User: alice\r\nAccept: */*\r\n\r\n";
	char *name = strstr(head, "alice");

	(void)state;
	stay_on_this_cpu();
	reading_look();
	assert_true(is_kept(head));
	for (int i = 0; i < 5; i++)
		for (int c = 'a'; c <= 'z'; c++) {
			name[i] = c;
			assert_int_equal(ask_once(head).request_digest, digest_of(head));
		}
}

/* A head is read anew where the server's settings say to read it in another way, and as before when they say so again. */
static void test_another_reading(void **state)
{
	static const char head[] = "GET /a HTTP/1.1\r\nX-Remote-User: alice\r\nX-Other-User: bob\r\n\r\n";
	struct weir_server server, other;
	__u32 zero = 0;

	(void)state;
	stay_on_this_cpu();
	reading_look();
	assert_int_equal(bpf_map_lookup_elem(dp->maps.servers, &zero, &server), 0);
	other = server;
	assert_int_equal(weir_reading_name(&other.reading, WEIR_HEADER_USER, "x-other-user", 12), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(is_kept(head));
		done(datapath_server_write(dp, 0, i % 2 ? &server : &other, &error));
		reading_look();
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
	stay_on_this_cpu();
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
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
	stay_on_this_cpu();
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
	stay_on_this_cpu();
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
	stay_on_this_cpu();
	for (int i = 0; i < SAYINGS; i++) {
		assert_int_equal(answer_length(get_a, head), strlen(head) + 7);
		assert_int_equal(answer_length(ask, head), strlen(head));
	}
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = { TEST(requests),
					    TEST(answers),
					    TEST(pipelined),
					    TEST(request_is_kept),
					    TEST(longest_that_is_kept),
					    TEST(heads_that_differ),
					    TEST(another_reading),
					    TEST(what_follows),
					    TEST(trailers),
					    TEST(answer_is_kept),
					    TEST(answer_to_head) };

	return cmocka_run_group_tests_name("head", tests, attached_open, attached_close);
}
