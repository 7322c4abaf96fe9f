/* SPDX-License-Identifier: GPL-2.0 */
/* Requests that weir has seen inside an API server, and the entries of its audit log. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "join/join.h"

static struct join join;
static struct error err;

static int setup(void **state)
{
	(void)state;
	join = (struct join){ .window_ns = 2 * WEIR_NS_PER_S };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	join_clear(&join);
	return 0;
}

/* A request that was refused inside, at so many microseconds; `more` in place of members. */
static void request_with(size_t number, int us, const char *more)
{
	CLEANUP_JSON json_t *changes = json_loads(more, 0, NULL), *json = NULL;
	char time[64];

	snprintf(time, sizeof(time), "2026-11-20T13:14:%02d.%06dZ", us / 1000000, us % 1000000);
	json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:n, s:s, s:n, s:i}", "time", time, "client", "10.1.7.4",
			 "identified_by", "server", "user", "alice", "verb", "list", "target",
			 "/api/v1/namespaces/dev/pods?limit=5", "namespace", "dev", "group", "resource", "pods",
			 "subresource", "status", 429);
	assert_non_null(changes);
	json_object_update(json, changes);
	assert_int_equal(join_add(&join, json, number, &err), 0);
}

static void request(size_t number, int us)
{
	request_with(number, us, "{}");
}

/* A line of the log: of a request from then to then. */
static void audit_with(FILE *log, const char *id, int from_us, int to_us, const char *more)
{
	CLEANUP_JSON json_t *changes = json_loads(more, 0, NULL), *json = NULL;
	char from[64], to[64];

	snprintf(from, sizeof(from), "2026-11-20T13:14:%02d.%06dZ", from_us / 1000000, from_us % 1000000);
	snprintf(to, sizeof(to), "2026-11-20T13:14:%02d.%06dZ", to_us / 1000000, to_us % 1000000);
	json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s}, s:[s], s:{s:s, s:s, s:s}, s:{s:i}}", "kind",
			 "Event", "apiVersion", "audit.k8s.io/v1", "auditID", id, "stage", "ResponseComplete",
			 "requestReceivedTimestamp", from, "stageTimestamp", to, "verb", "list", "requestURI",
			 "/api/v1/namespaces/dev/pods?limit=5", "user", "username", "alice", "sourceIPs", "10.1.7.4",
			 "objectRef", "resource", "pods", "namespace", "dev", "apiVersion", "v1", "responseStatus",
			 "code", 429);
	assert_non_null(changes);
	json_object_update(json, changes);
	json_dumpf(json, log, JSON_COMPACT);
	fputc('\n', log);
}

static void audit(FILE *log, const char *id, int from_us, int to_us)
{
	audit_with(log, id, from_us, to_us, "{}");
}

static void match(FILE *log)
{
	rewind(log);
	assert_int_equal(join_read(&join, log, "audit.log", &err), 0);
	fclose(log);
	join_match(&join);
}

static const char *id_of(size_t number)
{
	return join_find(&join, number)->id ?: "-";
}

static void the_same_request(void **state)
{
	FILE *log = tmpfile();

	(void)state;
	request(7, 1000000);
	audit(log, "a", 999000, 1001000);
	match(log);
	assert_string_equal(id_of(7), "a");
	assert_int_equal(join_find(&join, 7)->fits, 1);
	assert_null(join_find(&join, 6));
}

/* Each of these is another one's. */
static void other_requests(void **state)
{
	static const char *const others[] = {
		"{\"user\":{\"username\":\"bob\"}}",
		"{\"user\":{\"username\":\"alic\"}}",
		"{\"impersonatedUser\":{\"username\":\"bob\"}}",
		"{\"verb\":\"get\"}",
		"{\"requestURI\":\"/api/v1/namespaces/dev/pods\"}",
		"{\"objectRef\":{\"resource\":\"pods\",\"namespace\":\"prod\"}}",
		"{\"objectRef\":{\"resource\":\"pods\"}}",
		"{\"objectRef\":{\"resource\":\"pods\",\"namespace\":\"dev\",\"apiGroup\":\"metrics.k8s.io\"}}",
		"{\"objectRef\":{\"resource\":\"pods\",\"namespace\":\"dev\",\"subresource\":\"log\"}}",
		"{\"sourceIPs\":[\"10.1.7.4\",\"10.9.9.9\"]}",
		"{\"responseStatus\":{\"code\":200}}",
	};
	FILE *log = tmpfile();

	(void)state;
	request(1, 1000000);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		char id[8];

		snprintf(id, sizeof(id), "%zu", i);
		audit_with(log, id, 999000, 1001000, others[i]);
	}
	match(log);
	assert_string_equal(id_of(1), "-");
	assert_int_equal(join_find(&join, 1)->fits, 0);
}

/* What weir does not know, has cut, or is only known when the body was read. */
static void less_is_known(void **state)
{
	FILE *log = tmpfile();

	(void)state;
	request_with(1, 1000000, "{\"user\":\"#0123456789abcdef\"}");
	audit_with(log, "unknown", 999999, 1001000, "{\"user\":{\"username\":\"x\"}}");
	request_with(2, 2000000, "{\"user\":\"al...\",\"target\":\"/api/v1/name...\"}");
	audit(log, "cut", 1999999, 2001000);
	request_with(3, 3000000, "{\"verb\":\"create\",\"namespace\":null,\"target\":null,\"status\":0}");
	audit_with(log, "create", 2999999, 3001000, "{\"verb\":\"create\"}");
	request_with(4, 4000000, "{\"identified_by\":\"anonymous\",\"user\":\"10.1.7.4\"}");
	audit_with(log, "nobody", 3999999, 4001000, "{\"user\":{\"username\":\"system:anonymous\"}}");
	request_with(5, 5000000, "{\"user\":\"root\"}");
	audit_with(log, "behind", 4999999, 5001000,
		   "{\"impersonatedUser\":{\"username\":\"root\"},\"sourceIPs\":[\"1.2.3.4\",\"10.1.7.4\"]}");
	match(log);
	assert_string_equal(id_of(1), "unknown");
	assert_string_equal(id_of(2), "cut");
	assert_string_equal(id_of(3), "create");
	assert_string_equal(id_of(4), "nobody");
	assert_string_equal(id_of(5), "behind");
}

/* What was refused on the wire never came to the server. */
static void not_seen_inside(void **state)
{
	FILE *log = tmpfile();

	(void)state;
	request_with(1, 1000000, "{\"identified_by\":\"request_header\"}");
	audit(log, "a", 999000, 1001000);
	match(log);
	assert_null(join_find(&join, 1));
}

/* One microsecond within each bound, at it, one beyond, and far away. */
static void times(void **state)
{
	static const struct {
		int from, to; /* of the entry, where the request was decided at 10 s */
		bool fits;
	} cases[] = {
		{ 8000001, 11000000, true },   { 8000000, 11000000, true },   { 7999999, 11000000, false },
		{ 1, 11000000, false },	       { 10004999, 11000000, true },  { 10005000, 11000000, true },
		{ 10005001, 11000000, false }, { 30000000, 31000000, false }, { 9000000, 9995001, true },
		{ 9000000, 9995000, true },    { 9000000, 9994999, false },   { 9000000, 9000001, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		FILE *log = tmpfile();

		setup(state);
		request(1, 10000000);
		audit(log, "a", cases[i].from, cases[i].to);
		match(log);
		assert_string_equal(id_of(1), cases[i].fits ? "a" : "-");
		teardown(state);
	}
}

/* Each entry is one request's. */
static void each_once(void **state)
{
	FILE *log = tmpfile();

	(void)state;
	request(3, 1030000);
	request(1, 1010000);
	request(2, 1020000);
	audit(log, "b", 1019000, 1050000);
	audit(log, "a", 1009000, 1015000);
	match(log);
	assert_string_equal(id_of(1), "a");
	assert_string_equal(id_of(2), "b");
	assert_string_equal(id_of(3), "-");
	assert_int_equal(join_find(&join, 1)->fits, 1);
	assert_int_equal(join_find(&join, 3)->fits, 1);
}

static void several_fit(void **state)
{
	FILE *log = tmpfile();

	(void)state;
	request(1, 1010000);
	request(2, 1011000);
	audit(log, "b", 1009000, 1050000);
	audit(log, "a", 1000000, 1049000);
	match(log);
	assert_string_equal(id_of(1), "a");
	assert_string_equal(id_of(2), "b");
	assert_int_equal(join_find(&join, 1)->fits, 2);
	assert_int_equal(join_find(&join, 2)->fits, 2);
}

/* Who takes what would fit others longer leaves them without. */
static void as_many_as_can_be(void **state)
{
	FILE *log = tmpfile();

	(void)state;
	request(1, 1010000);
	request(2, 1020000);
	request(3, 1040000);
	audit(log, "short", 1000000, 1012000);
	audit(log, "long", 1009000, 1050000);
	audit(log, "middle", 1009500, 1030000);
	match(log);
	assert_string_equal(id_of(1), "short");
	assert_string_equal(id_of(2), "middle");
	assert_string_equal(id_of(3), "long");
}

/* A watch has an entry when its answer begins and one when it ends: it is one request. */
static void stages(void **state)
{
	FILE *log = tmpfile();

	(void)state;
	request_with(1, 1010000, "{\"status\":0}");
	request_with(2, 3000000, "{\"status\":0}");
	audit_with(log, "a", 1000000, 1000001, "{\"stage\":\"RequestReceived\",\"responseStatus\":null}");
	audit(log, "a", 1000000, 1050000);
	audit_with(log, "b", 2000000, 2000001, "{\"stage\":\"ResponseStarted\"}");
	match(log);
	assert_int_equal(join.n_entries, 2);
	assert_string_equal(id_of(1), "a");
	assert_int_equal(join_find(&join, 1)->fits, 1);
	assert_string_equal(id_of(2), "b");
}

static void bad_lines(void **state)
{
	FILE *log = tmpfile();

	(void)state;
	request(1, 1000000);
	fputs("{\"kind\":\"Event\"\n\n[]\n{\"kind\":\"Event\",\"auditID\":\"x\"}\n{\"kind\":\"Pod\",\"auditID\":\"x\"}\n",
	      log);
	audit(log, "a", 999000, 1001000);
	fputs("{\"kind\":\"Ev", log);
	match(log);
	assert_string_equal(id_of(1), "a");
	assert_int_equal(join.bad_lines, 6);
}

static void no_audit_log(void **state)
{
	FILE *log = tmpfile();

	(void)state;
	fputs("2026-11-20 AUDIT: id=1\nx\n", log);
	rewind(log);
	assert_int_equal(join_read(&join, log, "it", &err), -EINVAL);
	assert_string_equal(err.text, "it is not an audit log of JSON lines: line 1: not JSON");
	fclose(log);
	log = tmpfile(); /* an empty one has nothing, and nothing wrong */
	join.bad_lines = 0;
	assert_int_equal(join_read(&join, log, "it", &err), 0);
	fclose(log);
}

/* As that of /dev/zero: it is not read for ever, and it is said what to do. */
static void a_line_that_never_ends(void **state)
{
	FILE *log = fopen("/dev/zero", "re");

	(void)state;
	assert_non_null(log);
	assert_int_equal(join_read(&join, log, "audit.log", &err), -EFBIG);
	assert_non_null(strstr(err.text, "audit.log:1: longer than 100 MiB"));
	assert_non_null(strstr(err.text, "jq -c 'del(.requestObject, .responseObject)'"));
	fclose(log);
}

/* Of a long log only what may have come with some request is kept. */
static void a_long_log(void **state)
{
	FILE *log = tmpfile();
	char id[16];

	(void)state;
	request(1, 30000000);
	for (int i = 0; i < 2990; i++) {
		snprintf(id, sizeof(id), "%05d", i);
		audit(log, id, i * 20000, i * 20000 + 1000);
	}
	match(log);
	assert_string_equal(id_of(1), "01500");
	assert_true(join.n_entries == 101);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_same_request, setup, teardown),
		cmocka_unit_test_setup_teardown(other_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(less_is_known, setup, teardown),
		cmocka_unit_test_setup_teardown(not_seen_inside, setup, teardown),
		cmocka_unit_test(times),
		cmocka_unit_test_setup_teardown(each_once, setup, teardown),
		cmocka_unit_test_setup_teardown(several_fit, setup, teardown),
		cmocka_unit_test_setup_teardown(as_many_as_can_be, setup, teardown),
		cmocka_unit_test_setup_teardown(stages, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_lines, setup, teardown),
		cmocka_unit_test_setup_teardown(no_audit_log, setup, teardown),
		cmocka_unit_test_setup_teardown(a_line_that_never_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(a_long_log, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
