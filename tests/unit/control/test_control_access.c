/* SPDX-License-Identifier: GPL-2.0 */
/* Who may talk to the agent's socket, how much, and in how many connections. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control_scene.h"

#define STRANGER 65534
#define GROUP_OPS 4241
#define GROUP_WATCH 4242

_Static_assert(CONTROL_GUESTS_MAX % CONTROL_USER_MAX == 0, "some users take all");

static void root_alone(void **state)
{
	const struct control_scene *f = *state;
	struct sockaddr_un address;
	struct stat st;

	assert_int_equal(control_address(f->dir, &address, NULL), 0);
	assert_int_equal(stat(address.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

struct other {
	const struct control_scene *f;
	uid_t uid;
	const gid_t *groups;
	size_t n_groups;
	int (*run)(const struct control_scene *f);
	int result;
};

/* The system calls themselves, which change this thread alone: the C library's functions change the whole process. */
static void *run_as_other(void *context)
{
	struct other *other = context;
	uid_t uid = other->uid;

	if (syscall(SYS_setgroups, other->n_groups, other->groups) || syscall(SYS_setresgid, uid, uid, uid) ||
	    syscall(SYS_setresuid, uid, uid, uid))
		other->result = 99;
	else
		other->result = other->run(other->f);
	return NULL;
}

/* In a thread: a child would have the locks that the server's thread held when it was forked. */
static int as(struct other *other)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run_as_other, other), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return other->result;
}

/* What is found by a stranger who is in these groups beside his own. */
static int as_member(const struct control_scene *f, const gid_t *groups, size_t n,
		     int (*run)(const struct control_scene *f))
{
	return as(&(struct other){ .f = f, .uid = STRANGER, .groups = groups, .n_groups = n, .run = run });
}

static int as_stranger(const struct control_scene *f, gid_t group, int (*run)(const struct control_scene *f))
{
	return as_member(f, &group, 1, run);
}

static int hear_why(const struct control_scene *f)
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
static int ask_access(const struct control_scene *f)
{
	CLEANUP_JSON json_t *result = NULL;

	return control_call(f->dir, "access", NULL, &result, NULL, NULL) ? 98 : (int)json_integer_value(result);
}

static void strangers(void **state)
{
	const struct control_scene *f = *state;

	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(f->dir, 0755), 0);
	assert_int_equal(as_stranger(f, STRANGER, scene_call), EACCES);
}

static void serve_groups(struct control_scene *f, const char *admin, const char *monitor)
{
	scene_serve(f, &(struct access_control){ .admin = { admin, GROUP_OPS }, .monitor = { monitor, GROUP_WATCH } });
}

static void assert_mode(const struct control_scene *f, mode_t mode, gid_t group)
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
	struct control_scene *f = *state;

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
	assert_int_equal(as_stranger(f, STRANGER, scene_call), EACCES);
	assert_int_equal(f->access.refused[ACCESS_REFUSED_STRANGER], 0);
}

/* A group by its number is one that has no name; a peer's own group counts, and groups beyond the first 32. */
static void many_groups(void **state)
{
	struct control_scene *f = *state;
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
	static const char *const neither[] = { "4x", "1e3", "0x10", "-1", "no-such-group" };
	struct access_group group = { 0 };
	struct error err;

	(void)state;
	assert_int_equal(access_group_parse("root", &group, &err), 0);
	assert_int_equal(group.id, 0);
	assert_string_equal(group.name, "root");
	assert_int_equal(access_group_parse("4294967294", &group, &err), 0);
	assert_int_equal(group.id, 4294967294U);
	assert_int_equal(access_group_parse("4294967295", &group, &err), -EINVAL);
	for (size_t i = 0; i < sizeof(neither) / sizeof(*neither); i++) {
		assert_int_equal(access_group_parse(neither[i], &group, &err), -EINVAL);
		assert_non_null(strstr(err.text, "\" on this machine: a group is a name, or a number like 100"));
	}
	assert_int_equal(access_group_parse("", &group, &err), -EINVAL);
	assert_int_equal(access_group_parse("no-such-group", &group, &err), -EINVAL);
	assert_non_null(strstr(err.text, "\"no-such-group\""));
	assert_int_equal(group.id, 4294967294U);
}

static int taken[CONTROL_GUESTS_MAX];
static size_t n_taken;

/* As many connections as a user who is not root may have. */
static int take_all(const struct control_scene *f)
{
	struct sockaddr_un address;

	if (control_address(f->dir, &address, NULL))
		return 1;
	for (int i = 0; i < CONTROL_USER_MAX; i++) {
		taken[n_taken] = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(taken[n_taken++], (struct sockaddr *)&address, sizeof(address)))
			return 2;
	}
	return 0;
}

static void give_back(void)
{
	while (n_taken)
		close(taken[--n_taken]);
}

/* One more is refused. */
static int ask_one_too_many(const struct control_scene *f)
{
	CLEANUP_JSON json_t *result = NULL;
	struct error err;

	if (control_call(f->dir, "echo", NULL, &result, NULL, &err) != -EREMOTEIO)
		return 3;
	return !strstr(err.text, "too many connections");
}

static int take_too_many(const struct control_scene *f)
{
	return take_all(f) ?: ask_one_too_many(f);
}

/* Of who may only read, a shorter line is taken. */
static int say_much(const struct control_scene *f)
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
	struct control_scene *f = *state;

	if (geteuid() != 0)
		skip();
	serve_groups(f, "ops", "watch");
	assert_int_equal(as_stranger(f, GROUP_WATCH, say_much), 0);
	assert_int_equal(as_stranger(f, GROUP_OPS, say_much), 1);
}

static void too_many_of_one(void **state)
{
	struct control_scene *f = *state;

	if (geteuid() != 0)
		skip();
	serve_groups(f, NULL, "watch");
	assert_int_equal(as_stranger(f, GROUP_WATCH, take_too_many), 0);
	assert_int_equal(f->access.refused[ACCESS_REFUSED_TOO_MANY], 1);
	/* Root is served beside them. */
	assert_int_equal(ask_access(f), ACCESS_CHANGE);
	give_back();
}

static void too_many_of_all(void **state)
{
	const gid_t group = GROUP_WATCH;
	struct control_scene *f = *state;
	struct other other = { .f = f, .uid = 70000, .groups = &group, .n_groups = 1, .run = take_all };

	if (geteuid() != 0)
		skip();
	serve_groups(f, NULL, "watch");
	for (; n_taken < CONTROL_GUESTS_MAX; other.uid++)
		assert_int_equal(as(&other), 0);
	other.run = ask_one_too_many;
	assert_int_equal(as(&other), 0);
	assert_int_equal(f->access.refused[ACCESS_REFUSED_TOO_MANY], 1);
	assert_int_equal(ask_access(f), ACCESS_CHANGE);
	give_back();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		served(root_alone),
		served(strangers),
		served(groups),
		served(many_groups),
		cmocka_unit_test(group_names),
		served(reader_says_much),
		served(too_many_of_one),
		served(too_many_of_all),
	};

	return cmocka_run_group_tests_name("control access", tests, NULL, NULL);
}
