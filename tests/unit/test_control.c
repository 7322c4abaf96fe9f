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
#include "control/control.h"

#define LARGE (CONTROL_LINE_MAX + 1UL)
#define NESTED 500000
#define STRANGER 65534
#define GROUP_OPS 4241
#define GROUP_WATCH 4242

struct fixture {
	char dir[32];
	struct event_base *base;
	struct control *control;
	struct access_control access;
	pthread_t thread;
	int stop[2]; /* closing [1] ends the thread */
};

static struct control_client *waiting;

/*
 * "echo" gives back its arguments, "access" what the client may say, "fail" an error, "large" a long text; "later" nothing,
 * until another client says "now".
 */
static int handle(void *context, struct control_client *client, const char *command, json_t *arguments, json_t **result,
		  struct error *err)
{
	(void)context;
	if (strcmp(command, "later") == 0) {
		waiting = client;
		return CONTROL_LATER;
	}
	if (strcmp(command, "now") == 0) {
		control_answer(waiting, 0, json_string("late"), NULL);
		*result = json_null();
		return 0;
	}
	if (strcmp(command, "access") == 0) {
		*result = json_integer(control_client_access(client));
		return 0;
	}
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
	assert_int_equal(control_open(&f->control, f->base, f->dir, &f->access, handle, NULL, NULL), 0);
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

struct other {
	const struct fixture *f;
	const gid_t *groups;
	size_t n_groups;
	int (*run)(const struct fixture *f);
	int result;
};

/* The system calls themselves, which change this thread alone: the C library's functions change the whole process. */
static void *run_as_other(void *context)
{
	struct other *other = context;
	uid_t uid = STRANGER;

	if (syscall(SYS_setgroups, other->n_groups, other->groups) || syscall(SYS_setresgid, uid, uid, uid) ||
	    syscall(SYS_setresuid, uid, uid, uid))
		other->result = 99;
	else
		other->result = other->run(other->f);
	return NULL;
}

/*
 * What is found by a stranger who is in these groups beside his own. In a thread: a child would have the locks that the
 * server's thread held when it was forked.
 */
static int as_member(const struct fixture *f, const gid_t *groups, size_t n, int (*run)(const struct fixture *f))
{
	struct other other = { .f = f, .groups = groups, .n_groups = n, .run = run };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_as_other, &other), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return other.result;
}

static int as_stranger(const struct fixture *f, gid_t group, int (*run)(const struct fixture *f))
{
	return as_member(f, &group, 1, run);
}

static int call(const struct fixture *f)
{
	CLEANUP_JSON json_t *result = NULL;

	return -control_call(f->dir, "echo", NULL, &result, NULL, NULL);
}

static int hear_why(const struct fixture *f)
{
	CLEANUP_JSON json_t *result = NULL;
	struct error err;
	int ret = control_call(f->dir, "echo", NULL, &result, NULL, &err);

	return ret != -EREMOTEIO ||
	       strcmp(err.text,
		      "user 65534 may not talk to this agent: only root may, members of the group ops, and for "
		      "read-only commands members of the group watch");
}

/* As the handler was told; "access" gives it back. */
static int ask_access(const struct fixture *f)
{
	CLEANUP_JSON json_t *result = NULL;

	return control_call(f->dir, "access", NULL, &result, NULL, NULL) ? 98 : (int)json_integer_value(result);
}

static void strangers(void **state)
{
	const struct fixture *f = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(as_stranger(f, STRANGER, call), EACCES);
}

static void serve_groups(struct fixture *f, const char *admin, const char *monitor)
{
	struct event_base *base = event_base_new();

	close(f->stop[1]);
	pthread_join(f->thread, NULL);
	control_close(f->control);
	event_base_free(f->base);
	close(f->stop[0]);
	assert_int_equal(pipe(f->stop), 0);
	f->base = base;
	f->access = (struct access_control){ .admin = { admin, GROUP_OPS }, .monitor = { monitor, GROUP_WATCH } };
	assert_int_equal(control_open(&f->control, f->base, f->dir, &f->access, handle, NULL, NULL), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
}

static void assert_mode(const struct fixture *f, mode_t mode, gid_t group)
{
	struct sockaddr_un address;
	struct stat st;

	assert_int_equal(control_address(f->dir, &address, NULL), 0);
	assert_int_equal(stat(address.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, mode);
	assert_int_equal(st.st_gid, group);
}

/* The socket's file lets in one group; where there are two, the agent asks who it is. */
static void groups(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0)
		skip();
	serve_groups(f, "ops", "watch");
	assert_mode(f, 0666, getegid());
	assert_int_equal(as_stranger(f, GROUP_OPS, ask_access), ACCESS_CHANGE);
	assert_int_equal(as_stranger(f, GROUP_WATCH, ask_access), ACCESS_READ);
	assert_int_equal(as_stranger(f, STRANGER, hear_why), 0);
	assert_int_equal(ask_access(f), ACCESS_CHANGE);
	assert_int_equal(f->access.refused[ACCESS_REFUSED_STRANGER], 1);
	serve_groups(f, NULL, "watch");
	assert_mode(f, 0660, GROUP_WATCH);
	assert_int_equal(as_stranger(f, GROUP_WATCH, ask_access), ACCESS_READ);
	assert_int_equal(as_stranger(f, STRANGER, call), EACCES);
	assert_int_equal(f->access.refused[ACCESS_REFUSED_STRANGER], 0);
}

/* A group by its number is one that has no name; a peer's own group counts, and groups beyond the first 32. */
static void many_groups(void **state)
{
	struct fixture *f = *state;
	gid_t many[100];

	if (geteuid() != 0)
		skip();
	serve_groups(f, NULL, "4242");
	for (int i = 0; i < 100; i++)
		many[i] = GROUP_WATCH + 99 - i;
	assert_int_equal(as_member(f, many, 100, ask_access), ACCESS_READ);
}

static void group_names(void **state)
{
	struct access_group group = { 0 };
	struct error err;

	(void)state;
	assert_int_equal(access_group_parse("root", &group, &err), 0);
	assert_int_equal(group.id, 0);
	assert_string_equal(group.name, "root");
	assert_int_equal(access_group_parse("4294967294", &group, &err), 0);
	assert_int_equal(group.id, 4294967294U);
	assert_int_equal(access_group_parse("4294967295", &group, &err), -EINVAL);
	assert_int_equal(access_group_parse("4x", &group, &err), -EINVAL);
	assert_int_equal(access_group_parse("", &group, &err), -EINVAL);
	assert_int_equal(access_group_parse("no-such-group", &group, &err), -EINVAL);
	assert_non_null(strstr(err.text, "\"no-such-group\""));
	assert_int_equal(group.id, 4294967294U);
}

static int taken[CONTROL_USER_MAX];

/* Of one user who is not root, so many connections and no more. */
static int take_too_many(const struct fixture *f)
{
	struct sockaddr_un address;
	CLEANUP_JSON json_t *result = NULL;
	struct error err;

	if (control_address(f->dir, &address, NULL))
		return 1;
	for (int i = 0; i < CONTROL_USER_MAX; i++) {
		taken[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(taken[i], (struct sockaddr *)&address, sizeof(address)))
			return 2;
	}
	if (control_call(f->dir, "echo", NULL, &result, NULL, &err) != -EREMOTEIO)
		return 3;
	return !strstr(err.text, "too many connections");
}

/* Of who may only read, a shorter line is taken. */
static int say_much(const struct fixture *f)
{
	CLEANUP_FREE char *text = calloc(1, CONTROL_READER_LINE_MAX + 1);
	CLEANUP_JSON json_t *argument = NULL, *result = NULL;
	struct error err;

	memset(text, 'x', CONTROL_READER_LINE_MAX);
	argument = json_string(text);
	return control_call(f->dir, "echo", argument, &result, NULL, &err) != -EREMOTEIO ||
	       strcmp(err.text, "the request is too long");
}

static void reader_says_much(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0)
		skip();
	serve_groups(f, "ops", "watch");
	assert_int_equal(as_stranger(f, GROUP_WATCH, say_much), 0);
	assert_int_equal(as_stranger(f, GROUP_OPS, say_much), 1);
}

static void too_many_of_one(void **state)
{
	struct fixture *f = *state;

	if (geteuid() != 0)
		skip();
	serve_groups(f, NULL, "watch");
	assert_int_equal(as_stranger(f, GROUP_WATCH, take_too_many), 0);
	assert_int_equal(f->access.refused[ACCESS_REFUSED_TOO_MANY], 1);
	/* Root is served beside them. */
	assert_int_equal(ask_access(f), ACCESS_CHANGE);
	for (int i = 0; i < CONTROL_USER_MAX; i++)
		close(taken[i]);
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

/* However deep it nests: the parser has a bound of its own. */
static void nested(void **state)
{
	CLEANUP_CLOSE int fd = connect_to(*state);
	CLEANUP_FREE char *text = malloc(NESTED + 2);

	memset(text, '[', NESTED);
	strcpy(text + NESTED, "\n");
	send_text(fd, text);
	expect(fd, "{\"error\":\"the request is not JSON\"}\n");
	send_text(fd, "{\"command\":\"echo\"}\n");
	expect(fd, "{\"result\":null}\n");
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

	for (int i = 0; i < CONTROL_CLIENTS_MAX; i++) {
		fds[i] = connect_to(*state);
		send_text(fds[i], "{\"command\":\"echo\",\"arguments\":[2]}\n");
		expect(fds[i], "{\"result\":[2]}\n");
	}
	late = connect_to(*state);
	send_text(late, "{\"command\":\"echo\",\"arguments\":[3]}\n");
	close(fds[17]);
	expect(late, "{\"result\":[3]}\n");
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
		fds[i] = connect_to(*state);
	assert_int_equal(call(*state), 0);
	for (int i = 0; i < SILENT; i++)
		close(fds[i]);
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
	struct fixture *f = *state;
	CLEANUP_CLOSE int patient = connect_to(f), other = connect_to(f);
	char byte;

	send_text(patient, "{\"command\":\"echo\",\"arguments\":1}\n");
	expect(patient, "{\"result\":1}\n");
	send_text(patient, "{\"command\":\"later\"}\n{\"command\":\"echo\",\"arguments\":2}\n");
	/* Two turns of the event loop: the first one has read "later". */
	for (int i = 0; i < 2; i++) {
		send_text(other, "{\"command\":\"echo\",\"arguments\":3}\n");
		expect(other, "{\"result\":3}\n");
	}
	assert_true(recv(patient, &byte, 1, MSG_DONTWAIT) < 0);
	send_text(other, "{\"command\":\"now\"}\n");
	expect(other, "{\"result\":null}\n");
	expect(patient, "{\"result\":\"late\"}\n{\"result\":2}\n");
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
		served(groups),
		served(many_groups),
		cmocka_unit_test(group_names),
		served(reader_says_much),
		served(too_many_of_one),
		served(not_understood),
		served(nested),
		served(many_in_one),
		served(endless_line),
		served(many_at_once),
		served(one_too_many),
		served(silent_ones_make_room),
		served(answered_later),
	};

	return cmocka_run_group_tests_name("control", tests, allow_files, NULL);
}
