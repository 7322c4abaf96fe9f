/* SPDX-License-Identifier: GPL-2.0 */
/* The ring `trace`: what the ingress program says of the requests in a packet. */
#include "attached.h"
#include "weir/conn/trace.h"
#include "weir/http/identity.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <string.h>

#include "base/rate.h"
#include "weir.skel.h"

#define SLOT 3
#define ROOM 16

static const char list_pods[] =
	"GET /api/v1/namespaces/a/pods?limit=5 HTTP/1.1\r\nHost: x\r\nAuthorization: secret\r\n\r\n";
static const char list_pods_line[] = "GET /api/v1/namespaces/a/pods?limit=5 HTTP/1.1";
static const char health[] = "GET /livez HTTP/1.1\r\n\r\n";

/* What was read latest. */
static struct weir_trace_record records[ROOM];
static unsigned int n_records;

static void keep(void *arg, const struct weir_trace_record *record)
{
	(void)arg;
	if (n_records < ROOM) {
		records[n_records].trace = record->trace;
		memcpy(records[n_records].line, record->line, record->trace.line_kept);
	}
	n_records++;
}

static unsigned int read_records(void)
{
	n_records = 0;
	while (datapath_trace_read(dp, keep, NULL))
		;
	return n_records;
}

static int setup(void **state)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 65536 };

	weir_reading_default(&server.reading);
	*state = dp;
	ingress = bpf_program__fd(dp->skeleton->progs.weir_ingress);
	done(datapath_server_set(dp, SLOT, &server, &listen, 1, NULL, 0, &error));
	done(datapath_trace_until(dp, SLOT, UINT64_MAX, &error));
	return 0;
}

static int teardown(void **state)
{
	done(datapath_server_clear(dp, SLOT, &error));
	return attached_teardown(state);
}

static void set_flags(__u32 flags)
{
	done(datapath_server_flags(dp, SLOT, WEIR_SERVER_ACTIVE | flags, &error));
}

static void slot_limit(enum weir_builtin_limit builtin, const char *qps, __u64 burst)
{
	__u64 per_ns;

	assert_int_equal(weir_qps_parse(qps, &per_ns), 0);
	done(limit_set(dp, SLOT, builtin, per_ns, burst, 0));
}

/* The connection begins anew, whatever it was. */
static void begin_anew(void)
{
	struct weir_conn c = {};
	struct weir_flow flow;

	packet_flow(false, &flow);
	weir_conn_open(&c, SLOT, WEIR_PHASE_FOLLOWED, CLIENT_NEXT, SERVER_NEXT, 501);
	c.splice.told = SERVER_NEXT;
	bpf_map_delete_elem(dp->maps.conns, &flow);
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_NOEXIST), 0);
}

static int send_at(__u32 seq, const char *text)
{
	struct packet packet;

	packet_build(&packet,
		     &(struct spec){ .seq = seq, .ack = SERVER_NEXT, .flags = PSH_ACK, .window = 99, .text = text });
	return packet_run(ingress, &packet);
}

static int send_first(const char *text)
{
	begin_anew();
	return send_at(CLIENT_NEXT, text);
}

/* Everybody may name users. */
static void trust_all(void)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	static const struct datapath_cidr all = {};
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 65536 };

	weir_reading_default(&server.reading);
	done(datapath_server_set(dp, SLOT, &server, &listen, 1, &all, 1, &error));
	done(datapath_trace_until(dp, SLOT, UINT64_MAX, &error));
}

static void assert_line(const struct weir_trace_record *record, const char *line)
{
	assert_int_equal(record->trace.line_length, strlen(line));
	assert_int_equal(record->trace.line_kept, strlen(line));
	assert_memory_equal(record->line, line, strlen(line));
}

static __u64 subject(enum weir_name_kind kind, const void *name, size_t length)
{
	return datapath_subject(dp, kind, name, length);
}

static void test_passed(void **state)
{
	struct weir_trace *trace = &records[0].trace;
	struct weir_flow flow;
	char name[64];

	(void)state;
	packet_flow(false, &flow);
	assert_int_equal(send_first(list_pods), PASS);
	assert_int_equal(read_records(), 1);
	assert_line(&records[0], list_pods_line);
	assert_int_equal(trace->decision, WEIR_PASSED);
	assert_int_equal(trace->server, SLOT);
	assert_int_equal(trace->method, WEIR_METHOD_GET);
	assert_int_equal(trace->head_length, strlen(list_pods));
	assert_int_equal(trace->content_length, 0);
	assert_int_equal(trace->flags, 0);
	assert_int_equal(trace->retry_s, 0);
	assert_int_equal(trace->n_refused, 0);
	assert_int_equal(ntohs(trace->client_port), CLIENT_PORT);
	assert_memory_equal(trace->client, flow.client, 16);
	assert_int_equal(trace->by, WEIR_IDENTIFIED_BY_NOBODY);
	assert_true(trace->user == subject(WEIR_NAME_ADDRESS, flow.client, 16));
	assert_true(trace->attributes.namespace == subject(WEIR_NAME_NAMESPACE, "a", 1));
	assert_int_equal(trace->attributes.verb, WEIR_VERB_LIST);
	assert_true(trace->attributes.resource == subject(WEIR_NAME_NAMESPACE, "pods", 4));
	assert_int_equal(trace->names[WEIR_TRACE_RESOURCE].length, 4);
	assert_memory_equal(records[0].line + trace->names[WEIR_TRACE_RESOURCE].offset, "pods", 4);
	assert_int_equal(trace->names[WEIR_TRACE_OBJECT].length, 0);
	assert_true(trace->time_ns <= datapath_now_ns());
	/* Names are kept for the reader, where no limit asks for them, too. */
	done(datapath_name(dp, trace->attributes.namespace, name, sizeof(name)));
	assert_string_equal(name, "a");
	done(datapath_name(dp, trace->user, name, sizeof(name)));
	assert_string_equal(name, "127.0.0.9");
	assert_int_equal(read_records(), 0);
}

static void test_nobody_reads(void **state)
{
	(void)state;
	done(datapath_trace_until(dp, SLOT, 0, &error));
	send_first(list_pods);
	assert_int_equal(read_records(), 0);
	/* The agent has died some time ago. */
	done(datapath_trace_until(dp, SLOT, datapath_now_ns(), &error));
	send_first(list_pods);
	assert_int_equal(read_records(), 0);
	done(datapath_trace_until(dp, SLOT, UINT64_MAX, &error));
	set_flags(0);
	send_first(list_pods);
	assert_int_equal(read_records(), 1);
}

static void test_refused(void **state)
{
	(void)state;
	slot_limit(WEIR_BUILTIN_NAMESPACE, "0.5", 0);
	slot_limit(WEIR_BUILTIN_USER, "0", 0);
	send_first(list_pods);
	assert_int_equal(read_records(), 1);
	assert_line(&records[0], list_pods_line);
	assert_int_equal(records[0].trace.decision, WEIR_SHED);
	assert_int_equal(records[0].trace.n_refused, 2);
	assert_int_equal(records[0].trace.refused[0], WEIR_BUILTIN_USER);
	assert_int_equal(records[0].trace.refused[1], WEIR_BUILTIN_NAMESPACE);
	assert_int_equal(records[0].trace.retry_s, 3600);
	/* The answer is said again: that is no other request. */
	send_at(CLIENT_NEXT, list_pods);
	assert_int_equal(read_records(), 0);

	set_flags(WEIR_SERVER_DRY_RUN);
	assert_int_equal(send_first(list_pods), PASS);
	assert_int_equal(read_records(), 1);
	assert_int_equal(records[0].trace.decision, WEIR_DRY_RUN_SHED);
	assert_int_equal(records[0].trace.retry_s, 3600);

	set_flags(WEIR_SERVER_PAUSED);
	assert_int_equal(send_first(list_pods), PASS);
	assert_int_equal(read_records(), 1);
	assert_int_equal(records[0].trace.decision, WEIR_PASSED);
	assert_int_equal(records[0].trace.n_refused, 0);
}

static void test_several_in_a_packet(void **state)
{
	static const char third[] = "POST /c HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
	char text[512];

	(void)state;
	snprintf(text, sizeof(text), "%s%s%s", list_pods, health, third);
	assert_int_equal(send_first(text), PASS);
	assert_int_equal(read_records(), 3);
	assert_line(&records[0], list_pods_line);
	assert_line(&records[1], "GET /livez HTTP/1.1");
	assert_line(&records[2], "POST /c HTTP/1.1");
	assert_int_equal(records[0].trace.decision, WEIR_PASSED);
	assert_int_equal(records[1].trace.decision, WEIR_EXEMPT);
	assert_int_equal(records[2].trace.decision, WEIR_PASSED);
	assert_int_equal(records[2].trace.method, WEIR_METHOD_POST);
	assert_int_equal(records[2].trace.content_length, 3);
	assert_true(records[2].trace.flags & WEIR_REQUEST_HAS_LENGTH);
	assert_true(records[2].trace.attributes.namespace == 0);
	/* The packet comes again: nothing is decided anew. */
	assert_int_equal(send_at(CLIENT_NEXT, text), PASS);
	assert_int_equal(read_records(), 0);
}

/* A request that waits is told of when it is decided, however often it comes. */
static void test_waiting(void **state)
{
	char text[512];

	(void)state;
	slot_limit(WEIR_BUILTIN_USER, "0", 1);
	snprintf(text, sizeof(text), "%s%s", list_pods, list_pods);
	assert_int_equal(send_first(text), PASS);
	assert_int_equal(read_records(), 1);
	assert_int_equal(records[0].trace.decision, WEIR_PASSED);
	for (int i = 0; i < 3; i++)
		assert_int_equal(send_at(CLIENT_NEXT + strlen(list_pods), list_pods), DROP);
	assert_int_equal(read_records(), 0);
	slot_limit(WEIR_BUILTIN_USER, "1000000000", 1000000000);
	assert_int_equal(send_at(CLIENT_NEXT + strlen(list_pods), list_pods), PASS);
	assert_int_equal(read_records(), 1);
	assert_int_equal(records[0].trace.decision, WEIR_PASSED);
	assert_line(&records[0], list_pods_line);
}

/* An ambiguous request is told of as far as it could be read; what its head had been decided to be is not. */
static void test_rejected(void **state)
{
	static const char chunked[] = "POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
	char text[512];

	(void)state;
	send_first("GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n");
	assert_int_equal(read_records(), 1);
	assert_int_equal(records[0].trace.decision, WEIR_REJECTED);
	assert_line(&records[0], "GET /healthz HTTP/1.1");
	assert_int_equal(records[0].trace.head_length, 0);
	send_first(chunked);
	assert_int_equal(read_records(), 1);
	assert_int_equal(records[0].trace.decision, WEIR_REJECTED);
	/* Its turn has not come. */
	snprintf(text, sizeof(text), "%s%s", list_pods, chunked);
	assert_int_equal(send_first(text), PASS);
	assert_int_equal(read_records(), 1);
	assert_int_equal(records[0].trace.decision, WEIR_PASSED);
	assert_line(&records[0], list_pods_line);

	set_flags(WEIR_SERVER_DRY_RUN);
	assert_int_equal(send_first("GET\r\n"), PASS);
	assert_int_equal(read_records(), 1);
	assert_int_equal(records[0].trace.decision, WEIR_DRY_RUN_REJECTED);
	assert_line(&records[0], "");
}

/* What the packet before was about is no part of it: neither its user, nor its namespace. */
static void test_whose_a_rejected_one_is(void **state)
{
	static const char alice[] = "GET /api/v1/namespaces/a/pods HTTP/1.1\r\nX-Remote-User: alice\r\n\r\n";
	static const char *const wrong[] = { "GET /x HTTP/1.1\r\nHost : x\r\n\r\n",
					     "GET /x HTTP/1.1\r\nX-Remote-User: bob\r\nHost : x\r\n\r\n", "\n \r\n" };
	const struct weir_trace *trace = &records[0].trace;
	struct weir_flow flow;
	char name[64];

	(void)state;
	trust_all();
	packet_flow(false, &flow);
	for (size_t i = 0; i < 2 * sizeof(wrong) / sizeof(*wrong); i++) {
		set_flags(i & 1 ? WEIR_SERVER_DRY_RUN : 0);
		assert_int_equal(send_first(alice), PASS);
		assert_int_equal(read_records(), 1);
		assert_true(trace->user == subject(WEIR_NAME_USER, "alice", 5));
		send_first(wrong[i / 2]);
		assert_int_equal(read_records(), 1);
		assert_int_equal(trace->decision, i & 1 ? WEIR_DRY_RUN_REJECTED : WEIR_REJECTED);
		assert_int_equal(trace->by, WEIR_IDENTIFIED_BY_NOBODY);
		assert_true(trace->user == subject(WEIR_NAME_ADDRESS, flow.client, 16));
		assert_true(!trace->attributes.namespace);
		done(datapath_name(dp, trace->user, name, sizeof(name)));
		assert_string_equal(name, "127.0.0.9");
	}
}

static void test_split_head(void **state)
{
	char text[sizeof(list_pods)];
	size_t half = 30;

	(void)state;
	memcpy(text, list_pods, half);
	text[half] = 0;
	assert_int_equal(send_first(text), PASS);
	assert_int_equal(read_records(), 0);
	assert_int_equal(send_at(CLIENT_NEXT + half, list_pods + half), PASS);
	assert_int_equal(read_records(), 1);
	assert_int_equal(records[0].trace.line_kept, 0);
	assert_int_equal(records[0].trace.line_length, strlen(list_pods_line));
	assert_int_equal(records[0].trace.head_length, strlen(list_pods));
	assert_true(records[0].trace.attributes.namespace == subject(WEIR_NAME_NAMESPACE, "a", 1));
}

/* n bytes of a request with that many in its line. */
static void long_request(char *text, size_t line)
{
	memset(text, 'a', line);
	memcpy(text, "\r\nGET /", 7);
	strcpy(text + line - 9, " HTTP/1.1\r\n\r\n");
}

static void test_long_lines(void **state)
{
	static const size_t lengths[] = { WEIR_TRACE_LINE - 1, WEIR_TRACE_LINE, WEIR_TRACE_LINE + 1, 3000 };
	char text[3100];

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		long_request(text, lengths[i]);
		assert_int_equal(send_first(text), PASS);
		assert_int_equal(read_records(), 1);
		assert_int_equal(records[0].trace.line_length, lengths[i]);
		assert_int_equal(records[0].trace.line_kept,
				 lengths[i] < WEIR_TRACE_LINE ? lengths[i] : WEIR_TRACE_LINE);
		assert_memory_equal(records[0].line, text, records[0].trace.line_kept);
	}
}

/* What finds the ring full is counted, and every packet passes all the same. */
static void test_full_ring(void **state)
{
	const unsigned int n = 4 * 1024 * 1024 / WEIR_TRACE_LINE;
	__u64 counters[WEIR_REASON_COUNT];
	char text[600];

	(void)state;
	long_request(text, WEIR_TRACE_LINE);
	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(send_first(text), PASS);
	read_records();
	assert_in_range(n_records, n / 2, n - 1);
	done(datapath_counters(dp, SLOT, counters, &error));
	assert_int_equal(counters[WEIR_PASSED], n);
	assert_int_equal(counters[WEIR_TRACE_LOST], n - n_records);
	assert_int_equal(send_first(list_pods), PASS);
	assert_int_equal(read_records(), 1);
}

#define TRACED(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TRACED(test_passed),	 TRACED(test_nobody_reads),
		TRACED(test_refused),	 TRACED(test_several_in_a_packet),
		TRACED(test_waiting),	 TRACED(test_rejected),
		TRACED(test_split_head), TRACED(test_long_lines),
		TRACED(test_full_ring),	 TRACED(test_whose_a_rejected_one_is),
	};

	return cmocka_run_group_tests_name("trace", tests, attached_open, attached_close);
}
