/* SPDX-License-Identifier: GPL-2.0 */
/* Who traces what: the agent between the ring and its readers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../control/line_client.h"
#include "agent/trace.h"
#include "agent_fixture.h"
#include "base/cleanup.h"
#include "commands/commands.h"
#include "daemon/request.h"
#include "fake_datapath.h"

#define DECISIONS "passed, shed, exempt, dry_run_shed, rejected, dry_run_rejected"

static struct control *control;
static struct line_client first, second;

static int set_up_readers(void **state)
{
	struct fixture *f;

	set_up(state);
	f = *state;
	assert_int_equal(control_open(&control, f->agent.base, f->state_dir, &f->agent.access, agent_request, &f->agent,
				      NULL),
			 0);
	line_client_open(&first, f->agent.base, f->state_dir);
	line_client_open(&second, f->agent.base, f->state_dir);
	succeed(f, "attach", "{\"server\":{\"name\":\"api\",\"listen\":[\"*:80\"]}}");
	return 0;
}

static int tear_down_readers(void **state)
{
	line_client_close(&first);
	line_client_close(&second);
	control_close(control);
	return tear_down(state);
}

static void trace(struct line_client *c, const char *arguments, const char *result)
{
	char text[256];

	snprintf(text, sizeof(text), "{\"command\":\"trace\",\"arguments\":%s}\n", arguments);
	line_client_send(c, text);
	line_client_expect(c, result);
}

/* The programs have written a record. */
static void decided(struct fixture *f, __u32 slot, enum weir_reason decision, const char *line)
{
	struct datapath *dp = &fake_nets[1];
	struct weir_trace_record *record = &dp->records[dp->n_records++];

	*record = (struct weir_trace_record){
		.trace = { .time_ns = UINT64_MAX / 2,
			   .server = slot,
			   .decision = decision,
			   .user = 5,
			   .line_length = strlen(line),
			   .line_kept = strlen(line) },
	};
	memcpy(record->line, line, strlen(line));
	trace_read(f->agent.nets);
	trace_flush(&f->agent);
	line_client_run(&first);
	line_client_run(&second);
}

/* The next line is of the request with this target. */
static void expect_target(struct line_client *c, const char *target)
{
	CLEANUP_FREE char *line = line_client_line(c);
	CLEANUP_JSON json_t *value = line ? json_loads(line, 0, NULL) : NULL;
	json_t *request = json_object_get(value, "request");

	assert_non_null(request);
	assert_string_equal(json_string_value(json_object_get(request, "target")), target);
	assert_string_equal(json_string_value(json_object_get(request, "user")), "mal\\x1bory");
}

static void two_readers(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", "{\"server\":{\"name\":\"two\",\"listen\":[\"*:81\"]}}");
	trace(&first, "{}", "{\"result\":{\"servers\":[\"api\",\"two\"]}}");
	trace(&second, "{\"name\":\"two\",\"decisions\":[\"shed\",\"exempt\"]}",
	      "{\"result\":{\"servers\":[\"two\"]}}");
	decided(f, 0, WEIR_PASSED, "GET /a HTTP/1.1");
	decided(f, 1, WEIR_PASSED, "GET /b HTTP/1.1");
	decided(f, 1, WEIR_SHED, "GET /c HTTP/1.1");
	decided(f, 0, WEIR_SHED, "GET /d HTTP/1.1");
	decided(f, 1, WEIR_EXEMPT, "GET /e HTTP/1.1");
	for (const char *target = "/a\0/b\0/c\0/d\0/e\0"; *target; target += 3)
		expect_target(&first, target);
	expect_target(&second, "/c");
	expect_target(&second, "/e");
	line_client_expect_silence(&first);
	line_client_expect_silence(&second);
}

/* The kernel writes records while there is a reader, for a time that is set anew each second. */
static void kernel_is_asked(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];
	__u64 until_ns;

	assert_true(dp->servers[0].trace_until_ns == 0);
	trace(&first, "{\"name\":\"api\"}", "{\"result\":{\"servers\":[\"api\"]}}");
	trace(&second, "{}", "{\"result\":{\"servers\":[\"api\"]}}");
	until_ns = dp->servers[0].trace_until_ns;
	assert_true(until_ns > 0);
	usleep(1000);
	trace_refresh(&f->agent);
	assert_true(dp->servers[0].trace_until_ns > until_ns);

	succeed(f, "attach", "{\"server\":{\"name\":\"two\",\"listen\":[\"*:81\"]}}");
	assert_true(dp->servers[1].trace_until_ns > 0);
	shutdown(second.fd, SHUT_WR);
	line_client_run(&second);
	line_client_expect(&second, "{\"end\":{\"lost\":0}}");
	line_client_expect_end(&second);
	assert_true(dp->servers[0].trace_until_ns > 0);
	assert_true(dp->servers[1].trace_until_ns == 0);
	shutdown(first.fd, SHUT_RDWR); /* without a word */
	line_client_run(&first);
	assert_true(dp->servers[0].trace_until_ns == 0);
	until_ns = dp->writes;
	trace_refresh(&f->agent);
	assert_true(dp->writes == until_ns);
}

/* What stands in the ring already is not for who comes now; what stands in it at the end is. */
static void from_when_to_when(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];

	trace(&first, "{}", "{\"result\":{\"servers\":[\"api\"]}}");
	dp->records[dp->n_records++].trace.time_ns = 1;
	trace_read(f->agent.nets);
	line_client_expect_silence(&first);

	decided(f, 0, WEIR_PASSED, "GET /a HTTP/1.1");
	expect_target(&first, "/a");
	dp->n_records = 1;
	shutdown(first.fd, SHUT_WR);
	line_client_run(&first);
	expect_target(&first, "/a");
	line_client_expect(&first, "{\"end\":{\"lost\":0}}");
	line_client_expect_end(&first);
}

static void lost(void **state)
{
	struct fixture *f = *state;
	__u64 *counter = &fake_nets[1].counters[0][WEIR_TRACE_LOST];

	*counter = 7; /* before */
	trace(&first, "{}", "{\"result\":{\"servers\":[\"api\"]}}");
	trace_refresh(&f->agent);
	line_client_expect_silence(&first);
	*counter += 3;
	trace_refresh(&f->agent);
	trace_refresh(&f->agent);
	line_client_run(&first);
	line_client_expect(&first, "{\"lost\":3}");
	line_client_expect_silence(&first);
	*counter += 2;
	shutdown(first.fd, SHUT_WR);
	line_client_run(&first);
	line_client_expect(&first, "{\"end\":{\"lost\":2}}");
	line_client_expect_end(&first);
}

static void server_ends(void **state)
{
	struct fixture *f = *state;

	trace(&first, "{\"name\":\"api\"}", "{\"result\":{\"servers\":[\"api\"]}}");
	trace(&second, "{}", "{\"result\":{\"servers\":[\"api\"]}}");
	succeed(f, "detach", "{\"name\":\"api\"}");
	line_client_run(&first);
	line_client_expect(&first, "{\"error\":\"server \\\"api\\\" is no longer attached\"}");
	line_client_expect_end(&first);
	line_client_expect_silence(&second);
	/* The next one is followed again. */
	succeed(f, "attach", "{\"server\":{\"name\":\"new\",\"listen\":[\"*:80\"]}}");
	decided(f, 0, WEIR_PASSED, "GET /n HTTP/1.1");
	expect_target(&second, "/n");
}

static void refused(void **state)
{
	trace(&first, "{\"name\":\"other\"}", "{\"error\":\"there is no server \\\"other\\\", only api\"}");
	trace(&first, "{\"decisions\":[\"passed\",\"tls\"]}",
	      "{\"error\":\"there is no decision \\\"tls\\\": " DECISIONS "\"}");
	trace(&first, "{\"decisions\":[5]}", "{\"error\":\"there is no decision \\\"\\\": " DECISIONS "\"}");
	(void)state;
}

static void too_many(void **state)
{
	struct fixture *f = *state;
	struct line_client readers[16];

	for (int i = 0; i < 16; i++) {
		line_client_open(&readers[i], f->agent.base, f->state_dir);
		trace(&readers[i], "{}", "{\"result\":{\"servers\":[\"api\"]}}");
	}
	trace(&first, "{}", "{\"error\":\"16 traces are running already\"}");
	for (int i = 0; i < 16; i++)
		line_client_close(&readers[i]);
	line_client_run(&first);
	trace(&first, "{}", "{\"result\":{\"servers\":[\"api\"]}}");
}

int main(void)
{
#define read(test) cmocka_unit_test_setup_teardown(test, set_up_readers, tear_down_readers)
	const struct CMUnitTest tests[] = {
		read(two_readers), read(kernel_is_asked), read(from_when_to_when), read(lost),
		read(server_ends), read(refused),	  read(too_many),
	};

	return cmocka_run_group_tests_name("agent_trace", tests, NULL, NULL);
}
