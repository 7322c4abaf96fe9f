/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's socket, where a command is answered by a stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "line_scene.h"

struct fixture {
	struct line_scene scene;
	struct control_client *follower;
	int ended; /* how often it was told so */
	struct line_client client;
};

static void follower_ended(void *arg)
{
	struct fixture *f = arg;

	f->ended++;
	control_end(f->follower, json_pack("{s:s}", "last", "word"));
}

static int handle(void *context, struct control_client *client, const char *command, json_t *arguments, json_t **result,
		  struct error *err)
{
	struct fixture *f = context;

	(void)command;
	(void)arguments;
	(void)err;
	f->follower = client;
	control_stream(client, follower_ended, f);
	*result = json_true();
	return 0;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	line_scene_open(&f->scene, handle, f);
	line_client_open(&f->client, f->scene.base, f->scene.dir);
	line_client_send(&f->client, "{\"command\":\"follow\"}\n");
	line_client_expect(&f->client, "{\"result\":true}");
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	line_client_close(&f->client);
	line_scene_close(&f->scene);
	free(f);
	return 0;
}

static void lines_as_they_come(void **state)
{
	struct fixture *f = *state;

	line_client_expect_silence(&f->client);
	assert_true(control_send(f->follower, json_pack("{s:s}", "a", "b\n")));
	line_client_run(&f->client);
	line_client_expect(&f->client, "{\"a\":\"b\\n\"}");
	line_client_expect_silence(&f->client);
	assert_int_equal(f->ended, 0);
}

/* Nothing that it says is a command any more. */
static void client_only_listens(void **state)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3; i++)
		line_client_send(&f->client, "{\"command\":\"follow\"}\n");
	line_client_expect_silence(&f->client);
	assert_int_equal(f->ended, 0);
}

static void client_wants_no_more(void **state)
{
	struct fixture *f = *state;

	control_send(f->follower, json_pack("{s:i}", "n", 1));
	shutdown(f->client.fd, SHUT_WR);
	line_client_run(&f->client);
	line_client_expect(&f->client, "{\"n\":1}");
	line_client_expect(&f->client, "{\"last\":\"word\"}");
	line_client_expect_end(&f->client);
	assert_int_equal(f->ended, 1);
}

static void client_is_gone(void **state)
{
	struct fixture *f = *state;

	shutdown(f->client.fd, SHUT_RDWR);
	line_client_run(&f->client);
	assert_int_equal(f->ended, 1);
}

static void we_end_it(void **state)
{
	struct fixture *f = *state;

	control_send(f->follower, json_pack("{s:i}", "n", 1));
	control_end(f->follower, json_pack("{s:s}", "error", "gone"));
	line_client_run(&f->client);
	line_client_expect(&f->client, "{\"n\":1}");
	line_client_expect(&f->client, "{\"error\":\"gone\"}");
	line_client_expect_end(&f->client);
	assert_int_equal(f->ended, 0);
}

/* Who does not read is sent up to a bound, whole lines, and goes on from there when he reads again. */
static void slow_client(void **state)
{
	CLEANUP_FREE char *large = calloc(1, 60001);
	struct fixture *f = *state;
	int sent = 0, got = 0;
	char *line;

	memset(large, 'x', 60000);
	while (control_send(f->follower, json_pack("{s:s}", "large", large)))
		assert_true(++sent < 1000);
	assert_true(sent >= (int)(CONTROL_QUEUE_MAX / 60020));
	assert_false(control_send(f->follower, json_pack("{s:i}", "small", 1)));
	line_client_run(&f->client);
	for (; (line = line_client_line(&f->client)); got++) {
		assert_int_equal(strlen(line), 60012);
		free(line);
	}
	assert_int_equal(got, sent);
	assert_true(control_send(f->follower, json_pack("{s:i}", "small", 2)));
	line_client_run(&f->client);
	line_client_expect(&f->client, "{\"small\":2}");
	line_client_expect_silence(&f->client);
}

/* The last word is said to a slow client, too. */
static void slow_client_wants_no_more(void **state)
{
	CLEANUP_FREE char *large = calloc(1, 60001);
	struct fixture *f = *state;
	int sent = 0;

	memset(large, 'x', 60000);
	while (control_send(f->follower, json_pack("{s:s}", "large", large)))
		sent++;
	shutdown(f->client.fd, SHUT_WR);
	line_client_run(&f->client);
	while (sent--)
		free(line_client_line(&f->client));
	line_client_expect(&f->client, "{\"last\":\"word\"}");
	line_client_expect_end(&f->client);
	assert_int_equal(f->ended, 1);
}

static void agent_stops(void **state)
{
	struct fixture *f = *state;

	control_close(f->scene.control);
	assert_int_equal(f->ended, 1);
	line_client_run(&f->client);
	assert_true(f->client.ended);
	line_scene_serve(&f->scene, handle, f);
}

int main(void)
{
#define served(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		served(lines_as_they_come),
		served(client_only_listens),
		served(client_wants_no_more),
		served(client_is_gone),
		served(we_end_it),
		served(slow_client),
		served(slow_client_wants_no_more),
		served(agent_stops),
	};

	return cmocka_run_group_tests_name("control_stream", tests, NULL, NULL);
}
