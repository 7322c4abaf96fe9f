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

#include "weir/conn.h"

#include "cleanup.h"
#include "trace.h"

static const struct trace_context context = {
	.server = "web",
	.user = "alice",
	.namespace = "dev",
	.time = { .tv_sec = 1700000000, .tv_nsec = 123456789 },
};

static struct weir_trace_record record(const char *line)
{
	struct weir_trace_record r = {
		.trace = { .client = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
			   .client_port = htons(40000),
			   .user_kind = WEIR_NAME_USER,
			   .decision = WEIR_PASSED,
			   .head_length = 100,
			   .line_length = strlen(line),
			   .line_kept = strlen(line) },
	};

	memcpy(r.line, line, strlen(line));
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
	"\"user\":\"alice\",\"source\":\"request_header\","

static void passed(void **state)
{
	struct weir_trace_record r = record("GET /api/v1/namespaces/dev/pods?limit=5 HTTP/1.1");

	(void)state;
	assert_json(&r, BEGINNING "\"method\":\"GET\",\"target\":\"/api/v1/namespaces/dev/pods?limit=5\","
				  "\"namespace\":\"dev\",\"decision\":\"passed\",\"head\":100,\"body\":0}");
}

static void refused(void **state)
{
	struct weir_trace_record r = record("POST /x HTTP/1.1");

	(void)state;
	r.trace.decision = WEIR_SHED;
	r.trace.retry_s = 17;
	r.trace.refused = 1 << WEIR_LIMIT_USER | 1 << WEIR_LIMIT_TOTAL;
	r.trace.content_length = 12345678901234;
	assert_json(&r, BEGINNING "\"method\":\"POST\",\"target\":\"/x\",\"namespace\":\"dev\",\"decision\":\"shed\","
				  "\"head\":100,\"body\":12345678901234,\"retry_after\":17,"
				  "\"limits\":[\"total\",\"user\"]}");
}

/* What a client chose cannot move a cursor, nor end a line. */
static void odd_bytes(void **state)
{
	struct weir_trace_record r = record("\r\n\r\nGET /\x1b[2J\xff\n\"\\ HTTP/1.1");

	(void)state;
	r.trace.flags = WEIR_REQUEST_CHUNKED;
	assert_json(&r, BEGINNING "\"method\":\"GET\",\"target\":\"/\\\\x1b[2J\\\\xff\\\\x0a\\\"\\\\\","
				  "\"namespace\":\"dev\",\"decision\":\"passed\",\"head\":100,\"body\":null}");
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
			 BEGINNING "\"method\":%s,\"target\":%s,\"namespace\":\"dev\",\"decision\":\"passed\","
				   "\"head\":100,\"body\":0}",
			 cases[i].method, cases[i].target);
		assert_json(&r, text);
	}
}

/* Reads a head to its end from segments that begin at these places; the last one is what the trace is of. */
static struct weir_trace read_head(const char *head, size_t split)
{
	struct weir_reading how = { .seed = { 1, 2 } };
	struct weir_request_reader reader = { .lost = WEIR_REASON_COUNT, .next = 5000 };
	struct weir_segment segment = { .seq = 5000 + split, .len = strlen(head) - split };
	struct weir_trace trace = {};

	weir_reading_default(&how);
	weir_request_start(&reader.request);
	for (size_t i = 0; head[i]; i++) {
		if (split && i == split)
			reader.whole = 0; /* as at the beginning of a segment */
		if (weir_request_reader_feed(&reader, &how, head[i]) == WEIR_FRAME_HEAD)
			break;
	}
	weir_trace_request(&trace, &reader, &segment);
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
	assert_true(trace.namespace != 0);
	trace = read_head(head, 3);
	assert_int_equal(trace.line_kept, 0);
	assert_int_equal(trace.line_length, 2 + strlen("PUT /api/v1/namespaces/a/x HTTP/1.1"));
	assert_int_equal(trace.head_length, strlen(head) - 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passed),    cmocka_unit_test(refused),	     cmocka_unit_test(odd_bytes),
		cmocka_unit_test(cut_lines), cmocka_unit_test(what_is_kept),
	};

	return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
