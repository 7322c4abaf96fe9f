/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An agent that is killed at any point, started again: it ends up where one that was never killed does. A child sets
 * everything up (or takes it down) and is killed before its n-th system call that changes what outlives it, for one n after
 * the other. Loading the programs takes long: most rounds have them loaded once and for all, and begin behind that.
 */
#include <linux/bpf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "datapath_fixture.h"

/* What follows upon being killed while maps are pinned, and while they are filled. */
#define IN_PINS 10
#define IN_ANSWERS 60
/* Not each of the 180 changes that taking down makes, for time's sake. */
#define STEP_DOWN 7

/* ATTACH_UNKNOWN: what the kernel has. */
static enum attach_way way;

/* Its programs are loaded, and it outlives all rounds. NULL: each agent loads its own. */
static struct datapath *loaded;

static const __u8 address[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };

/* What datapath_open() does, as far as anything is left to be done. */
static struct datapath *agent_starts(void)
{
	if (!loaded)
		return open_datapath(1024);
	mkdir(loaded->dir, 0700);
	done(datapath_maps_keep(loaded, &error));
	done(datapath_programs_keep(loaded, &error));
	return loaded;
}

static void agent_ends(struct datapath *dp)
{
	if (!loaded)
		datapath_close(dp);
}

static int set_up(struct datapath **out)
{
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 5 };
	struct datapath_listen listens[] = { { .any = true, .port = 80 }, { .port = 81 } };
	struct datapath_cidr proxies[] = { { .bits = 128 } };
	struct datapath *dp = *out = agent_starts();
	int ret;

	if (way)
		dp->attach.way = way;
	memcpy(listens[1].address, address, sizeof(address));
	memcpy(proxies[0].address, address, sizeof(address));
	ret = datapath_server_set(dp, 0, &server, listens, 2, proxies, 1, &error);
	if (!ret)
		ret = limit_set(dp, 0, WEIR_BUILTIN_USER, WEIR_QPS, 1, 10);
	if (!ret)
		ret = override_set(dp, 0, WEIR_BUILTIN_USER, 7, WEIR_QPS, 2);
	return ret ?: datapath_links_sync(dp, NULL, &error);
}

static int take_down(struct datapath **out)
{
	struct datapath *dp = *out = agent_starts();

	return datapath_server_clear(dp, 0, &error) ?: datapath_remove(dp, &error);
}

/* Reading changes nothing; what is made, and not pinned, goes with its maker. */
static bool bpf_changes_something(long command)
{
	switch (command) {
	case BPF_MAP_UPDATE_ELEM:
	case BPF_MAP_DELETE_ELEM:
	case BPF_MAP_UPDATE_BATCH:
	case BPF_MAP_DELETE_BATCH:
	case BPF_OBJ_PIN:
	case BPF_PROG_TEST_RUN:
	case BPF_LINK_UPDATE:
	case BPF_LINK_DETACH:
		return true;
	}
	return false;
}

static bool changes_something(const struct __ptrace_syscall_info *call)
{
	switch (call->entry.nr) {
#ifdef SYS_mkdir /* newer architectures have only those that end in -at */
	case SYS_mkdir:
	case SYS_rmdir:
	case SYS_unlink:
	case SYS_rename:
#endif
	case SYS_mkdirat:
	case SYS_unlinkat:
	case SYS_renameat2:
	case SYS_mount:
	case SYS_sendto:
		return true;
	case SYS_bpf:
		return bpf_changes_something(call->entry.args[0]);
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
		if (call.op != PTRACE_SYSCALL_INFO_ENTRY || !changes_something(&call) || --n)
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
	struct weir_override_key override = { .limit = weir_limit_index(0, WEIR_BUILTIN_USER), .subject = 7 };
	__u32 ports[] = { 80, 81 };
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

static void killed_while_setting_up(int n, bool *killed)
{
	struct datapath *dp;

	*killed = killed_before(n, set_up);
	done(set_up(&dp));
	check_complete(dp);
	done(datapath_remove(dp, &error));
	agent_ends(dp);
	assert_false(pinned("."));
}

static void killed_while_taking_down(int n, bool *killed)
{
	struct datapath *dp;

	done(set_up(&dp));
	agent_ends(dp);
	*killed = killed_before(n, take_down);
	done(take_down(&dp));
	agent_ends(dp);
	assert_false(pinned("."));
	assert_int_not_equal(inside("ls /sys/fs/bpf/weir-test/* >/dev/null 2>&1"), 0);
}

static void rounds(int step, void (*round)(int n, bool *killed))
{
	bool killed = true;
	int n = 1;

	loaded = open_datapath(1024);
	done(datapath_remove(loaded, &error));
	for (; killed; n += step)
		round(n, &killed);
	assert_true(n > 10 * step);
	datapath_close(loaded);
	loaded = NULL;
}

static void test_killed_while_setting_up(void **state)
{
	(void)state;
	rounds(1, killed_while_setting_up);
}

static void test_killed_while_taking_down(void **state)
{
	(void)state;
	rounds(STEP_DOWN, killed_while_taking_down);
}

static void test_killed_while_opening(void **state)
{
	bool killed;

	(void)state;
	killed_while_setting_up(IN_PINS, &killed);
	assert_true(killed);
	killed_while_setting_up(IN_ANSWERS, &killed);
	assert_true(killed);
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
		cmocka_unit_test(test_killed_while_opening),
		cmocka_unit_test(test_killed_while_setting_up),
		cmocka_unit_test(test_killed_while_taking_down),
		cmocka_unit_test_setup_teardown(test_killed_while_setting_up, with_clsact, without_clsact),
		cmocka_unit_test_setup_teardown(test_killed_while_taking_down, with_clsact, without_clsact),
	};

	return cmocka_run_group_tests_name("datapath_crash", tests, namespaces_setup, NULL);
}
