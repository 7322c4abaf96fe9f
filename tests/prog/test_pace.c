/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Delaying what cannot be read, packet by packet: which are sent to the device where they wait, and until when. The
 * connection's ends are real, for the programs ask the server's socket; what it says stands still, as no packet comes.
 */
#include "ends.h"

#include <bpf/bpf.h>
#include <linux/tcp.h>
#include <string.h>

#include "weir/conn/pace.h"

#include "attached.h"
#include "base/rate.h"
#include "weir.skel.h"

#define REDIRECT 7
#define DEVICE 77 /* nothing is sent by a test run */
#define SECOND ((__u64)WEIR_NS_PER_S)
#define RECORD_BYTES 105
#define BADGE 0x80001230U
#define PAID_AT 21
#define PAID (1023U << PAID_AT)

static __u32 next_seq, next_ack; /* of the client */
static __u64 departs_ns;	 /* the latest packet */
static __u32 paid;

/* --- the connection */

static void follow(enum weir_reason opaque_why)
{
	struct weir_conn c = {};
	struct weir_flow flow;

	packet_flow(false, &flow);
	next_seq = ends_queue(TCP_RECV_QUEUE);
	next_ack = ends_queue(TCP_SEND_QUEUE);
	weir_conn_open(&c, 0, WEIR_PHASE_FOLLOWED, next_seq, next_ack, 501);
	weir_conn_opaque(&c, next_seq, opaque_why);
	weir_record_start_midway(&c.hold.record);
	c.badge = BADGE;
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_ANY), 0);
}

/* --- the datapath */

static void set_flags(__u32 flags)
{
	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | flags, &error));
}

static int setup(void **state)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	static const struct datapath_cidr anyone = { .bits = 0 };
	struct weir_server description = { .flags = WEIR_SERVER_ACTIVE | WEIR_SERVER_PACED };
	struct weir_settings settings;
	__u32 zero = 0;

	weir_reading_default(&description.reading);
	*state = dp;
	ingress = bpf_program__fd(dp->skeleton->progs.weir_ingress);
	done(datapath_server_set(dp, 0, &description, &listen, 1, &anyone, 1, &error));
	assert_int_equal(bpf_map_lookup_elem(dp->maps.settings, &zero, &settings), 0);
	settings.pace_ifindex = DEVICE;
	assert_int_equal(bpf_map_update_elem(dp->maps.settings, &zero, &settings, BPF_ANY), 0);
	assert_int_equal(call_inside(ends_make, NULL), 0);
	follow(WEIR_TLS);
	return 0;
}

static int teardown(void **state)
{
	ends_close();
	return attached_teardown(state);
}

static int send_spec(const struct spec *spec)
{
	struct packet before;
	struct __sk_buff context;
	int verdict;

	packet_build(&packet, spec);
	before = packet;
	verdict = packet_run_in(ingress, &packet, &context);
	departs_ns = verdict == REDIRECT ? context.tstamp : 0;
	if (verdict != DROP && spec->n_text)
		assert_int_equal(context.priority & ~PAID, BADGE); /* also of what waits */
	paid = (context.priority & PAID) >> PAID_AT;
	assert_int_equal(packet.length, before.length);
	assert_memory_equal(packet.bytes, before.bytes, before.length);
	return verdict;
}

/* The n-th record of the stream, of RECORD_BYTES with its header. */
static int send_record(__u32 n)
{
	static const char text[RECORD_BYTES] = { 0x17, 3, 3, 0, RECORD_BYTES - 5 };

	return send_spec(&(struct spec){ .seq = next_seq + n * RECORD_BYTES,
					 .ack = next_ack,
					 .flags = PSH_ACK,
					 .text = text,
					 .n_text = sizeof(text) });
}

/* --- tests */

static void test_over_the_limit_waits(void **state)
{
	__u64 first_ns;

	(void)state;
	limit(WEIR_BUILTIN_USER, "1", 1);
	assert_int_equal(send_record(0), PASS);
	assert_int_equal(paid, WEIR_PAID_BEGINS);
	assert_int_equal(send_record(1), REDIRECT);
	assert_int_equal(paid, WEIR_PAID_NOTHING + 1);
	first_ns = departs_ns;
	assert_true(first_ns > datapath_now_ns() - SECOND && first_ns <= datapath_now_ns() + SECOND);
	assert_int_equal(send_record(2), REDIRECT);
	assert_true(departs_ns == first_ns + SECOND);
	/* Again: neither charged again, nor ahead of the others. */
	assert_int_equal(send_record(1), REDIRECT);
	assert_int_equal(paid, WEIR_PAID_NOTHING);
	assert_true(departs_ns == first_ns + SECOND);
	assert_int_equal(send_record(3), REDIRECT);
	assert_true(departs_ns == first_ns + 2 * SECOND);
	assert_int_equal(counter(WEIR_RECORDS_PASSED), 4);
	assert_int_equal(counter(WEIR_RECORDS_HELD), 3);
	assert_int_equal(counter(WEIR_PACED), 4);
	assert_int_equal(counter(WEIR_HELD_RECORD), 0);
	assert_true(counter(WEIR_HELD_NS) > 3 * SECOND && counter(WEIR_HELD_NS) <= 6 * SECOND);
}

/* Acknowledgements and the connection's end go ahead of what waits. */
static void test_without_data_nothing_waits(void **state)
{
	struct spec spec = { .ack = next_ack, .flags = WEIR_TCP_ACK };

	(void)state;
	limit(WEIR_BUILTIN_USER, "1", 1);
	assert_int_equal(send_record(0), PASS);
	assert_int_equal(send_record(1), REDIRECT);
	spec.seq = next_seq + 2 * RECORD_BYTES;
	assert_int_equal(send_spec(&spec), PASS);
	spec.flags = WEIR_TCP_ACK | WEIR_TCP_FIN;
	assert_int_equal(send_spec(&spec), PASS);
	spec.flags = WEIR_TCP_RST;
	assert_int_equal(send_spec(&spec), PASS);
}

static void test_too_long_to_wait(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_USER, "0.1", 1);
	assert_int_equal(send_record(0), PASS);
	assert_int_equal(send_record(1), DROP);
	assert_int_equal(send_record(1), DROP);
	assert_int_equal(counter(WEIR_RECORDS_HELD), 1);
	assert_int_equal(counter(WEIR_HELD_RECORD), 2);
	assert_int_equal(counter(WEIR_PACED), 0);
	limit(WEIR_BUILTIN_USER, "1000000", 1);
	assert_int_not_equal(send_record(1), DROP);
	assert_int_equal(counter(WEIR_RECORDS_PASSED), 2);
	assert_int_equal(counter(WEIR_RECORDS_HELD), 1);
}

/* Of two limits the later one says when, and what one refuses is not taken from the other. */
static void test_two_limits(void **state)
{
	__u64 first_ns;

	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "10", 1);
	limit(WEIR_BUILTIN_USER, "1", 1);
	assert_int_equal(send_record(0), PASS);
	assert_int_equal(send_record(1), REDIRECT);
	first_ns = departs_ns;
	for (__u32 n = 2; n < 6; n++) {
		assert_int_equal(send_record(n), REDIRECT);
		assert_true(departs_ns == first_ns + (n - 1) * SECOND);
	}
	for (int i = 0; i < 50; i++)
		assert_int_equal(send_record(6), DROP);
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_USER, &error));
	/* The total owes for six, not for all that were asked for. */
	assert_int_equal(send_record(6), REDIRECT);
	assert_true(departs_ns == first_ns + 4 * SECOND);
	assert_int_equal(counter(WEIR_RECORDS_PASSED), 7);
}

static void test_where_it_does_not_wait(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_USER, "1", 1);
	set_flags(0);
	for (__u32 n = 0; n < 5; n++)
		assert_int_equal(send_record(n), PASS); /* the socket's hook asks */
	set_flags(WEIR_SERVER_PACED | WEIR_SERVER_PAUSED);
	for (__u32 n = 0; n < 5; n++)
		assert_int_equal(send_record(n), PASS);
	set_flags(WEIR_SERVER_PACED | WEIR_SERVER_DRY_RUN);
	for (__u32 n = 0; n < 5; n++)
		assert_int_equal(send_record(n), PASS);
	assert_int_equal(counter(WEIR_RECORDS_PASSED), 0);
	set_flags(WEIR_SERVER_PACED);
	assert_int_equal(send_record(0), PASS);
	assert_int_equal(send_record(1), REDIRECT);
}

/* Its tokens are not borrowed, either: it counts what it would have refused. */
static void test_limit_in_a_dry_run(void **state)
{
	struct datapath_limit total = { .reason = WEIR_SHED_TOTAL,
					.flags = WEIR_LIMIT_DRY_RUN,
					.amount = { .set = true, .burst = 1 } };

	(void)state;
	assert_int_equal(weir_qps_parse("1", &total.amount.per_ns), 0);
	done(datapath_limit_set(dp, 0, WEIR_BUILTIN_TOTAL, &total, &error));
	for (__u32 n = 0; n < 3; n++)
		assert_int_equal(send_record(n), PASS);
	assert_int_equal(counter(WEIR_PACED), 0);
	assert_int_equal(counter(WEIR_RECORDS_DRY_RUN_HELD), 2);
}

/* What the server would drop is not charged. */
static void test_what_the_socket_drops(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_USER, "10", 5);
	follow(WEIR_HTTP2);
	assert_int_equal(send_spec(&(struct spec){ .seq = next_seq + 0x1000000,
						   .ack = next_ack,
						   .flags = PSH_ACK,
						   .text = "far beyond the window" }),
			 DROP);
	assert_int_equal(counter(WEIR_UNACCEPTABLE), 1);
	follow(WEIR_TLS);
	ends_close();
	assert_int_equal(send_record(0), PASS); /* to be met by a RST */
	assert_int_equal(counter(WEIR_RECORDS_PASSED), 0);
}

/* The user of a request that was read before on this CPU is not who sends records now. */
static void test_charges_the_peer(void **state)
{
	static const char get[] = "GET / HTTP/1.1\r\nX-Remote-User: someone\r\n\r\n";
	struct weir_conn c = {};
	struct weir_flow flow;
	struct packet request;

	(void)state;
	done(override_set(dp, 0, WEIR_BUILTIN_USER, datapath_subject(dp, WEIR_NAME_USER, "someone", 7), 0, 1));
	packet_flow(true, &flow);
	weir_conn_open(&c, 0, WEIR_PHASE_FOLLOWED, 1000, 1, 501);
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_NOEXIST), 0);
	packet_build(&request,
		     &(struct spec){ .ipv6 = true, .seq = 1000, .ack = next_ack, .flags = PSH_ACK, .text = get });
	assert_int_equal(packet_run(ingress, &request), PASS);
	for (__u32 n = 0; n < 5; n++)
		assert_int_equal(send_record(n), PASS);
	assert_int_equal(counter(WEIR_RECORDS_PASSED), 5);
}

static void spoil_nothing(struct packet *p)
{
	(void)p;
}

static void half_make_checksum(struct packet *p)
{
	__u8 *ip = p->bytes + 14, *check = ip + 20 + 16;
	__u32 sum = 6 + p->length - 34;

	for (int i = 12; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	check[0] = sum >> 8;
	check[1] = sum;
}

static void spoil_ip_checksum(struct packet *p)
{
	p->bytes[14 + 10] ^= 1;
}

static void lengthen_ip_packet(struct packet *p)
{
	p->bytes[14 + 3] += 1;
	packet_sum_ip(p);
}

static void readdress(struct packet *p)
{
	p->bytes[5] ^= 1;
	p->bytes[0] = 2;
}

/*
 * What the kernel drops before the socket gets it is not charged: else a decoy that is free would pay for what comes in its
 * place. Of some only the kernel knows: they are not paced, and the socket's hook charges those that arrive.
 */
static void test_decoys(void **state)
{
	static const struct {
		void (*spoil)(struct packet *p);
		int verdict;
		enum weir_reason why;
	} decoys[] = {
		{ half_make_checksum, DROP, WEIR_BAD_CHECKSUM }, { spoil_ip_checksum, DROP, WEIR_BAD_CHECKSUM },
		{ lengthen_ip_packet, PASS, WEIR_REASON_NONE },	 { readdress, PASS, WEIR_REASON_NONE },
		{ packet_lengthen_ip, PASS, WEIR_REASON_NONE },	 { spoil_nothing, REDIRECT, WEIR_PACED },
	};
	static const char record[RECORD_BYTES] = { 0x17, 3, 3, 0, RECORD_BYTES - 5 };
	__u64 before;

	(void)state;
	limit(WEIR_BUILTIN_USER, "0.25", 1);
	assert_int_equal(send_record(0), PASS);
	for (size_t i = 0; i < sizeof(decoys) / sizeof(*decoys); i++) {
		packet_build(&packet, &(struct spec){ .seq = next_seq + RECORD_BYTES,
						      .ack = next_ack,
						      .flags = PSH_ACK,
						      .text = record,
						      .n_text = sizeof(record) });
		decoys[i].spoil(&packet);
		before = counter(decoys[i].why);
		assert_int_equal(packet_run(ingress, &packet), decoys[i].verdict);
		assert_int_equal(counter(WEIR_RECORDS_PASSED), decoys[i].verdict == REDIRECT ? 2 : 1);
		if (decoys[i].why != WEIR_REASON_NONE)
			assert_int_equal(counter(decoys[i].why), before + 1);
	}
}

ATTACHED_TESTS
{
#define PACED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		PACED(test_over_the_limit_waits),
		PACED(test_without_data_nothing_waits),
		PACED(test_too_long_to_wait),
		PACED(test_two_limits),
		PACED(test_where_it_does_not_wait),
		PACED(test_limit_in_a_dry_run),
		PACED(test_what_the_socket_drops),
		PACED(test_charges_the_peer),
		PACED(test_decoys),
	};

	return cmocka_run_group_tests_name("pace", tests, attached_open, attached_close);
}
