/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "metrics/top.h"
#include "weir/base/duration.h"

static char *text_of(const struct metrics_server *servers, size_t n)
{
	const struct metrics_snapshot snapshot = {
		.servers = servers,
		.n_servers = n,
		.n_counted = n,
		.version = "1.2\\3\"\n",
		.start_time_s = 1700000000.25,
		.control_requests = 7,
		.control_errors = 2,
		.control_refused = { 1, 2, 3 },
	};
	CLEANUP_JSON json_t *families = metrics_families(&snapshot);
	char *text = metrics_text(families);

	assert_non_null(text);
	return text;
}

static void assert_line(const char *text, const char *line)
{
	const char *at = text;
	size_t length = strlen(line);

	while ((at = strstr(at, line))) {
		if ((at == text || at[-1] == '\n') && at[length] == '\n')
			return;
		at++;
	}
	print_error("no line \"%s\" in:\n%s", line, text);
	fail();
}

static size_t count_lines(const char *text, const char *start)
{
	size_t n = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL)
		n += strncmp(line, start, strlen(start)) == 0;
	return n;
}

static void the_agents_own(void **state)
{
	CLEANUP_FREE char *text = text_of(NULL, 0);

	(void)state;
	assert_line(text, "weir_build_info{version=\"1.2\\\\3\\\"\\n\"} 1");
	assert_line(text, "weir_control_refused_total{reason=\"not_allowed\"} 1");
	assert_line(text, "weir_control_refused_total{reason=\"read_only\"} 2");
	assert_line(text, "weir_control_refused_total{reason=\"too_many\"} 3");
	assert_line(text, "weir_agent_start_time_seconds 1700000000.250");
	assert_line(text, "weir_control_requests_total 7");
	assert_line(text, "weir_control_errors_total 2");
	assert_line(text, "# TYPE weir_requests_total counter");
	assert_int_equal(count_lines(text, "weir_requests_total"), 0);
}

/* Every counter of reason.h is a series of its own, also while it is zero. */
static void all_series(void **state)
{
	static const struct {
		const char *group;
		const char *format;
	} series[] = {
		{ "DECISION", "weir_requests_total{server=\"api\",decision=\"%s\"} %u" },
		{ "SHED", "weir_shed_total{server=\"api\",key=\"%s\",reason=\"rate\"} %u" },
		{ "SEATS", "weir_shed_total{server=\"api\",key=\"%s\",reason=\"in_flight\"} %u" },
		{ "PENALTY", "weir_shed_total{server=\"api\",key=\"%s\",reason=\"penalty\"} %u" },
		{ "DENIED", "weir_shed_total{server=\"api\",key=\"%s\",reason=\"denied\"} %u" },
		{ "EVENT", "weir_events_total{server=\"api\",key=\"%s\"} %u" },
		{ "UNREAD", "weir_unread_total{server=\"api\",reason=\"%s\"} %u" },
		{ "UNANSWERED", "weir_unanswered_total{server=\"api\",reason=\"%s\"} %u" },
		{ "IDENTIFIED", "weir_identified_total{server=\"api\",by=\"%s\"} %u" },
		{ "IDENTITY", "weir_identity_notes_total{server=\"api\",note=\"%s\"} %u" },
		{ "RECORD", "weir_records_total{server=\"api\",decision=\"%s\"} %u" },
		{ "TIME", "weir_held_seconds_total{server=\"api\"} 0.000" },
		{ "HELD_FOR", "# TYPE weir_hold_duration_seconds histogram" },
		{ "ANSWERED_AFTER", "# TYPE weir_answer_duration_seconds histogram" },
		{ "PACKET", "weir_packets_total{server=\"api\",action=\"%s\"} %u" },
		{ "CONN", "weir_connections_%s_total{server=\"api\"} %u" },
		{ "TRACE", "weir_%s_total{server=\"api\"} %u" },
		{ "ADMISSION", "weir_connection_attempts_total{server=\"api\",outcome=\"%s\"} %u" },
		{ "INSIDE", "weir_inside_requests_total{server=\"api\",outcome=\"%s\"} %u" },
	};
	static const char *const groups[] = {
#define X(name, label, group) #group,
		WEIR_REASONS(X)
#undef X
	};
	struct metrics_server servers[] = { { .name = "api" }, { .name = "zero" } };
	CLEANUP_FREE char *text = NULL;
	char line[256];

	(void)state;
	for (unsigned int reason = 0; reason < WEIR_REASON_COUNT; reason++)
		servers[0].counters[reason] = 1000 + reason;
	text = text_of(servers, 2);
	for (unsigned int reason = 0; reason < WEIR_REASON_COUNT; reason++) {
		const char *group = groups[reason];
		size_t i = 0;

		if (reason == WEIR_SHED_IN_FLIGHT || reason == WEIR_SHED_LEVEL)
			group = "SEATS";
		if (reason == WEIR_SHED_PENALTY)
			group = "PENALTY";
		if (reason == WEIR_SHED_DENIED)
			group = "DENIED";
		while (strcmp(series[i].group, group) != 0)
			assert_true(++i < sizeof(series) / sizeof(*series));
		snprintf(line, sizeof(line), series[i].format, metrics_reasons[reason].label, 1000 + reason);
		assert_line(text, line);
	}
	assert_int_equal(count_lines(text, "weir_requests_total{server=\"api\""), 6);
	assert_int_equal(count_lines(text, "weir_requests_total{server=\"zero\""), 6);
	assert_line(text, "weir_requests_total{server=\"zero\",decision=\"shed\"} 0");
}

static void by_limit(void **state)
{
	const struct metrics_limit limits[] = {
		{ .name = "user",
		  .configured = true,
		  .dry_run = true,
		  .qps = 2.5,
		  .burst = 7,
		  .counts = { .admitted = 5, .refused = 4, .dry_run_refused = 3 } },
		{ .name = "level/low", .in_flight = true, .counts = { .admitted = 9, .highest = 7 }, .taken = 2 },
	};
	const struct metrics_server server = { .name = "api", .limits = limits, .n_limits = 2 };
	CLEANUP_FREE char *text = text_of(&server, 1);

	(void)state;
	assert_line(text, "weir_limit_requests_total{server=\"api\",limit=\"user\",outcome=\"admitted\"} 5");
	assert_line(text, "weir_limit_requests_total{server=\"api\",limit=\"user\",outcome=\"refused\"} 4");
	assert_line(text, "weir_limit_requests_total{server=\"api\",limit=\"user\",outcome=\"dry_run_refused\"} 3");
	assert_line(text, "weir_limit_requests_total{server=\"api\",limit=\"level/low\",outcome=\"refused\"} 0");
	assert_line(text, "weir_limit_in_flight{server=\"api\",limit=\"level/low\"} 2");
	assert_line(text, "weir_limit_in_flight_highest{server=\"api\",limit=\"level/low\"} 7");
	assert_int_equal(count_lines(text, "weir_limit_in_flight{"), 1);
	assert_line(text, "weir_limit_qps{server=\"api\",limit=\"user\"} 2.500");
	assert_line(text, "weir_limit_burst{server=\"api\",limit=\"user\"} 7");
	assert_line(text, "weir_limit_dry_run{server=\"api\",limit=\"user\"} 1");
	assert_line(text, "weir_limit_dry_run{server=\"api\",limit=\"level/low\"} 0");
	assert_int_equal(count_lines(text, "weir_limit_burst{"), 1);
	assert_int_equal(count_lines(text, "weir_limit_in_flight_max{"), 0);
}

static void gauges(void **state)
{
	struct metrics_server server = {
		.name = "api", .mode = "paused", .paced = true, .conns = 9, .conns_max = 1000
	};
	CLEANUP_FREE char *text = NULL;

	(void)state;
	server.counters[WEIR_CONN_OPENED] = 12;
	server.counters[WEIR_CONN_CLOSED] = 5;
	server.counters[WEIR_SPLICE_OPENED] = 2;
	server.counters[WEIR_HELD_NS] = 2500000000;
	server.counters[WEIR_SPLICE_CLOSED] = 3; /* read after the other: not below zero */
	text = text_of(&server, 1);
	assert_line(text, "weir_connections{server=\"api\"} 7");
	assert_line(text, "weir_translated_connections{server=\"api\"} 0");
	assert_line(text, "weir_held_seconds_total{server=\"api\"} 2.500");
	assert_line(text, "weir_hold_paced{server=\"api\"} 1");
	assert_line(text, "weir_server_mode{server=\"api\",mode=\"paused\"} 1");
	assert_line(text, "weir_server_mode{server=\"api\",mode=\"limiting\"} 0");
	assert_line(text, "weir_connection_table_entries{server=\"api\"} 9");
	assert_line(text, "weir_connection_table_max{server=\"api\"} 1000");
	assert_true(metrics_connections(server.counters) == 7);
	assert_true(metrics_translated(server.counters) == 0);
}

/* Each bucket has what took as long as its bound, or less. */
static void durations(void **state)
{
	static const __u64 took_ms[] = { 0, 1, 5, 6, 10000, 10001, 1000000 };
	struct metrics_server server = { .name = "api" };
	CLEANUP_FREE char *text = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(took_ms) / sizeof(*took_ms); i++)
		server.counters[WEIR_ANSWER_1MS + weir_duration_bucket(took_ms[i] * WEIR_NS_PER_MS)]++;
	assert_int_equal(weir_duration_bucket(WEIR_NS_PER_MS + 1), 1);
	assert_int_equal(weir_duration_bucket(~0ULL), WEIR_ANSWER_LONGER - WEIR_ANSWER_1MS);
	assert_int_equal(WEIR_HELD_LONGER - WEIR_HELD_1MS, WEIR_DURATION_BUCKETS - 1);
	server.counters[WEIR_ANSWER_NS] = 1500000001;
	text = text_of(&server, 1);
	assert_line(text, "weir_answer_duration_seconds_bucket{server=\"api\",le=\"0.001\"} 2");
	assert_line(text, "weir_answer_duration_seconds_bucket{server=\"api\",le=\"0.005\"} 3");
	assert_line(text, "weir_answer_duration_seconds_bucket{server=\"api\",le=\"2.5\"} 4");
	assert_line(text, "weir_answer_duration_seconds_bucket{server=\"api\",le=\"10\"} 5");
	assert_line(text, "weir_answer_duration_seconds_bucket{server=\"api\",le=\"+Inf\"} 7");
	assert_line(text, "weir_answer_duration_seconds_count{server=\"api\"} 7");
	assert_line(text, "weir_answer_duration_seconds_sum{server=\"api\"} 1.500000001");
	assert_line(text, "weir_hold_duration_seconds_count{server=\"api\"} 0");
}

static void add_user(struct metrics_top *top, const char *user, int requests)
{
	CLEANUP_JSON json_t *rows = json_pack("[{s:s, s:s, s:s, s:i, s:i}, {s:s, s:s, s:s, s:i}]", "server", "api",
					      "by", "user", "user", user, "requests", requests, "refused", 1, "server",
					      "api", "by", "verb", "verb", "get", "requests", 99);

	metrics_top_add(top, rows);
}

/* Who comes again keeps his place and his sum; of those who do not, the one who was there longest ago goes. */
static void top_users(void **state)
{
	struct metrics_top top = { .places = 2 };
	CLEANUP_JSON json_t *families = json_array();
	CLEANUP_FREE char *text = NULL;

	(void)state;
	add_user(&top, "ann", 5);
	add_user(&top, "bob", 7);
	add_user(&top, "ann", 3);
	add_user(&top, "cat", 1);
	metrics_top_families(&top, families);
	text = metrics_text(families);
	assert_line(text, "weir_top_requests_total{server=\"api\",user=\"ann\"} 8");
	assert_line(text, "weir_top_refused_total{server=\"api\",user=\"ann\"} 2");
	assert_line(text, "weir_top_requests_total{server=\"api\",user=\"cat\"} 1");
	assert_int_equal(count_lines(text, "weir_top_requests_total{"), 2);
	metrics_top_forget(&top, "api");
	assert_int_equal(json_object_size(top.servers), 0);
	metrics_top_clear(&top);
	add_user(&top, "ann", 5); /* without places nothing is kept */
	assert_null(top.servers);
}

/* Behind a family's name come its labels or its value; in a histogram's, one of its parts. */
static bool ends_family(const char *rest)
{
	static const char *const parts[] = { "_bucket{", "_sum{", "_count{" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (strncmp(rest, parts[i], strlen(parts[i])) == 0)
			return true;
	return *rest == '{' || *rest == ' ';
}

/* Each family is announced once, before its samples, which stand together. */
static void families_are_whole(void **state)
{
	struct metrics_server servers[] = { { .name = "a" }, { .name = "b" } };
	CLEANUP_FREE char *text = text_of(servers, 2);
	char family[128] = "", start[160];
	size_t n_help = 0;
	char *rest = text, *line;

	(void)state;
	while ((line = strsep(&rest, "\n")) && *line) {
		if (sscanf(line, "# HELP %127s ", family) == 1) {
			n_help++;
			assert_true(strlen(line) > strlen("# HELP  ") + strlen(family));
			continue;
		}
		snprintf(start, sizeof(start), "# TYPE %s ", family);
		if (strncmp(line, start, strlen(start)) == 0)
			continue;
		assert_memory_equal(line, family, strlen(family));
		assert_true(ends_family(line + strlen(family)));
	}
	assert_int_equal(n_help, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_agents_own), cmocka_unit_test(all_series),		cmocka_unit_test(gauges),
		cmocka_unit_test(by_limit),	  cmocka_unit_test(families_are_whole), cmocka_unit_test(durations),
		cmocka_unit_test(top_users),
	};

	return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
