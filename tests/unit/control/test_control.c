/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's socket against clients of every kind. The server runs in a thread, the clients in the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control_scene.h"

#define NESTED 500000

static void calls(void **state)
{
	const struct control_scene *f = *state;
	CLEANUP_JSON json_t *arguments = json_pack("{s:[i, n, s]}", "a", 1, "\n\"");
	CLEANUP_JSON json_t *result = NULL, *none = NULL;
	struct error err;

	assert_int_equal(control_call(f->dir, "echo", arguments, &result, NULL, &err), 0);
	assert_true(json_equal(result, arguments));
	assert_int_equal(control_call(f->dir, "fail", NULL, &none, NULL, &err), -EREMOTEIO);
	assert_string_equal(err.text, "no \"fail\" here");
	assert_null(none);
}

/* A document is an argument, whatever its text is, or the request is not understood. */
static void documents(void **state)
{
	static const char *const cases[][2] = {
		{ "{}", "{\"a\":1,\"document\":{}}" },
		{ "{\n\t\"b\": [\n\"x\",\r\n 2 ]\n}\n", "{\"a\":1,\"document\":{\"b\":[\"x\",2]}}" },
		{ "\"}\"", "{\"a\":1,\"document\":\"}\"}" },
		{ "", NULL },
		{ "{\"b\": \"x\ny\"}", NULL },
		{ "{}}", NULL },
		{ "{\"b\": 1", NULL },
		{ "{}} {\"command\": \"fail\"", NULL },
		{ "{}}\n{\"command\": \"fail\"}", NULL },
		{ "{}, \"b\": 1", NULL },
		{ "{}, \"document\": 1", NULL },
		{ "{}, \"command\": \"fail\"", NULL },
		{ "{}, \"arguments\": {\"a\": 2}", NULL },
		{ "{\"b\": 1, \"b\": 2}", NULL },
		{ "a: 1\n", NULL },
	};
	CLEANUP_JSON json_t *arguments = json_pack("{s:i}", "a", 1);
	const struct control_scene *f = *state;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_JSON json_t *result = NULL, *wanted = cases[i][1] ? json_loads(cases[i][1], 0, NULL) : NULL;
		int ret = control_call_with(f->dir, "echo", arguments, cases[i][0], &result, NULL, NULL);

		assert_int_equal(ret, wanted ? 0 : -EBADMSG);
		assert_true(wanted ? json_equal(result, wanted) : !result);
	}
	assert_int_equal(json_object_size(arguments), 1);
}

static void large_reply(void **state)
{
	const struct control_scene *f = *state;
	CLEANUP_JSON json_t *result = NULL;

	assert_int_equal(control_call(f->dir, "large", NULL, &result, NULL, NULL), 0);
	assert_int_equal(json_string_length(result), SCENE_LARGE);
}

static void too_large_request(void **state)
{
	const struct control_scene *f = *state;
	CLEANUP_FREE char *text = calloc(1, CONTROL_LINE_MAX + 1);
	CLEANUP_JSON json_t *argument = NULL, *result = NULL;

	memset(text, 'x', CONTROL_LINE_MAX);
	argument = json_string(text);
	assert_int_equal(control_call(f->dir, "echo", argument, &result, NULL, NULL), -E2BIG);
	assert_null(result);
}

static void no_agent(void **state)
{
	struct error err;
	json_t *result = NULL;

	(void)state;
	assert_int_equal(control_call(P_tmpdir "/weir-test-none", "echo", NULL, &result, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "weir agent"));
}

static void long_path(void **state)
{
	struct sockaddr_un address;
	char dir[128];

	(void)state;
	memset(dir, 'd', sizeof(dir));
	dir[sizeof(dir) - 1] = '\0';
	assert_int_equal(control_address(dir, &address, NULL), -ENAMETOOLONG);
}

static void not_understood(void **state)
{
	static const char *const cases[][2] = {
		{ "\n", "{\"error\":\"the request is not JSON\"}\n" },
		{ "{]\n", "{\"error\":\"the request is not JSON\"}\n" },
		{ "[]\n", "{\"error\":\"a request has a command and its arguments\"}\n" },
		{ "{}\n", "{\"error\":\"a request has a command and its arguments\"}\n" },
		{ "{\"command\":5}\n", "{\"error\":\"a request has a command and its arguments\"}\n" },
		{ "{\"command\":\"echo\",\"x\":1}\n", "{\"error\":\"a request has a command and its arguments\"}\n" },
		{ "{\"command\":\"echo\",\"command\":\"echo\"}\n", "{\"error\":\"the request is not JSON\"}\n" },
		{ "{\"command\":\"\xff\"}\n", "{\"error\":\"the request is not JSON\"}\n" },
		{ "{\"command\":\"echo\",\"document\":{}}\n",
		  "{\"error\":\"a request has a command and its arguments\"}\n" },
		{ "{\"command\":\"echo\",\"arguments\":[],\"document\":{}}\n",
		  "{\"error\":\"a request has a command and its arguments\"}\n" },
		{ "{\"command\":\"echo\",\"arguments\":[]}\n", "{\"result\":[]}\n" },
	};
	CLEANUP_CLOSE int fd = scene_connect(*state);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		scene_send(fd, cases[i][0]);
		scene_expect(fd, cases[i][1]);
	}
}

/* However deep it nests: the parser has a bound of its own. */
static void nested(void **state)
{
	CLEANUP_CLOSE int fd = scene_connect(*state);
	CLEANUP_FREE char *text = malloc(NESTED + 2);

	memset(text, '[', NESTED);
	strcpy(text + NESTED, "\n");
	scene_send(fd, text);
	scene_expect(fd, "{\"error\":\"the request is not JSON\"}\n");
	scene_send(fd, "{\"command\":\"echo\"}\n");
	scene_expect(fd, "{\"result\":null}\n");
}

/* In order, however the bytes are cut, and whether or not the client waits for the replies. */
static void many_in_one(void **state)
{
	static const char line[] = "{\"command\":\"echo\",\"arguments\":[1]}\n";
	static const char half[] = "{\"command\":\"ec";
	CLEANUP_CLOSE int fd = scene_connect(*state);

	for (int i = 0; i < 100; i++)
		scene_send(fd, line);
	scene_send(fd, half);
	for (int i = 0; i < 100; i++)
		scene_expect(fd, "{\"result\":[1]}\n");
	scene_send(fd, line + strlen(half));
	shutdown(fd, SHUT_WR);
	scene_expect(fd, "{\"result\":[1]}\n");
	scene_expect_end(fd);
}

static void endless_line(void **state)
{
	CLEANUP_CLOSE int fd = scene_connect(*state);
	CLEANUP_FREE char *text = malloc(CONTROL_LINE_MAX + 1);

	memset(text, ' ', CONTROL_LINE_MAX);
	text[CONTROL_LINE_MAX] = '\0';
	scene_send(fd, text);
	scene_expect(fd, "{\"error\":\"the request is too long\"}\n");
	scene_expect_end(fd);
}

/* Silent clients take all places but one and do not keep the last one from being served. */
static void many_at_once(void **state)
{
	CLEANUP_JSON json_t *result = NULL;
	int fds[CONTROL_CLIENTS_MAX - 1];

	for (int i = 0; i < CONTROL_CLIENTS_MAX - 1; i++)
		fds[i] = scene_connect(*state);
	assert_int_equal(control_call(((struct control_scene *)*state)->dir, "echo", NULL, &result, NULL, NULL), 0);
	for (int i = 0; i < CONTROL_CLIENTS_MAX - 1; i++) {
		scene_send(fds[i], "{\"command\":\"echo\",\"arguments\":[2]}\n");
		scene_expect(fds[i], "{\"result\":[2]}\n");
		close(fds[i]);
	}
}

/* A client beyond the last place waits, and is served when one is free. */
static void one_too_many(void **state)
{
	int fds[CONTROL_CLIENTS_MAX], late;

	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		fds[i] = scene_connect(*state);
		scene_send(fds[i], "{\"command\":\"echo\",\"arguments\":[2]}\n");
		scene_expect(fds[i], "{\"result\":[2]}\n");
	}
	late = scene_connect(*state);
	scene_send(late, "{\"command\":\"echo\",\"arguments\":[3]}\n");
	close(fds[17]);
	scene_expect(late, "{\"result\":[3]}\n");
	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (i != 17)
			close(fds[i]);
	close(late);
}

/* Those who say nothing make room for who does, however many they are. */
static void silent_ones_make_room(void **state)
{
	enum {
		SILENT = 3 * CONTROL_CLIENTS_MAX / 2
	};
	int fds[SILENT];

	for (int i = 0; i < SILENT; i++)
		fds[i] = scene_connect(*state);
	assert_int_equal(scene_call(*state), 0);
	for (int i = 0; i < SILENT; i++)
		close(fds[i]);
}

#define NO_FILES \
	"{\"error\":\"the agent can take no more commands: Too many open files: end others, or give it more (LimitNOFILE= of its service)\"}\n"

/* Whoever comes when the agent has no descriptor left is told so, each of them, until it has some. */
static void no_descriptors(void **state)
{
	int fds[3], served = scene_connect(*state);
	struct rlimit usual, none;

	for (int i = 0; i < 3; i++)
		fds[i] = socket(AF_UNIX, SOCK_STREAM, 0);
	scene_send(served, "{\"command\":\"echo\",\"arguments\":1}\n");
	scene_expect(served, "{\"result\":1}\n");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = (struct rlimit){ .rlim_cur = dup(0), .rlim_max = usual.rlim_max };
	close(none.rlim_cur); /* the lowest that is free */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	for (int i = 0; i < 3; i++) {
		scene_connect_by(*state, fds[i]);
		scene_expect(fds[i], NO_FILES);
		scene_expect_end(fds[i]);
	}
	scene_send(served, "{\"command\":\"echo\",\"arguments\":2}\n");
	scene_expect(served, "{\"result\":2}\n");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(scene_call(*state), 0);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(served);
}

/* Clients and server are one process here. */
static int allow_files(void **state)
{
	struct rlimit limit;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit);
}

/* Its next command waits with it. */
static void answered_later(void **state)
{
	struct control_scene *f = *state;
	CLEANUP_CLOSE int patient = scene_connect(f), other = scene_connect(f);
	char byte;

	scene_send(patient, "{\"command\":\"echo\",\"arguments\":1}\n");
	scene_expect(patient, "{\"result\":1}\n");
	scene_send(patient, "{\"command\":\"later\"}\n{\"command\":\"echo\",\"arguments\":2}\n");
	/* Two turns of the event loop: the first one has read "later". */
	for (int i = 0; i < 2; i++) {
		scene_send(other, "{\"command\":\"echo\",\"arguments\":3}\n");
		scene_expect(other, "{\"result\":3}\n");
	}
	assert_true(recv(patient, &byte, 1, MSG_DONTWAIT) < 0);
	scene_send(other, "{\"command\":\"now\"}\n");
	scene_expect(other, "{\"result\":null}\n");
	scene_expect(patient, "{\"result\":\"late\"}\n{\"result\":2}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		served(calls),
		served(documents),
		served(large_reply),
		served(too_large_request),
		cmocka_unit_test(no_agent),
		cmocka_unit_test(long_path),
		served(not_understood),
		served(nested),
		served(many_in_one),
		served(endless_line),
		served(many_at_once),
		served(one_too_many),
		served(silent_ones_make_room),
		served(no_descriptors),
		served(answered_later),
	};

	return cmocka_run_group_tests_name("control", tests, allow_files, NULL);
}
