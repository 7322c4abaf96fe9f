/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The whole agent over the kernel side in memory: its event loop answers whatever else it has under way. Built twice, as the
 * other tests with threads are. An event loop that waits makes a test hang: the alarm ends that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/control.h"
#include "fake_datapath.h"
#include "loop_scene.h"

#define CLIENTS 3
#define ROUNDS 10

#define ONE "{\"server\":{\"name\":\"one\",\"listen\":[\"*:81\"]}}"
#define TWO "{\"server\":{\"name\":\"two\",\"listen\":[\"*:82\"],\"netns\":\"/netns/2\"}}"
#define THREE "{\"server\":{\"name\":\"three\",\"listen\":[\"*:83\"],\"netns\":\"/netns/3\"}}"
#define LIMIT "{\"server\":\"two\",\"limit\":{\"name\":\"total\",\"qps\":\"1\",\"burst\":1}}"

/* An agent that loads the programs of a server that it knows. */
static void start_again(struct loop_scene *f)
{
	loop_start_and_wait(f);
	loop_succeed(f, "attach", ONE);
	loop_stop(f);
	loop_join(f);
	loop_block_openings();
	loop_start(f);
	loop_wait_for_opening();
}

static void answers_while_a_command_loads(void **state)
{
	struct loop_scene *f = *state;
	struct loop_client attach = { .f = f, .command = "attach", .arguments = TWO };
	FILE *limit;

	loop_start_and_wait(f);
	loop_succeed(f, "attach", ONE);
	loop_block_openings();
	loop_send_command(&attach);
	loop_wait_for_opening();
	loop_assert_mode(f, 0, "limiting");
	loop_assert_mode(f, 1, "starting");
	loop_expect_metrics(f);
	/* What changes something waits for its turn, and then finds what was attached before. */
	limit = loop_send_behind_status(f, "{\"command\":\"limit set\",\"arguments\":" LIMIT "}\n");
	assert_false(attach.answered);
	loop_may_open = true;
	loop_expect_success(&attach);
	loop_expect_line(limit, "result");
	fclose(limit);
	loop_assert_mode(f, 1, "limiting");
	loop_stop(f);
	loop_join(f);
	assert_non_null(fake_limit(&fake_nets[2], 1, WEIR_BUILTIN_TOTAL));
}

/* Whoever may only ask holds up nobody's change. */
static void changes_come_before_questions(void **state)
{
	struct loop_scene *f = *state;
	struct loop_client attach = { .f = f, .command = "attach", .arguments = TWO };
	FILE *diff, *pause;

	loop_start_and_wait(f);
	loop_block_openings();
	loop_send_command(&attach);
	loop_wait_for_opening();
	diff = loop_send_behind_status(f, "{\"command\":\"diff\",\"arguments\":{\"server\":\"two\",\"objects\":[],"
					  "\"prune\":true}}\n");
	pause = loop_send_behind_status(f, "{\"command\":\"pause\"}\n");
	loop_may_open = true;
	loop_expect_success(&attach);
	loop_expect_line(diff, "result");
	assert_true(loop_has_logged(f, "is paused"));
	loop_expect_line(pause, "result");
	fclose(diff);
	fclose(pause);
	loop_stop(f);
	loop_join(f);
}

static void answers_while_it_starts(void **state)
{
	struct loop_scene *f = *state;
	FILE *pause;

	start_again(f);
	loop_assert_mode(f, 0, "starting");
	loop_expect_metrics(f);
	assert_false(loop_has_logged(f, "ready"));
	pause = loop_send_behind_status(f, "{\"command\":\"pause\"}\n");
	loop_may_open = true;
	loop_expect_line(pause, "result");
	fclose(pause);
	assert_true(loop_has_logged(f, "ready"));
	loop_assert_mode(f, 0, "paused");
	loop_stop(f);
	loop_join(f);
}

/* The command at hand comes to its end; what has not begun is not done, and said so. */
static void ends_while_a_command_loads(void **state)
{
	struct loop_scene *f = *state;
	struct loop_client attach = { .f = f, .command = "attach", .arguments = TWO };
	FILE *second;

	loop_start_and_wait(f);
	loop_block_openings();
	loop_send_command(&attach);
	loop_wait_for_opening();
	second = loop_send_behind_status(f, "{\"command\":\"attach\",\"arguments\":" THREE "}\n");
	loop_stop(f);
	assert_false(attach.answered);
	loop_may_open = true;
	loop_join(f);
	loop_expect_success(&attach);
	loop_expect_line(second, "stopping");
	fclose(second);
	assert_int_equal(fake_nets[2].opened, 1);
	assert_int_equal(fake_nets[3].opened, 0);
}

/* The servers whose turn has not come stay as they were: of four workers, each has at most one. */
static void ends_while_it_starts(void **state)
{
	struct loop_scene *f = *state;
	FILE *pause;

	start_again(f);
	pause = loop_send_behind_status(f, "{\"command\":\"pause\"}\n");
	loop_stop(f);
	loop_may_open = true;
	loop_join(f);
	loop_expect_line(pause, "stopping");
	fclose(pause);
	assert_false(loop_has_logged(f, "ready"));
	assert_true(fake_nets[1].servers[0].flags & WEIR_SERVER_ACTIVE);
}

/* Values of JSON that the event loop makes or frees, when is_counting. */
static atomic_bool is_counting;
static atomic_uint loop_values;
static pthread_t loop;

static void count_value(void)
{
	loop_values += is_counting && pthread_equal(pthread_self(), loop);
}

static void *counting_malloc(size_t size)
{
	count_value();
	return malloc(size);
}

static void counting_free(void *memory)
{
	count_value();
	free(memory);
}

#define SUBJECTS 2000
#define VALUES (5 * SUBJECTS) /* of a request with these there are more */

/* A file of a limit with so many subjects, as a request. The caller frees it. */
static char *large_request(const char *command)
{
	static const char begin[] = "\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\",\"metadata\":{\"name\":\"one\"},"
				    "\"spec\":{\"listen\":[\"*:81\"],\"limits\":[{\"name\":\"user\",\"qps\":1,"
				    "\"burst\":1,\"overrides\":[";
	char *line = NULL;
	size_t size;
	FILE *out = open_memstream(&line, &size);

	fprintf(out, "{\"command\":\"%s\",\"arguments\":{\"file\":\"a.json\"},\"document\":{%s", command, begin);
	for (int i = 0; i < SUBJECTS; i++)
		fprintf(out, "%s{\"subject\":\"%d\",\"qps\":2,\"burst\":2}", i ? "," : "", i);
	fprintf(out, "]}]}}}\n");
	fclose(out);
	assert_true(size >= CONTROL_LARGE);
	return line;
}

static void expect_answer(const struct loop_scene *f, const char *line, const char *word)
{
	FILE *stream;

	loop_values = 0;
	is_counting = true;
	stream = loop_send_behind_status(f, line);
	loop_expect_line(stream, word);
	is_counting = false;
	fclose(stream);
	if (!loop_values || loop_values >= VALUES)
		fail_msg("the event loop made or freed %u values for %.40s", loop_values, line);
}

/* The event loop neither reads nor writes what is large. */
static void large_requests_are_read_aside(void **state)
{
	struct loop_scene *f = *state;
	CLEANUP_FREE char *apply = large_request("apply"), *diff = large_request("diff"),
			  *unknown = large_request("unknown");

	json_set_alloc_funcs(counting_malloc, counting_free);
	loop_start_and_wait(f);
	loop = f->agent;
	expect_answer(f, apply, "created");
	expect_answer(f, diff, "result");
	expect_answer(f, unknown, "no command");
	expect_answer(f, "{\"command\":\"limit list\"}\n", "\"1999\"");
	expect_answer(f, "{\"command\":\"export\"}\n", "\"1999\"");
	loop_stop(f);
	loop_join(f);
	json_set_alloc_funcs(malloc, free);
}

/* What it was not read for before the end is told so. */
static void large_requests_end_with_the_agent(void **state)
{
	struct loop_scene *f = *state;
	CLEANUP_FREE char *apply = large_request("apply");
	struct loop_client attach = { .f = f, .command = "attach", .arguments = TWO };
	FILE *stream;

	loop_start_and_wait(f);
	loop_block_openings();
	loop_send_command(&attach);
	loop_wait_for_opening();
	stream = loop_send_behind_status(f, apply);
	loop_stop(f);
	loop_may_open = true;
	loop_join(f);
	loop_expect_success(&attach);
	loop_expect_line(stream, "stopping");
	fclose(stream);
	assert_int_equal(fake_nets[1].opened, 0);
}

/* Jobs end servers; the loop tells who has traced them. */
static void tracing_ends_with_the_server(void **state)
{
	struct loop_scene *f = *state;
	CLEANUP_JSON json_t *name = json_pack("{s:s}", "name", "one"), *result = NULL;
	CLEANUP_FCLOSE FILE *stream = NULL;

	loop_start_and_wait(f);
	loop_succeed(f, "attach", ONE);
	assert_int_equal(control_follow(f->state_dir, "trace", name, &result, NULL, &stream, NULL), 0);
	loop_succeed(f, "detach", "{\"name\":\"one\"}");
	loop_expect_line(stream, "no longer attached");
	loop_stop(f);
	loop_join(f);
}

/* One of several, each with a namespace that it has opened and closed all the time. */
static void *come_and_go(void *arg)
{
	struct loop_client *c = arg;
	char attach[128], detach[128], trace[64];

	snprintf(attach, sizeof(attach), "{\"server\":{\"name\":\"%s\",\"listen\":[\"*:%s\"],\"netns\":\"/netns/%s\"}}",
		 c->command, c->arguments, c->arguments);
	snprintf(detach, sizeof(detach), "{\"name\":\"%s\",\"force\":true}", c->command);
	snprintf(trace, sizeof(trace), "{\"name\":\"%s\"}", c->command);
	for (int i = 0; i < ROUNDS; i++) {
		CLEANUP_JSON json_t *name = json_loads(trace, 0, NULL), *result = NULL;
		CLEANUP_FCLOSE FILE *stream = NULL;

		loop_succeed(c->f, "attach", attach);
		loop_succeed(c->f, "status", "{}");
		control_follow(c->f->state_dir, "trace", name, &result, NULL, &stream, NULL);
		loop_expect_metrics(c->f);
		loop_succeed(c->f, "detach", detach);
	}
	c->succeeded = true;
	return NULL;
}

static void many_clients(void **state)
{
	struct loop_scene *f = *state;
	struct loop_client clients[CLIENTS] = {
		{ .f = f, .command = "a", .arguments = "1" },
		{ .f = f, .command = "b", .arguments = "2" },
		{ .f = f, .command = "c", .arguments = "3" },
	};

	loop_start_and_wait(f);
	for (size_t i = 0; i < CLIENTS; i++)
		assert_int_equal(pthread_create(&clients[i].thread, NULL, come_and_go, &clients[i]), 0);
	for (size_t i = 0; i < CLIENTS; i++) {
		pthread_join(clients[i].thread, NULL);
		assert_true(clients[i].succeeded);
	}
	loop_stop(f);
	loop_join(f);
	for (size_t i = 1; i <= CLIENTS; i++)
		assert_false(fake_nets[i].open);
}

/* It ends on SIGTERM, and can read its files. */
static void whoever_starts_it(void **state)
{
	struct loop_scene *f = *state;
	char lock[sizeof(f->state_dir) + 8];
	sigset_t all, before;
	struct stat st;

	snprintf(lock, sizeof(lock), "%s/lock", f->state_dir);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	umask(0777);
	loop_start_and_wait(f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	assert_int_equal(stat(lock, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	loop_stop(f);
	loop_join(f);
}

/* Where nothing can be pinned, limits would end with the agent. */
static void starts_only_where_it_can_pin(void **state)
{
	struct loop_scene *f = *state;
	char lock[sizeof(f->state_dir) + 8];
	struct error err = { 0 };

	fake_fail("datapath_pins_check", 1);
	assert_int_equal(agent_run(&f->options, &err), -EIO);
	assert_string_equal(err.text, "datapath_pins_check failed");
	snprintf(lock, sizeof(lock), "%s/lock", f->state_dir);
	assert_int_equal(access(lock, F_OK), -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, loop_set_up, loop_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(answers_while_a_command_loads),
		TEST(changes_come_before_questions),
		TEST(answers_while_it_starts),
		TEST(ends_while_a_command_loads),
		TEST(ends_while_it_starts),
		TEST(large_requests_are_read_aside),
		TEST(large_requests_end_with_the_agent),
		TEST(tracing_ends_with_the_server),
		TEST(many_clients),
		TEST(starts_only_where_it_can_pin),
		TEST(whoever_starts_it),
	};

	return cmocka_run_group_tests_name("agent loop", tests, NULL, NULL);
}
