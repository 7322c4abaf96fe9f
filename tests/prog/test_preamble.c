/* SPDX-License-Identifier: GPL-2.0 */
/* Connections that begin with a PROXY protocol preamble, packet by packet: whom it names, and when there is none. */
#include "attached.h"

#include <bpf/bpf.h>
#include <string.h>

#define LINE "PROXY TCP4 192.0.2.1 192.0.2.9 40000 80\r\n"
#define GET "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"

static const __u8 named[16] = { [10] = 0xff, 0xff, 192, 0, 2, 1 };

/* The peer's preambles are believed, or only those of another network. */
static int setup(void **state, bool believed)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	static const struct datapath_cidr every = { .bits = 0 }, other = { .address = { 0x20 }, .bits = 8 };
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE | WEIR_SERVER_PREAMBLES, .swallow_max = 65536 };

	attached_setup(state);
	weir_reading_default(&server.reading);
	done(datapath_balancers_set(dp, 0, believed ? &every : &other, 1, &error));
	done(datapath_server_set(dp, 0, &server, &listen, 1, NULL, 0, &error));
	return 0;
}

static int setup_believed(void **state)
{
	return setup(state, true);
}

static int setup_unbelieved(void **state)
{
	return setup(state, false);
}

static void connect_with_preamble(bool ipv6)
{
	struct weir_flow flow;
	struct weir_conn c;

	connect_ends(ipv6);
	packet_flow(ipv6, &flow);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &c), 0);
	weir_conn_await_preamble(&c);
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_ANY), 0);
}

static struct spec bytes(__u32 at, const char *text, size_t n)
{
	return (struct spec){
		.seq = CLIENT_NEXT + at, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = text, .n_text = n
	};
}

static void server_acks(__u32 acked)
{
	assert_untouched(egress, &(struct spec){ .from_server = true,
						 .seq = SERVER_NEXT,
						 .ack = CLIENT_NEXT + acked,
						 .flags = ACK,
						 .text = "" });
}

/* A connection that begins with the text in two packets: the first passes as it is; *seen is what the second became. */
static void in_two(const char *text, size_t n, size_t cut, struct seen *seen)
{
	struct spec spec;

	connect_with_preamble(false);
	if (cut) {
		spec = bytes(0, text, cut);
		assert_untouched(ingress, &spec);
		server_acks(cut);
	}
	spec = bytes(cut, text + cut, n - cut);
	assert_int_equal(run(ingress, &spec), PASS);
	packet_see(&packet, seen);
}

/* Requests of 192.0.2.1 are refused, and no others. */
static void refuse_named(void)
{
	__u64 subject = datapath_subject(dp, WEIR_NAME_ADDRESS, named, sizeof(named));

	done(override_set(dp, 0, WEIR_BUILTIN_USER, subject, 0, 0));
}

/* In two packets, cut anywhere: the first passes as it is; of the second what is the preamble's. */
static void test_cut_anywhere(void **state)
{
	static const char stream[] = LINE GET;
	size_t n = strlen(LINE), all = strlen(stream);
	struct spec spec;
	struct seen seen;

	(void)state;
	limit(WEIR_BUILTIN_USER, "0", 0);
	for (size_t cut = 0; cut < all; cut++) {
		size_t kept = cut < n ? n - cut : 0;

		in_two(stream, all, cut, &seen);
		if (kept) {
			assert_false(seen.from_server);
			assert_int_equal(seen.n_text, kept);
			assert_memory_equal(seen.text, stream + cut, kept);
			server_acks(n);
			spec = bytes(n, GET, 0);
			assert_int_equal(run(ingress, &spec), PASS);
			packet_see(&packet, &seen);
		}
		if (cut <= n) {
			assert_true(seen.from_server);
			assert_memory_equal(seen.text, "HTTP/1.1 429", 12);
		}
	}
	assert_int_equal(counter(WEIR_SHED), all);
	assert_int_equal(counter(WEIR_PASSED), 0);
	assert_int_equal(counter(WEIR_BY_NOBODY), all);
	assert_int_equal(counter(WEIR_UNTRUSTED_IDENTITY), 0);
}

/* A request behind a preamble that has come whole; true: it is refused. */
static bool refused_behind(const char *preamble, size_t n, bool ipv6)
{
	struct spec spec = bytes(0, preamble, n);
	struct seen seen;

	spec.ipv6 = ipv6;
	connect_with_preamble(ipv6);
	assert_untouched(ingress, &spec);
	assert_untouched(egress, &(struct spec){ .from_server = true,
						 .ipv6 = ipv6,
						 .seq = SERVER_NEXT,
						 .ack = CLIENT_NEXT + n,
						 .flags = ACK,
						 .text = "" });
	spec = bytes(n, GET, 0);
	spec.ipv6 = ipv6;
	assert_int_equal(run(ingress, &spec), PASS);
	packet_see(&packet, &seen);
	return seen.from_server;
}

#define BINARY "\r\n\r\n\0\r\nQUIT\n"
#define ENDS4 "\xc0\0\x02\x01\xc0\0\x02\x09\x9c\x40\0\x50"
#define REFUSED(preamble, ipv6) refused_behind(preamble, sizeof(preamble) - 1, ipv6)

static void test_whom_it_names(void **state)
{
	(void)state;
	refuse_named();
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		assert_true(REFUSED(LINE, ipv6));
		assert_true(REFUSED("PROXY TCP6 ::ffff:192.0.2.1 ::1 40000 80\r\n", ipv6));
		assert_true(REFUSED(BINARY "\x21\x11\0\x0c" ENDS4, ipv6));
		assert_true(REFUSED(BINARY "\x21\x11\0\x10" ENDS4 "more", ipv6));
		assert_false(REFUSED("PROXY TCP4 192.0.2.2 192.0.2.9 40000 80\r\n", ipv6));
		assert_false(REFUSED("PROXY UNKNOWN 192.0.2.1\r\n", ipv6));
		assert_false(REFUSED(BINARY "\x20\x11\0\x0c" ENDS4, ipv6)); /* LOCAL */
		assert_false(REFUSED(BINARY "\x21\0\0\0", ipv6));
	}
	assert_int_equal(counter(WEIR_SHED), 8);
	assert_int_equal(counter(WEIR_PASSED), 8);
	assert_int_equal(counter(WEIR_UNTRUSTED_IDENTITY), 0);
}

/* It is read, and nobody believes it. */
static void test_of_an_unknown_balancer(void **state)
{
	(void)state;
	refuse_named();
	assert_false(REFUSED(LINE, false));
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(counter(WEIR_UNTRUSTED_IDENTITY), 1);
}

/* What was a preamble up to the cut has passed. */
static void rejected(const char *text, size_t n, size_t cut)
{
	__u64 before = counter(WEIR_REJECTED);
	struct spec spec = bytes(cut, text + cut, n - cut);
	struct seen seen;

	in_two(text, n, cut, &seen);
	assert_int_equal(seen.flags, WEIR_TCP_RST);
	assert_int_equal(seen.seq, CLIENT_NEXT + cut);
	assert_int_equal(counter(WEIR_REJECTED), before + 1);
	assert_int_equal(counter(WEIR_BAD_PREAMBLE), before + 1);
	assert_int_equal(run(ingress, &spec), PASS);
	packet_see(&packet, &seen);
	assert_true(seen.from_server);
	assert_memory_equal(seen.text, "HTTP/1.1 400", 12);
	assert_non_null(memmem(seen.text, seen.n_text, "PROXY protocol preamble", 23));
}

static void test_bad_ones(void **state)
{
	static const char bad[] = "PROXY TCP4 192.0.2.256 192.0.2.9 1 2\r\n";

	(void)state;
	rejected(GET, strlen(GET), 0);
	rejected("\x16\x03\x01\x02", 4, 0);
	for (size_t cut = 0; cut < strlen("PROXY TCP4 192.0.2.256"); cut++)
		rejected(bad, strlen(bad), cut);
	rejected(BINARY "\x22\x11\0\0", 16, 12);
	assert_int_equal(counter(WEIR_PASSED) + counter(WEIR_SHED), 0);
}

/* It is not acknowledged yet, nor is it lost: what has come of it passes again, and is not read again. */
static void test_again(void **state)
{
	struct spec spec = bytes(0, LINE GET, 0);

	(void)state;
	connect_with_preamble(false);
	assert_untouched(ingress, &spec);
	assert_untouched(ingress, &spec);
	assert_int_equal(counter(WEIR_PASSED), 1);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_cut_anywhere, setup_believed, attached_teardown),
		cmocka_unit_test_setup_teardown(test_whom_it_names, setup_believed, attached_teardown),
		cmocka_unit_test_setup_teardown(test_of_an_unknown_balancer, setup_unbelieved, attached_teardown),
		cmocka_unit_test_setup_teardown(test_bad_ones, setup_believed, attached_teardown),
		cmocka_unit_test_setup_teardown(test_again, setup_believed, attached_teardown),
	};

	return cmocka_run_group_tests_name("preamble", tests, attached_open, attached_close);
}
