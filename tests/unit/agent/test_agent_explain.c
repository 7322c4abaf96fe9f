/* SPDX-License-Identifier: GPL-2.0 */
/* `explain` over a kernel side in memory: what is asked of the kernel, and how its answer is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "commands/commands.h"
#include "weir/http/identity.h"

#include "agent_fixture.h"
#include "base/cleanup.h"
#include "fake_datapath.h"
#include "show/explain_request.h"

#define GET "{\"server\":\"api\",\"request\":{\"method\":\"GET\",\"path\":\"/\"}}"

/* Refused by the user's limit, of which half a token is left; what is behind it is of a deleted limit. */
static struct weir_explained refusal(void)
{
	return (struct weir_explained){
		.trace = { .decision = WEIR_SHED, .retry_s = 3, .by = WEIR_IDENTIFIED_BY_NOBODY, .user = 7 },
		.lost = WEIR_REASON_NONE,
		.whole = 1,
		.event_key = WEIR_REASON_NONE,
		.n_limits = 2,
		.limits = { { .slot = WEIR_BUILTIN_USER,
			      .subject = 5,
			      .flags = WEIR_EXPLAINED_ASKED | WEIR_EXPLAINED_REFUSED,
			      .wait_ns = 2500000000,
			      .per_ns = WEIR_QPS / 5,
			      .burst = 4,
			      .tokens = { .low = 1ULL << 63 } },
			    { .slot = WEIR_BUILTIN_TOTAL } },
	};
}

static json_t *first_limit(json_t *result)
{
	return json_array_get(json_object_get(result, "limits"), 0);
}

/* What is explained is a request that can be read: where none can be, that is said. */
static void all_is_tls(void **state)
{
	struct fixture *f = *state;
	const char *text;

	succeed(f, "attach", ATTACH);
	fake_nets[1].explained = refusal();
	CLEANUP_JSON json_t *before = run(f, "explain", GET);
	assert_null(json_object_get(before, "warnings"));
	fake_nets[1].counters[0][WEIR_TLS] = 3;
	CLEANUP_JSON json_t *result = run(f, "explain", GET);
	text = json_string_value(json_array_get(json_object_get(result, "warnings"), 0));
	assert_non_null(text);
	assert_non_null(strstr(text, "3 connections use TLS: limits for users"));
	fake_nets[1].counters[0][WEIR_TLS] = 1;
	CLEANUP_JSON json_t *one = run(f, "explain", GET);
	text = json_string_value(json_array_get(json_object_get(one, "warnings"), 0));
	assert_non_null(strstr(text, "1 connection uses TLS: limits for users"));
}

static void a_refusal(void **state)
{
	struct fixture *f = *state;
	json_t *limit;

	succeed(f, "attach", ATTACH);
	fake_nets[1].explained = refusal();
	CLEANUP_JSON json_t *result = run(f, "explain", GET);
	assert_string_equal(json_string_value(json_object_get(result, "decision")), "shed");
	assert_int_equal(json_integer_value(json_object_get(result, "retry_after")), 3);
	assert_string_equal(json_string_value(json_object_get(json_object_get(result, "request"), "user")),
			    "127.0.0.1");
	limit = first_limit(result);
	assert_string_equal(json_string_value(json_object_get(limit, "limit")), "user");
	assert_string_equal(json_string_value(json_object_get(limit, "subject")), "mal\\x1bory");
	assert_string_equal(json_string_value(json_object_get(limit, "says")), "refuses");
	assert_true(json_real_value(json_object_get(limit, "tokens")) == 0.5);
	assert_true(json_real_value(json_object_get(limit, "wait")) == 2.5);
	assert_true(json_real_value(json_object_get(limit, "qps")) == 0.2);
	limit = json_array_get(json_object_get(result, "limits"), 1);
	assert_string_equal(json_string_value(json_object_get(limit, "says")), "nothing");
	assert_null(json_object_get(limit, "tokens"));
}

static void a_bucket_below_zero(void **state)
{
	struct fixture *f = *state;
	double tokens;

	succeed(f, "attach", ATTACH);
	fake_nets[1].explained = refusal();
	fake_nets[1].explained.limits[0].tokens = weir_tokens_whole(-3);
	fake_nets[1].explained.limits[0].wait_ns = WEIR_NEVER_NS;
	CLEANUP_JSON json_t *result = run(f, "explain", GET);
	tokens = json_real_value(json_object_get(first_limit(result), "tokens"));
	assert_true(tokens > -3.001 && tokens < -2.999);
	assert_true(json_is_null(json_object_get(first_limit(result), "wait")));
}

static void a_penalty(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	fake_nets[1].explained = refusal();
	fake_nets[1].explained.limits[0].flags |= WEIR_EXPLAINED_PENALISED;
	fake_nets[1].explained.limits[0].penalty_ns = 4000000000;
	fake_nets[1].explained.limits[1].flags = WEIR_EXPLAINED_ASKED;
	CLEANUP_JSON json_t *result = run(f, "explain", GET);
	assert_string_equal(json_string_value(json_object_get(first_limit(result), "says")), "penalised");
	assert_true(json_real_value(json_object_get(first_limit(result), "wait")) == 4);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(json_object_get(result, "limits"), 1), "says")),
		"not_asked");
}

static void how_wide(void **state)
{
	struct fixture *f = *state;
	json_t *list;

	succeed(f, "attach", ATTACH);
	fake_nets[1].explained = refusal();
	CLEANUP_JSON json_t *none = run(f, "explain", GET);
	assert_null(json_object_get(none, "list"));
	fake_nets[1].explained.width =
		(struct weir_width_said){ .bytes = 450000, .seats = 5, .why = WEIR_WIDTH_LEARNED };
	CLEANUP_JSON json_t *result = run(f, "explain", GET);
	list = json_object_get(result, "list");
	assert_int_equal(json_integer_value(json_object_get(list, "seats")), 5);
	assert_int_equal(json_integer_value(json_object_get(list, "bytes")), 450000);
	assert_string_equal(json_string_value(json_object_get(list, "why")), "learned");
}

#define REQUEST(members) "{\"request\":{\"method\":\"GET\",\"path\":\"/\"" members "}}"

static void refused(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	refuse(f, "explain", "{}", "request");
	refuse(f, "explain", "{\"request\":{\"path\":\"/\"}}", "method");
	refuse(f, "explain", "{\"request\":{\"method\":\"G\\r\\nX:\",\"path\":\"/\"}}", "is not a method");
	refuse(f, "explain", "{\"request\":{\"method\":\"GET\",\"path\":\"/ HTTP/1.1\"}}", "is not a path");
	refuse(f, "explain", "{\"request\":{\"method\":\"GET\",\"path\":\"\"}}", "is not a path");
	refuse(f, "explain", REQUEST(",\"groups\":[\"a\"]"), "groups need a user");
	refuse(f, "explain", REQUEST(",\"groups\":\"a\""), "list");
	refuse(f, "explain", REQUEST(",\"user\":\"a\\nb\""), "control");
	refuse(f, "explain", REQUEST(",\"headers\":[\"X\"]"), "NAME: VALUE");
	refuse(f, "explain", REQUEST(",\"headers\":[\"X: a\\nY: b\"]"), "control");
	refuse(f, "explain", REQUEST(",\"headers\":[1]"), "texts");
	refuse(f, "explain", REQUEST(",\"source\":\"10.0.0.0/8\""), "network");
	refuse(f, "explain", REQUEST(",\"more\":1"), "more");
	refuse(f, "explain", "{\"server\":\"b\",\"request\":{\"method\":\"GET\",\"path\":\"/\"}}", "\"b\"");
	fake_nets[1].explained = (struct weir_explained){ .lost = WEIR_LENGTH_CONFLICT };
	refuse(f, "explain", GET,
	       "this is not a request that weir can read (length_conflict). Two Content-Length headers differ, or");
	fake_nets[1].explained = (struct weir_explained){ .lost = WEIR_REASON_NONE };
	refuse(f, "explain", GET, "complete");
}

static void bytes(void **state)
{
	static const struct identity_settings identity = { .user_header = "x-user", .group_header = "x-group" };
	CLEANUP_JSON json_t *json = json_pack("{s:s, s:s, s:s, s:[s,s], s:[s], s:s}", "method", "POST", "path", "/a?b",
					      "user", "alice", "groups", "dev", "ops", "headers", "X-A: 1", "body",
					      "{}");
	CLEANUP_FREE char *text = NULL;
	struct explain_request request;
	struct error err;
	size_t length;

	(void)state;
	assert_int_equal(explain_request_from_json(json, &request, &err), 0);
	text = explain_request_bytes(&request, &identity, &length);
	assert_string_equal(text, "POST /a?b HTTP/1.1\r\nhost: server\r\nx-user: alice\r\nx-group: dev\r\n"
				  "x-group: ops\r\nX-A: 1\r\ncontent-length: 2\r\n\r\n{}");
	assert_int_equal(length, strlen(text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(all_is_tls), with_agent(a_refusal), with_agent(a_bucket_below_zero), with_agent(a_penalty),
		with_agent(how_wide),	with_agent(refused),   cmocka_unit_test(bytes),
	};

	return cmocka_run_group_tests_name("agent_explain", tests, NULL, NULL);
}
