/* SPDX-License-Identifier: GPL-2.0 */
/* What the agent writes down of what the kernel has counted, over its restarts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "agent/inside_private.h"
#include "agent_fixture.h"
#include "audit/file.h"
#include "base/cleanup.h"
#include "commands/commands.h"
#include "commands/history.h"
#include "fake_datapath.h"
#include "history/files.h"

static struct datapath *const dp = &fake_nets[1];

static void history_path(const struct fixture *f, char path[static 64])
{
	snprintf(path, 64, "%s/" HISTORY_DIR, f->state_dir);
}

static int end_history(void **state)
{
	char path[64];

	history_path(*state, path);
	rmdir(path);
	history_remove(path);
	return tear_down(state);
}

#define with_history(test) cmocka_unit_test_setup_teardown(test, set_up, end_history)

/* A row of this verb: its name needs no kernel. */
static void count(unsigned int verb, __u64 first_ns, __u64 requests)
{
	dp->heavy[verb] = (struct weir_heavy_row){
		.what = { .by = WEIR_HEAVY_VERB, .verb = verb },
		.first_ns = first_ns,
		.counts = { .requests = requests },
	};
	if (dp->n_heavy <= verb)
		dp->n_heavy = verb + 1;
}

static void attach(struct fixture *f)
{
	succeed(f, "attach", ATTACH);
	history_begin(&f->agent);
}

/* "REQUESTS REQUESTS ": those of the rows of this kind. */
static const char *rows_by(struct fixture *f, const char *by, bool sum)
{
	static char text[256];
	char arguments[96];
	CLEANUP_JSON json_t *result = NULL;
	json_t *row;
	size_t i;

	snprintf(arguments, sizeof(arguments), "{\"by\":\"%s\",\"sum\":%s}", by, sum ? "true" : "false");
	result = run(f, "history", arguments);
	if (!result)
		fail_msg("%s", f->err.text);
	*text = '\0';
	json_array_foreach (json_object_get(result, "rows"), i, row)
		sprintf(text + strlen(text), "%lld ", json_integer_value(json_object_get(row, "requests")));
	return text;
}

static void each_request_once(void **state)
{
	struct fixture *f = *state;

	attach(f);
	count(1, 10, 5);
	assert_string_equal(rows_by(f, "verb", false), "5 ");
	history_write(&f->agent);
	assert_string_equal(rows_by(f, "verb", false), "5 ");
	count(1, 10, 7);
	assert_string_equal(rows_by(f, "verb", false), "5 2 ");
	/* It is killed: what came since its last minute is the next one's. */
	end_agent(f);
	count(1, 10, 11);
	start_agent(f);
	history_begin(&f->agent);
	assert_string_equal(rows_by(f, "verb", false), "5 6 ");
	assert_string_equal(rows_by(f, "verb", true), "11 ");
	history_write(&f->agent);
	count(1, 20, 3);
	assert_string_equal(rows_by(f, "verb", false), "5 6 3 ");
}

static void what_was_there_before_is_of_no_minute(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	count(1, 10, 1000);
	dp->counters[0][WEIR_PASSED] = 1000;
	history_begin(&f->agent);
	assert_string_equal(rows_by(f, "verb", false), "");
	dp->counters[0][WEIR_PASSED] = 1007;
	assert_string_equal(rows_by(f, "server", false), "7 ");
}

/* Another server of the same name. */
static void counters_that_begin_anew(void **state)
{
	struct fixture *f = *state;

	attach(f);
	dp->counters[0][WEIR_PASSED] = 50;
	history_write(&f->agent);
	dp->counters[0][WEIR_PASSED] = 4;
	assert_string_equal(rows_by(f, "server", false), "50 4 ");
}

/* It has counted more than the one before it. */
static void a_server_after_another(void **state)
{
	struct fixture *f = *state;

	attach(f);
	dp->counters[0][WEIR_PASSED] = 50;
	history_write(&f->agent);
	succeed(f, "detach", "{\"name\":\"api\"}");
	succeed(f, "attach", ATTACH);
	dp->counters[0][WEIR_PASSED] = 70;
	assert_string_equal(rows_by(f, "server", false), "50 70 ");
}

/* A misspelled server is no server without changes. */
static void changes_of_a_server(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *gone = json_pack("[{s:s, s:s}]", "time", "2026-11-27T12:00:00Z", "server", "gone");

	succeed(f, "attach", ATTACH);
	assert_int_equal(audit_append(f->state_dir, gone, &f->err), 0);
	succeed(f, "audit", "{\"name\":\"api\"}");
	succeed(f, "audit", "{\"name\":\"gone\"}");
	succeed(f, "audit", "{\"name\":\"gone\",\"since\":1}");
	refuse(f, "audit", "{\"name\":\"goen\"}", "there is no server \"goen\", only api");
}

static void ten_of_a_kind(void **state)
{
	struct fixture *f = *state;

	attach(f);
	for (unsigned int verb = 0; verb < WEIR_VERB_COUNT; verb++)
		count(verb, 10, 100 + verb);
	history_write(&f->agent);
	assert_memory_equal(rows_by(f, "verb", false), "1", 1);
	assert_true(strlen(rows_by(f, "verb", false)) <= 10 * strlen("100 "));
}

/* Nothing is lost where it cannot be written: it is of the next minute. */
static void cannot_be_written(void **state)
{
	struct fixture *f = *state;
	char path[64];
	FILE *file;

	attach(f);
	history_path(f, path);
	file = fopen(path, "w"); /* in place of the directory */
	assert_non_null(file);
	fclose(file);
	count(1, 10, 5);
	history_write(&f->agent);
	history_write(&f->agent);
	unlink(path);
	assert_string_equal(rows_by(f, "verb", false), "5 ");
	count(1, 10, 6);
	history_write(&f->agent);
	assert_string_equal(rows_by(f, "verb", false), "6 ");
}

static void the_kernel_does_not_answer(void **state)
{
	struct fixture *f = *state;

	attach(f);
	count(1, 10, 5);
	fake_fail("datapath_heavy_places", 2);
	history_write(&f->agent);
	refuse(f, "history", "{}", "datapath_heavy_places failed");
	assert_string_equal(rows_by(f, "verb", false), "5 ");
}

static void of_another_boot(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *last = NULL;
	char path[64];

	attach(f);
	count(1, 10, 5);
	history_write(&f->agent);
	end_agent(f);
	history_path(f, path);
	last = history_load_last(path);
	assert_non_null(last);
	json_object_set_new(last, "boot_id", json_string("another"));
	assert_int_equal(history_save_last(path, last, &f->err), 0);
	start_agent(f);
	count(1, 10, 9);
	history_begin(&f->agent);
	assert_string_equal(rows_by(f, "verb", false), "5 ");
}

static void words(void **state)
{
	struct fixture *f = *state;

	refuse(f, "history", "{\"by\":\"who\"}", "there are no rows by \"who\"");
	refuse(f, "history", "{\"since\":0}", "since must be at least 1");
	refuse(f, "history", "{\"since\":\"1h\"}", "bad arguments");
	refuse(f, "history", "{\"what\":1}", "bad arguments");
}

/* --- what top says of a server in all */

static json_int_t top_requests(struct fixture *f, const char *arguments)
{
	CLEANUP_JSON json_t *result = run(f, "top", arguments);

	return json_integer_value(json_object_get(json_array_get(json_object_get(result, "servers"), 0), "requests"));
}

/* Records of a server that is looked into are its requests once more: only by source they have rows. */
static void records_in_all(void **state)
{
	static struct inside_served served;
	static struct inside_server looked_into = {
		.n = 1, .served = &served, .in_force = true, .lane = INSIDE_SEE, .proven = true
	};
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	fake_nets[1].counters[0][WEIR_PASSED] = 3;
	fake_nets[1].counters[0][WEIR_RECORDS_PASSED] = 5;
	assert_int_equal(top_requests(f, "{\"by\":\"user\"}"), 8);
	f->agent.state.servers[0]->inside = INSIDE_SEE;
	assert_int_equal(top_requests(f, "{\"by\":\"user\"}"), 8); /* nobody is there to be looked into */
	f->agent.servers[0].inside = &looked_into;
	assert_int_equal(top_requests(f, "{\"by\":\"user\"}"), 3);
	assert_int_equal(top_requests(f, "{\"by\":\"source\"}"), 8);
	f->agent.servers[0].inside = NULL;
}

/* The history leaves out what came since it was written last, not what had come before. */
static void records_in_the_history(void **state)
{
	static struct inside_served served;
	static struct inside_server looked_into = {
		.n = 1, .served = &served, .in_force = true, .lane = INSIDE_SEE, .proven = true
	};
	struct fixture *f = *state;

	attach(f);
	dp->counters[0][WEIR_RECORDS_PASSED] = 5;
	history_write(&f->agent);
	f->agent.state.servers[0]->inside = INSIDE_SEE;
	f->agent.servers[0].inside = &looked_into;
	dp->counters[0][WEIR_RECORDS_PASSED] = 25;
	dp->counters[0][WEIR_PASSED] = 3;
	history_write(&f->agent);
	dp->counters[0][WEIR_RECORDS_PASSED] = 26; /* nothing else */
	assert_string_equal(rows_by(f, "server", false), "5 3 ");
	f->agent.servers[0].inside = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_history(each_request_once),
		with_history(what_was_there_before_is_of_no_minute),
		with_history(counters_that_begin_anew),
		with_history(changes_of_a_server),
		with_history(ten_of_a_kind),
		with_history(a_server_after_another),
		with_history(records_in_the_history),
		with_history(cannot_be_written),
		with_history(the_kernel_does_not_answer),
		with_history(of_another_boot),
		with_history(words),
		with_history(records_in_all),
	};

	return cmocka_run_group_tests_name("agent_history", tests, NULL, NULL);
}
