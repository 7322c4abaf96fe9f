/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An agent that is killed at any point, started again: it ends up where one that was never killed does. A child sets
 * everything up (or takes it down) and is killed before its n-th system call that changes something, for one n after
 * the other.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "datapath_fixture.h"

#define STEP 17 /* not every call, for time's sake */

/* ATTACH_UNKNOWN: what the kernel has. */
static enum attach_way way;

static const __u8 address[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };

static int set_up(struct datapath **out)
{
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 5 };
	struct datapath_listen listens[] = { { .any = true, .port = 80 }, { .port = 81 } };
	struct datapath_cidr proxies[] = { { .bits = 128 } };
	struct datapath *dp = *out = open_datapath(1024);
	int ret;

	if (way)
		dp->attach.way = way;
	memcpy(listens[1].address, address, sizeof(address));
	memcpy(proxies[0].address, address, sizeof(address));
	ret = datapath_server_set(dp, 0, &server, listens, 2, proxies, 1, &error);
	if (!ret)
		ret = limit_set(dp, 0, WEIR_LIMIT_USER, WEIR_QPS, 1, 10);
	if (!ret)
		ret = override_set(dp, 0, WEIR_LIMIT_USER, 7, WEIR_QPS, 2);
	return ret ?: datapath_links_sync(dp, NULL, &error);
}

static int take_down(struct datapath **out)
{
	struct datapath *dp = *out = open_datapath(1024);

	return datapath_server_clear(dp, 0, &error) ?: datapath_remove(dp, &error);
}

static bool changes_something(long call)
{
	switch (call) {
#ifdef SYS_mkdir /* newer architectures have only those that end in -at */
	case SYS_mkdir:
	case SYS_rmdir:
	case SYS_unlink:
	case SYS_rename:
#endif
	case SYS_mkdirat:
	case SYS_unlinkat:
	case SYS_renameat2:
	case SYS_bpf:
	case SYS_mount:
	case SYS_sendto:
		return true;
	}
	return false;
}

/* Runs work() in a child that dies before its n-th change. True: it did; false: it had finished before. */
static bool killed_before(int n, int (*work)(struct datapath **dp))
{
	struct datapath *dp;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		ptrace(PTRACE_TRACEME);
		raise(SIGSTOP);
		_exit(work(&dp) ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
	while (!ptrace(PTRACE_SYSCALL, child, NULL, NULL)) {
		struct __ptrace_syscall_info call = {};

		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
		ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(call), &call);
		if (call.op != PTRACE_SYSCALL_INFO_ENTRY || !changes_something(call.entry.nr) || --n)
			continue;
		kill(child, SIGKILL);
		assert_int_equal(waitpid(child, &status, 0), child);
		return true;
	}
	return fail(), false;
}

static void check_complete(struct datapath *dp)
{
	struct weir_listener listener = { .port = 81 };
	struct weir_override_key override = { .limit = weir_limit_index(0, WEIR_LIMIT_USER), .subject = 7 };
	__u16 ports[] = { 80, 81 };
	struct weir_port port;
	struct weir_server server;
	struct weir_amount limit;
	__u32 zero = 0, value;

	memcpy(listener.address, address, sizeof(address));
	assert_int_equal(bpf_map_lookup_elem(dp->maps.servers, &zero, &server), 0);
	assert_int_equal(server.flags, WEIR_SERVER_ACTIVE);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.ports, &ports[0], &port), 0);
	assert_int_equal(port.any, 1);
	assert_int_equal(port.addresses, 0);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.ports, &ports[1], &port), 0);
	assert_int_equal(port.any, 0);
	assert_int_equal(port.addresses, 1);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.listeners, &listener, &value), 0);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.overrides, &override, &limit), 0);
	assert_int_equal(limit.history.rates[0].burst, 2);
	assert_int_equal(limit.history.rates[1].burst, 1);
	assert_int_equal(limit.history.rates[2].burst, 0);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.buckets, &override.limit, &value), 0);
	assert_true(runs(dp, "lo", ATTACH_INGRESS));
	assert_true(runs(dp, "lo", ATTACH_EGRESS));
#define X(name) assert_true(pinned(#name));
	DATAPATH_MAPS(X)
#undef X
	assert_true(dp->seed[0] || dp->seed[1]);
}

static void test_killed_while_setting_up(void **state)
{
	struct datapath *dp;
	int n = 1;

	(void)state;
	for (; killed_before(n, set_up); n += STEP) {
		done(set_up(&dp));
		check_complete(dp);
		done(datapath_remove(dp, &error));
		datapath_close(dp);
		assert_false(pinned("."));
	}
	assert_true(n > 2 * STEP);
	/* The last child came to its end. */
	done(take_down(&dp));
	datapath_close(dp);
}

static void test_killed_while_taking_down(void **state)
{
	struct datapath *dp;
	bool killed = true;

	(void)state;
	for (int n = 1; killed; n += STEP) {
		done(set_up(&dp));
		datapath_close(dp);
		killed = killed_before(n, take_down);
		done(take_down(&dp));
		datapath_close(dp);
		assert_false(pinned("."));
		assert_int_not_equal(inside("ls /sys/fs/bpf/weir-test/* >/dev/null 2>&1"), 0);
	}
}

static int with_clsact(void **state)
{
	(void)state;
	way = ATTACH_CLSACT;
	return 0;
}

static int without_clsact(void **state)
{
	(void)state;
	way = ATTACH_UNKNOWN;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_while_setting_up),
		cmocka_unit_test(test_killed_while_taking_down),
		cmocka_unit_test_setup_teardown(test_killed_while_setting_up, with_clsact, without_clsact),
		cmocka_unit_test_setup_teardown(test_killed_while_taking_down, with_clsact, without_clsact),
	};

	return cmocka_run_group_tests_name("datapath_crash", tests, namespaces_setup, NULL);
}
