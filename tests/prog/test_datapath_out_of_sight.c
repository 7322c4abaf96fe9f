/* SPDX-License-Identifier: GPL-2.0 */
/* What is there but hard to see, without a descriptor or among many others: it is left as it is, and taken for what it is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "datapath_fixture.h"
#include "sys/cgroup.h"

#define CGROUP_PROGRAMS 64 /* of one kind; the kernel takes no more */
#define SLOT 3

static const struct datapath_servers only_ours = { .has[SLOT] = true };

/* --- without descriptors */

/* From now on there is room for so many descriptors. The caller sets what is returned again. */
static struct rlimit leave_descriptors(int room)
{
	int next = dup(STDERR_FILENO);
	struct rlimit usual, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	few = (struct rlimit){ .rlim_cur = next + room, .rlim_max = usual.rlim_max };
	close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	return usual;
}

/* Nobody has changed what only cannot be looked at. */
static void test_no_descriptors(void **state)
{
	struct datapath *dp = *state;
	struct rlimit usual;

	done(datapath_shared_sync(dp, &only_ours, &error));
	usual = leave_descriptors(0);
	assert_int_equal(datapath_shared_sync(dp, &only_ours, &error), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_changes(dp, DATAPATH_pins, 0, 0, 0);
	done(datapath_shared_sync(dp, &only_ours, &error));
	assert_changes(dp, DATAPATH_pins, 0, 0, 0);
}

/* A cgroup of the test's own. The caller removes it, and frees its path. */
static char *make_cgroup(void)
{
	CLEANUP_FREE char *root = cgroup_root();
	char *path = NULL;

	if (!root)
		skip();
	assert_true(asprintf(&path, "%s/weir-test-%d", root, getpid()) > 0);
	assert_int_equal(mkdir(path, 0755), 0);
	return path;
}

/* With room for no descriptor, for one, and so on. The hold stays on, whether or not the agent can look at it. */
static void test_hold_without_descriptors(void **state)
{
	CLEANUP_FREE char *cgroup = make_cgroup();
	const char *const cgroups[] = { cgroup };
	struct datapath *dp = *state;
	int ret = -EMFILE;

	done(datapath_hold_sync(dp, cgroups, 1, &error));
	assert_changes(dp, DATAPATH_holds, 2, 0, 0);
	for (int room = 0; ret == -EMFILE && room < 16; room++) {
		struct rlimit usual = leave_descriptors(room);

		ret = datapath_hold_sync(dp, cgroups, 1, &error);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
		assert_true(datapath_hold_runs(dp, cgroups, 1));
		assert_changes(dp, DATAPATH_holds, 2, 0, 0);
	}
	done(ret);
	done(datapath_hold_sync(dp, NULL, 0, &error));
	assert_int_equal(rmdir(cgroup), 0);
}

/* --- among others */

/* A program that does nothing. */
static int returns(enum bpf_prog_type type, int what)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = what },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(type, "returns", "GPL", insns, sizeof(insns) / sizeof(*insns), NULL);
}

/* As many as a cgroup takes; the links go with their descriptors. */
static void fill_cgroup(const char *path, int links[static CGROUP_PROGRAMS])
{
	int cgroup = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(cgroup >= 0);
	for (int i = 0; i < CGROUP_PROGRAMS; i++) {
		int program = returns(BPF_PROG_TYPE_CGROUP_SKB, 1);

		links[i] = bpf_link_create(program, cgroup, BPF_CGROUP_INET_INGRESS, NULL);
		assert_true(links[i] >= 0);
		close(program);
	}
	close(cgroup);
}

/* Below a cgroup of others with as many programs as it takes, ours is the last one. */
static void test_hold_behind_many(void **state)
{
	CLEANUP_FREE char *above = make_cgroup(), *cgroup = NULL;
	struct datapath *dp = *state;
	int links[CGROUP_PROGRAMS];
	const char *cgroups[1];

	assert_true(asprintf(&cgroup, "%s/server", above) > 0);
	cgroups[0] = cgroup;
	assert_int_equal(mkdir(cgroup, 0755), 0);
	fill_cgroup(above, links);
	done(datapath_hold_sync(dp, cgroups, 1, &error));
	assert_true(datapath_hold_runs(dp, cgroups, 1));
	done(datapath_hold_sync(dp, NULL, 0, &error));
	assert_false(datapath_hold_runs(dp, cgroups, 1));
	for (int i = 0; i < CGROUP_PROGRAMS; i++)
		close(links[i]);
	assert_int_equal(rmdir(cgroup), 0);
	assert_int_equal(rmdir(above), 0);
}

static int look_at_xdp(void *arg)
{
	const struct datapath *dp = arg;
	struct xdp_owner there = { 0 };
	int program = returns(BPF_PROG_TYPE_XDP, XDP_PASS);

	assert_true(program >= 0);
	assert_int_equal(xdp_put(dp->dir, 1, program, XDP_MODE_GENERIC, &there), 1);
	close(program);
	assert_int_equal(mount(NULL, "/sys/fs/bpf", NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
	assert_int_equal(xdp_look(dp->dir, 1, &there), -EROFS);
	assert_int_equal(mount(NULL, "/sys/fs/bpf", NULL, MS_REMOUNT, NULL), 0);
	assert_int_equal(xdp_look(dp->dir, 1, &there), 0);
	assert_true(there.ours);
	xdp_remove(dp->dir, 1);
	return 0;
}

/* There a pin cannot be opened. The program at XDP is not taken for another one's. */
static void test_xdp_on_a_read_only_bpffs(void **state)
{
	assert_int_equal(call_inside(look_at_xdp, *state), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, datapath_setup, datapath_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_no_descriptors),
		TEST(test_hold_without_descriptors),
		TEST(test_hold_behind_many),
		TEST(test_xdp_on_a_read_only_bpffs),
	};

	return cmocka_run_group_tests_name("datapath_out_of_sight", tests, namespaces_setup, NULL);
}
