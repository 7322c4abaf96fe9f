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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"
#include "control.h"

#define LARGE (CONTROL_LINE_MAX + 1UL)

struct fixture {
	char dir[32];
	struct event_base *base;
	struct control *control;
	pthread_t thread;
	int stop[2]; /* closing [1] ends the thread */
};

/* "echo" gives back its arguments, "fail" an error, "large" a long text. */
static int handle(void *context, struct control_client *client, const char *command, json_t *arguments, json_t **result,
		  struct error *err)
{
	(void)context;
	(void)client;
	if (strcmp(command, "echo") == 0) {
		*result = arguments ? json_incref(arguments) : json_null();
		return 0;
	}
	if (strcmp(command, "large") == 0) {
		CLEANUP_FREE char *text = malloc(LARGE + 1);

		memset(text, 'x', LARGE);
		text[LARGE] = '\0';
		*result = json_string(text);
		return 0;
	}
	return error_set(err, -EINVAL, "no \"%s\" here", command);
}

static void end_loop(evutil_socket_t fd, short what, void *base)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(base);
}

static void *serve(void *arg)
{
	struct fixture *f = arg;
	struct event *stop = event_new(f->base, f->stop[0], EV_READ, end_loop, f->base);

	event_add(stop, NULL);
	event_base_dispatch(f->base);
	event_free(stop);
	return NULL;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(pipe(f->stop), 0);
	f->base = event_base_new();
	assert_int_equal(control_open(&f->control, f->base, f->dir, handle, NULL, NULL), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	close(f->stop[1]);
	pthread_join(f->thread, NULL);
	control_close(f->control);
	event_base_free(f->base);
	close(f->stop[0]);
	assert_int_equal(rmdir(f->dir), 0); /* the socket is gone */
	free(f);
	return 0;
}

static int connect_to(const struct fixture *f)
{
	const struct timeval patience = { .tv_sec = 30 };
	struct sockaddr_un address;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(control_address(f->dir, &address, NULL), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

static void send_text(int fd, const char *text)
{
	size_t length = strlen(text);

	while (length > 0) {
		ssize_t n = send(fd, text, length, MSG_NOSIGNAL);

		assert_true(n > 0);
		text += n;
		length -= n;
	}
}

static void expect(int fd, const char *reply)
{
	char buffer[256];
	size_t got = 0, length = strlen(reply);

	assert_true(length < sizeof(buffer));
	while (got < length) {
		ssize_t n = recv(fd, buffer + got, length - got, 0);

		assert_true(n > 0);
		got += n;
	}
	assert_memory_equal(buffer, reply, length);
}

static void expect_end(int fd)
{
	char byte;

	assert_true(recv(fd, &byte, 1, 0) <= 0);
}

static void calls(void **state)
{
	const struct fixture *f = *state;
	CLEANUP_JSON json_t *arguments = json_pack("{s:[i, n, s]}", "a", 1, "\n\"");
	CLEANUP_JSON json_t *result = NULL, *none = NULL;
	struct error err;

	assert_int_equal(control_call(f->dir, "echo", arguments, &result, NULL, &err), 0);
	assert_true(json_equal(result, arguments));
	assert_int_equal(control_call(f->dir, "fail", NULL, &none, NULL, &err), -EREMOTEIO);
	assert_string_equal(err.text, "no \"fail\" here");
	assert_null(none);
}

static void large_reply(void **state)
{
	const struct fixture *f = *state;
	CLEANUP_JSON json_t *result = NULL;

	assert_int_equal(control_call(f->dir, "large", NULL, &result, NULL, NULL), 0);
	assert_int_equal(json_string_length(result), LARGE);
}

static void too_large_request(void **state)
{
	const struct fixture *f = *state;
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

static void root_alone(void **state)
{
	const struct fixture *f = *state;
	struct sockaddr_un address;
	struct stat st;

	assert_int_equal(control_address(f->dir, &address, NULL), 0);
	assert_int_equal(stat(address.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

/* The socket's mode keeps others out, and where that was changed, the peer's user id does. */
static void strangers(void **state)
{
	const struct fixture *f = *state;
	struct sockaddr_un address;
	int status;
	pid_t pid;

	if (geteuid() != 0)
		skip();
	assert_int_equal(control_address(f->dir, &address, NULL), 0);
	assert_int_equal(chmod(f->dir, 0755), 0);
	pid = fork();
	if (pid == 0) {
		json_t *result = NULL;
		int refused = setuid(65534) == 0 && control_call(f->dir, "echo", NULL, &result, NULL, NULL) == -EACCES;

		_exit(!refused);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(address.sun_path, 0666), 0);
	pid = fork();
	if (pid == 0) {
		json_t *result = NULL;
		int ret = setuid(65534) == 0 ? control_call(f->dir, "echo", NULL, &result, NULL, NULL) : 0;

		_exit(ret != -EPIPE && ret != -ECONNRESET);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
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
		{ "{\"command\":\"echo\",\"arguments\":[]}\n", "{\"result\":[]}\n" },
	};
	CLEANUP_CLOSE int fd = connect_to(*state);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		send_text(fd, cases[i][0]);
		expect(fd, cases[i][1]);
	}
}

/* In order, however the bytes are cut, and whether or not the client waits for the replies. */
static void many_in_one(void **state)
{
	static const char line[] = "{\"command\":\"echo\",\"arguments\":[1]}\n";
	static const char half[] = "{\"command\":\"ec";
	CLEANUP_CLOSE int fd = connect_to(*state);

	for (int i = 0; i < 100; i++)
		send_text(fd, line);
	send_text(fd, half);
	for (int i = 0; i < 100; i++)
		expect(fd, "{\"result\":[1]}\n");
	send_text(fd, line + strlen(half));
	shutdown(fd, SHUT_WR);
	expect(fd, "{\"result\":[1]}\n");
	expect_end(fd);
}

static void endless_line(void **state)
{
	CLEANUP_CLOSE int fd = connect_to(*state);
	CLEANUP_FREE char *text = malloc(CONTROL_LINE_MAX + 1);

	memset(text, ' ', CONTROL_LINE_MAX);
	text[CONTROL_LINE_MAX] = '\0';
	send_text(fd, text);
	expect(fd, "{\"error\":\"the request is too long\"}\n");
	expect_end(fd);
}

/* Silent clients take all places but one and do not keep the last one from being served. */
static void many_at_once(void **state)
{
	CLEANUP_JSON json_t *result = NULL;
	int fds[CONTROL_CLIENTS_MAX - 1];

	for (int i = 0; i < CONTROL_CLIENTS_MAX - 1; i++)
		fds[i] = connect_to(*state);
	assert_int_equal(control_call(((struct fixture *)*state)->dir, "echo", NULL, &result, NULL, NULL), 0);
	for (int i = 0; i < CONTROL_CLIENTS_MAX - 1; i++) {
		send_text(fds[i], "{\"command\":\"echo\",\"arguments\":[2]}\n");
		expect(fds[i], "{\"result\":[2]}\n");
		close(fds[i]);
	}
}

/* A client beyond the last place waits, and is served when one is free. */
static void one_too_many(void **state)
{
	int fds[CONTROL_CLIENTS_MAX], late;
	struct pollfd pollfd;

	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		fds[i] = connect_to(*state);
		send_text(fds[i], "{\"command\":\"echo\",\"arguments\":[2]}\n");
		expect(fds[i], "{\"result\":[2]}\n");
	}
	late = connect_to(*state);
	send_text(late, "{\"command\":\"echo\",\"arguments\":[3]}\n");
	pollfd = (struct pollfd){ .fd = late, .events = POLLIN };
	assert_int_equal(poll(&pollfd, 1, 100), 0);
	close(fds[17]);
	expect(late, "{\"result\":[3]}\n");
	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++)
		if (i != 17)
			close(fds[i]);
	close(late);
}

int main(void)
{
#define served(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		served(calls),
		served(large_reply),
		served(too_large_request),
		cmocka_unit_test(no_agent),
		cmocka_unit_test(long_path),
		served(root_alone),
		served(strangers),
		served(not_understood),
		served(many_in_one),
		served(endless_line),
		served(many_at_once),
		served(one_too_many),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
