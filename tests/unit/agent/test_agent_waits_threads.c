/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The event loop is answered whatever a job or a worker waits for: the kernel, the disk, a file. Whenever one of these is
 * asked for something, another thread asks what the event loop asks. Where the lock is held it never comes back: the alarm
 * ends that. Built twice, as the other tests with threads are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/net.h"
#include "agent_fixture.h"
#include "base/cleanup.h"
#include "daemon/request.h"
#include "fake_datapath.h"
#include "follow/follow.h"

#define PATIENCE_S 120
#define FILES "/weir-waits-"

static struct fixture *asked;
static __thread bool is_loop;
static unsigned int kernel_waits, disk_waits, file_waits, json_waits;

/* Commands that the event loop answers by itself, and what it does on SIGTERM. */
static void *be_the_loop(void *arg)
{
	static const char *const commands[] = { "status", "metrics" };
	struct fixture *f = arg;

	is_loop = true;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		CLEANUP_JSON json_t *result = NULL;
		struct error err;

		assert_int_equal(agent_request(&f->agent, NULL, commands[i], NULL, &result, &err), 0);
	}
	agent_end(&f->agent);
	return NULL;
}

static void wait_for_the_loop(unsigned int *waits)
{
	struct fixture *f = asked;
	pthread_t loop;

	if (is_loop || !f)
		return;
	asked = NULL; /* what this asks for itself is not of interest */
	assert_int_equal(pthread_create(&loop, NULL, be_the_loop, f), 0);
	pthread_join(loop, NULL);
	asked = f;
	++*waits;
}

static void kernel_asked(void)
{
	wait_for_the_loop(&kernel_waits);
}

/* In the place of the C library's. */
int fsync(int fd)
{
	wait_for_the_loop(&disk_waits);
	return syscall(SYS_fsync, fd);
}

int open(const char *file, int oflag, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, oflag);
	mode = oflag & O_CREAT ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (strstr(file, FILES))
		wait_for_the_loop(&file_waits);
	return syscall(SYS_openat, AT_FDCWD, file, oflag, mode);
}

static int set_up_waits(void **state)
{
	alarm(PATIENCE_S);
	set_up(state);
	kernel_waits = disk_waits = file_waits = 0;
	asked = *state;
	fake_asked = kernel_asked;
	return 0;
}

static int tear_down_waits(void **state)
{
	struct fixture *f = *state;

	asked = NULL;
	succeed(f, "detach", "{\"all\":true,\"force\":true}");
	return tear_down(state);
}

/* Each waits for something at least so often. */
static void expect_waits(unsigned int kernel, unsigned int disk, unsigned int files)
{
	assert_true(kernel_waits >= kernel);
	assert_true(disk_waits >= disk);
	assert_true(file_waits >= files);
	kernel_waits = disk_waits = file_waits = 0;
}

/* --- the tests */

static void commands(void **state)
{
	static const struct {
		const char *command, *arguments;
		unsigned int kernel, disk;
	} steps[] = {
		{ "attach", ATTACH, 5, 1 },
		{ "limit set", "{\"limit\":{\"name\":\"total\",\"qps\":\"1\",\"burst\":1}}", 1, 1 },
		{ "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1},\"subject\":\"a\"}", 1, 1 },
		{ "limit set",
		  "{\"limit\":{\"name\":\"groups\",\"key\":\"group\",\"qps\":\"1\",\"burst\":1},\"subject\":\"g\"}", 2,
		  1 },
		{ "limit set",
		  "{\"limit\":{\"name\":\"own\",\"key\":\"user\",\"qps\":\"1\",\"burst\":1,\"rules\":[{\"groups\":[\"g\"]}]}}",
		  2, 1 },
		{ "limit delete", "{\"limit\":\"user\",\"subject\":\"a\"}", 1, 1 },
		{ "limit delete", "{\"limit\":\"own\"}", 2, 1 },
		{ "max-in-flight", "{\"read_only\":5,\"mutating\":6}", 2, 2 },
		{ "pause", "{}", 1, 1 },
		{ "resume", "{}", 1, 1 },
		{ "reload", "{}", 2, 0 },
		{ "explain", "{\"request\":{\"method\":\"GET\",\"path\":\"/\"}}", 1, 0 },
		{ "detach", "{\"name\":\"api\"}", 2, 1 },
	};
	struct fixture *f = *state;

	fake_explaining = kernel_asked;
	fake_nets[1].explained = (struct weir_explained){ .lost = WEIR_REASON_NONE, .whole = true };
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		succeed(f, steps[i].command, steps[i].arguments);
		expect_waits(steps[i].kernel, steps[i].disk, 0);
	}
}

#define THROTTLE(limits)                                                                                                  \
	"{\"objects\":[{\"file\":\"a.yaml\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\",\"metadata\":" \
	"{\"name\":\"api\"},\"spec\":{\"listen\":[\"*:80\"],\"limits\":[" limits "]}}}]}"
#define TOTAL THROTTLE("{\"name\":\"total\",\"qps\":1,\"burst\":1}")
#define USER THROTTLE("{\"name\":\"user\",\"qps\":2,\"burst\":1}")

static void policies(void **state)
{
	struct fixture *f = *state;

	succeed(f, "apply", TOTAL);
	expect_waits(5, 1, 0);
	succeed(f, "diff", USER);
	expect_waits(0, 0, 0);
	succeed(f, "apply", USER);
	expect_waits(2, 1, 0);
	succeed(f, "delete", USER);
	expect_waits(2, 1, 0);
}

static void policy_files(void **state)
{
	struct fixture *f = *state;
	char path[] = P_tmpdir FILES "XXXXXX";
	const char *paths[] = { path };
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	write_file(path, "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: api}\n"
			 "spec:\n  listen: ['*:80']\n  limits:\n  - {name: total, qps: 1, burst: 1}\n");
	f->options.policies = paths;
	f->options.n_policies = 1;
	assert_int_equal(follow_open(&f->agent, &f->err), 0);
	follow_sync(&f->agent);
	unlink(path);
	expect_waits(5, 1, 1);
	assert_non_null(fake_limit(&fake_nets[1], 0, WEIR_BUILTIN_TOTAL));
	/* The next agent does not follow it. */
	follow_close(&f->agent);
	f->options.n_policies = 0;
	assert_int_equal(follow_open(&f->agent, &f->err), 0);
	follow_sync(&f->agent);
	expect_waits(2, 1, 0);
	follow_close(&f->agent);
}

static void token_files(void **state)
{
	struct fixture *f = *state;
	char path[] = P_tmpdir FILES "XXXXXX", arguments[256];
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	write_file(path, "token-1,alice,1\n");
	snprintf(arguments, sizeof(arguments),
		 "{\"server\":{\"name\":\"api\",\"listen\":[\"*:80\"],\"identity\":{\"token_file\":\"%s\"}}}", path);
	succeed(f, "attach", arguments);
	expect_waits(5, 1, 1);
	succeed(f, "reload", "{}");
	expect_waits(1, 0, 1);
	unlink(path);
}

static void *asking_malloc(size_t size)
{
	wait_for_the_loop(&json_waits);
	return malloc(size);
}

/* What may be large is written without the lock. */
static void lists(void **state)
{
	static const char *const names[] = { "export", "limit list" };
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1},\"subject\":\"a\"}");
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		CLEANUP_JSON json_t *result = NULL;

		json_waits = 0;
		json_set_alloc_funcs(asking_malloc, free);
		assert_int_equal(agent_request(&f->agent, NULL, names[i], NULL, &result, &f->err), 0);
		json_set_alloc_funcs(malloc, free);
		assert_true(json_waits > 1);
	}
}

static void upkeep(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	expect_waits(1, 1, 0);
	f->agent.ending = false; /* what the other thread has asked for */
	nets_look_after(&f->agent);
	expect_waits(3, 0, 0);
	reconcile(f);
	expect_waits(5, 0, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_waits, tear_down_waits)
	const struct CMUnitTest tests[] = {
		TEST(commands), TEST(policies), TEST(policy_files), TEST(token_files), TEST(lists), TEST(upkeep),
	};

	return cmocka_run_group_tests_name("agent waits", tests, NULL, NULL);
}
