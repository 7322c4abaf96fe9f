/* SPDX-License-Identifier: GPL-2.0 */
/* Records in words: what the core notes of a request, and what is printed of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "weir/conn/conn.h"
#include "weir/http/identity.h"

#include "base/cleanup.h"
#include "show/trace.h"

#include "../../digest_keys.h"

static const __u64 seed[2] = { 1, 2 };

static __u64 subject_of(void *arg, const char *bytes, size_t length)
{
	struct weir_subject_hash hash;

	(void)arg;
	weir_subject_start(&hash, seed, WEIR_NAME_NAMESPACE);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&hash, bytes[i]);
	return weir_subject_end(&hash);
}

static const struct trace_context context = {
	.server = "web",
	.user = "alice",
	.namespace = "dev",
	.time = { .tv_sec = 1700000000, .tv_nsec = 123456789 },
	.limits = (const char *const[]){ "total", "level/low" },
	.n_limits = 2,
	.subject = subject_of,
};

static struct weir_trace_record record(const char *line)
{
	struct weir_trace_record r = {
		.trace = { .time_ns = 42,
			   .client = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
			   .client_port = htons(40000),
			   .by = WEIR_IDENTIFIED_BY_REQUEST_HEADER,
			   .decision = WEIR_PASSED,
			   .head_length = 100,
			   .line_length = strlen(line),
			   .line_kept = strlen(line) },
	};

	memcpy(r.line, line, strlen(line));
	r.trace.attributes.verb = WEIR_VERB_GET;
	return r;
}

static void assert_json(const struct weir_trace_record *r, const char *text)
{
	CLEANUP_JSON json_t *value = trace_json(r, &context);
	CLEANUP_FREE char *printed = value ? json_dumps(value, JSON_COMPACT) : NULL;

	assert_non_null(printed);
	assert_string_equal(printed, text);
}

#define BEGINNING                                                                                              \
	"{\"time\":\"2023-11-14T22:13:20.123456Z\",\"server\":\"web\",\"client\":\"10.0.0.1\",\"port\":40000," \
	"\"user\":\"alice\",\"identified_by\":\"request_header\","

#define NAMELESS \
	"\"namespace\":null,\"group\":null,\"resource\":null,\"subresource\":null,\"name\":null,\"monotonic_ns\":42"

static void passed(void **state)
{
	struct weir_trace_record r = record("GET /api/v1/namespaces/dev/pods?limit=5 HTTP/1.1");

	(void)state;
	assert_json(&r, BEGINNING "\"method\":\"GET\",\"target\":\"/api/v1/namespaces/dev/pods?limit=5\","
				  "\"verb\":\"get\",\"decision\":\"passed\",\"head\":100,\"body\":0," NAMELESS "}");
}

static void refused(void **state)
{
	struct weir_trace_record r = record("POST /x HTTP/1.1");

	(void)state;
	r.trace.decision = WEIR_SHED;
	r.trace.retry_s = 17;
	r.trace.n_refused = 2;
	r.trace.content_length = 12345678901234;
	r.trace.attributes.verb = WEIR_VERB_POST;
	assert_json(&r, BEGINNING "\"method\":\"POST\",\"target\":\"/x\",\"verb\":\"post\",\"decision\":\"shed\","
				  "\"head\":100,\"body\":12345678901234," NAMELESS ",\"retry_after\":17,"
				  "\"limits\":[\"total\",\"level/low\"],\"limit\":\"total\",\"status\":429}");
}

/* A server that answers by itself may have no other answer than 429. */
static void denied(void **state)
{
	struct weir_trace trace = { .decision = WEIR_SHED };

	(void)state;
	assert_int_equal(trace_status(&trace), 403);
	trace.too_many = 1;
	assert_int_equal(trace_status(&trace), 429);
	trace.decision = WEIR_DRY_RUN_SHED;
	assert_int_equal(trace_status(&trace), 0);
}

/* What a client chose cannot move a cursor, nor end a line. */
static void odd_bytes(void **state)
{
	struct weir_trace_record r = record("\r\n\r\nGET /\x1b[2J\xff\n\"\\ HTTP/1.1");

	(void)state;
	r.trace.flags = WEIR_REQUEST_CHUNKED;
	assert_json(&r, BEGINNING "\"method\":\"GET\",\"target\":\"/\\\\x1b[2J\\\\xff\\\\x0a\\\"\\\\\","
				  "\"verb\":\"get\",\"decision\":\"passed\",\"head\":100,\"body\":null," NAMELESS "}");
}

static void cut_lines(void **state)
{
	static const struct {
		const char *line;
		const char *method, *target;
	} cases[] = {
		{ "", "null", "null" },
		{ "\r", "null", "null" },
		{ "GE", "\"GE\"", "null" }, /* cannot be: more of it is kept */
		{ "GET /abc", "\"GET\"", "\"/abc...\"" },
		{ "GET /abc ", "\"GET\"", "\"/abc\"" },
		{ "GET /abc HT", "\"GET\"", "\"/abc\"" },
	};
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct weir_trace_record r = record(cases[i].line);

		r.trace.line_length = 600;
		snprintf(text, sizeof(text),
			 BEGINNING "\"method\":%s,\"target\":%s,\"verb\":\"get\",\"decision\":\"passed\","
				   "\"head\":100,\"body\":0," NAMELESS "}",
			 cases[i].method, cases[i].target);
		assert_json(&r, text);
	}
}

/* Reads a head to its end from segments that begin at these places; the last one is what the trace is of. */
static struct weir_trace read_head(const char *head, size_t split)
{
	struct weir_reading how = { .seed = { seed[0], seed[1] } };
	struct weir_attributes attributes;
	struct weir_request_reader reader = { .lost = WEIR_REASON_NONE, .next = 5000 };
	struct weir_segment segment = { .seq = 5000 + split, .len = strlen(head) - split };
	struct weir_trace trace = {};

	weir_reading_default(&how);
	weir_request_start(&reader.request);
	for (size_t i = 0; head[i]; i++) {
		if (split && i == split)
			reader.whole = 0; /* as at the beginning of a segment */
		if (weir_request_reader_feed(&reader, &how, &digest_keys, head[i]) == WEIR_FRAME_HEAD)
			break;
	}
	weir_attributes_of(&reader.request, &how, &attributes);
	weir_trace_request(&trace, &reader, &attributes, &segment);
	return trace;
}

static void what_is_kept(void **state)
{
	static const char head[] = "\r\nPUT /api/v1/namespaces/a/x HTTP/1.1\r\nContent-Length: 7\r\n\r\nbody...";
	struct weir_trace trace = read_head(head, 0);

	(void)state;
	assert_int_equal(trace.line_length, 2 + strlen("PUT /api/v1/namespaces/a/x HTTP/1.1"));
	assert_int_equal(trace.line_kept, trace.line_length);
	assert_int_equal(trace.start, 5000);
	assert_int_equal(trace.head_length, strlen(head) - 7);
	assert_int_equal(trace.content_length, 7);
	assert_int_equal(trace.method, WEIR_METHOD_PUT);
	assert_true(trace.attributes.namespace == subject_of(NULL, "a", 1));
	trace = read_head(head, 3);
	assert_int_equal(trace.line_kept, 0);
	assert_int_equal(trace.line_length, 2 + strlen("PUT /api/v1/namespaces/a/x HTTP/1.1"));
	assert_int_equal(trace.head_length, strlen(head) - 7);
}

/* What is printed of a head that comes whole. */
static void assert_names(const char *head, const char *names)
{
	struct weir_trace_record r = { .trace = read_head(head, 0) };
	CLEANUP_FREE char *printed = NULL;
	CLEANUP_JSON json_t *value = NULL;

	memcpy(r.line, head, r.trace.line_kept);
	r.trace.decision = WEIR_PASSED;
	value = trace_json(&r, &context);
	for (const char *const *key =
		     (const char *const[]){ "time", "server", "client", "port", "user", "identified_by", "monotonic_ns",
					    "method", "target", "decision", "head", "body", NULL };
	     *key; key++)
		assert_int_equal(json_object_del(value, *key), 0);
	printed = json_dumps(value, JSON_COMPACT);
	assert_string_equal(printed, names);
}

static void names(void **state)
{
#define END " HTTP/1.1\r\n\r\n"
	(void)state;
	assert_names("GET /api/v1/namespaces/dev/pods/a/log?follow=1" END,
		     "{\"verb\":\"get\",\"namespace\":\"dev\",\"group\":null,\"resource\":\"pods\","
		     "\"subresource\":\"log\",\"name\":\"a\",\"long_running\":true}");
	assert_names("DELETE /apis/a%70ps/v1/namespaces/%64%65v/deployments/w%0ab?dryRun=All" END,
		     "{\"verb\":\"delete\",\"namespace\":\"dev\",\"group\":\"apps\",\"resource\":\"deployments\","
		     "\"subresource\":null,\"name\":\"w\\\\x0ab\",\"dry_run\":true}");
	assert_names("GET /api/v1/nodes?fieldSelector=metadata.name%3Da%2Db" END,
		     "{\"verb\":\"list\",\"namespace\":null,\"group\":null,\"resource\":\"nodes\","
		     "\"subresource\":null,\"name\":\"a-b\"}");
	assert_names("Foo /x" END, "{\"verb\":\"foo\",\"namespace\":null,\"group\":null,\"resource\":null,"
				   "\"subresource\":null,\"name\":null}");
}

/* A name that is not in the line is known by its subject, but for the namespace, which `names` may have. */
static void names_elsewhere(void **state)
{
	struct weir_trace_record r = record("GET /a HTTP/1.1");

	(void)state;
	r.trace.attributes.verb = WEIR_VERB_WATCH;
	r.trace.attributes.namespace = 0xa;
	r.trace.attributes.resource = 0xb;
	r.trace.names[WEIR_TRACE_RESOURCE] = (struct weir_trace_span){ .offset = 5, .length = 1 };
	r.trace.attributes.name = 0xc;
	r.trace.names[WEIR_TRACE_OBJECT] = (struct weir_trace_span){ .offset = 14, .length = 2 };
	assert_json(
		&r, BEGINNING
		"\"method\":\"GET\",\"target\":\"/a\",\"verb\":\"watch\",\"decision\":\"passed\","
		"\"head\":100,\"body\":0,\"namespace\":\"dev\",\"group\":null,"
		"\"resource\":\"#000000000000000b\",\"subresource\":null,\"name\":\"#000000000000000c\",\"monotonic_ns\":42}");
}

/* In each interval so many are told of, and no more. */
static void sampled(void **state)
{
	struct weir_sample sample = { 0 };
	__u64 now_ns = 7 * WEIR_NS_PER_S;

	(void)state;
	for (int interval = 0; interval < 3; interval++) {
		for (int i = 0; i < WEIR_SAMPLE_REFUSALS; i++)
			assert_true(weir_sample_take(&sample, now_ns + i));
		for (int i = 0; i < 1000; i++)
			assert_false(weir_sample_take(&sample, now_ns + WEIR_SAMPLE_NS - 1));
		now_ns += WEIR_SAMPLE_NS;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passed),	cmocka_unit_test(sampled),   cmocka_unit_test(refused),
		cmocka_unit_test(denied),	cmocka_unit_test(odd_bytes), cmocka_unit_test(cut_lines),
		cmocka_unit_test(what_is_kept), cmocka_unit_test(names),     cmocka_unit_test(names_elsewhere),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
