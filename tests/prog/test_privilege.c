/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is left to an agent that has given up the rest is enough for all that it does; and each step needs what
 * privilege.c says it needs, and fails without. Steps run in children: what is given up is gone.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "datapath/inside.h"
#include "datapath_fixture.h"
#include "sys/cgroup.h"
#include "sys/netns.h"
#include "sys/privilege.h"
#include "sys/secret.h"
#include "weir/conn/explain.h"

#define SECRET "/run/weir-test-secret"
#define NOBODY 65534

static char *cgroup;   /* a directory of our own; NULL: there is no cgroup2 here */
static char netns[64]; /* of a process that may do everything */

/* --- the steps: 0, or a negative errno */

static int open_again(struct datapath *dp)
{
	(void)dp;
	return try_open(1024);
}

static int make_limit(struct datapath *dp)
{
	return limit_set(dp, 0, WEIR_BUILTIN_USER, 1, 1, 64);
}

static int read_limit(struct datapath *dp)
{
	struct datapath_subject_use top[1];
	int n = datapath_top(dp, 0, top, 1, &error);

	return n < 0 ? n : 0;
}

static int unmake_limit(struct datapath *dp)
{
	return datapath_limit_delete(dp, 0, WEIR_BUILTIN_USER, &error);
}

static int watch_devices(struct datapath *dp)
{
	return datapath_links_sync(dp, NULL, &error);
}

static int hold(struct datapath *dp)
{
	const char *const cgroups[] = { cgroup };

	if (!cgroup)
		return -EOPNOTSUPP;

	return datapath_hold_sync(dp, cgroups, 1, &error);
}

static int let_go(struct datapath *dp)
{
	return datapath_hold_sync(dp, NULL, 0, &error);
}

static int pace(struct datapath *dp)
{
	return datapath_pace(dp, true, &error);
}

static int unpace(struct datapath *dp)
{
	return datapath_pace(dp, false, &error);
}

static int track(struct datapath *dp)
{
	int tracked = datapath_loopback_tracked(dp, &error);

	return tracked < 0 ? tracked : 0;
}

static int explain(struct datapath *dp)
{
	const struct datapath_question question = { .request = "GET / HTTP/1.1\r\n\r\n", .length = 18 };
	struct weir_explained answer;

	/* That the server is not there is said by the program, which is loaded by then. */
	return datapath_explain(dp, 0, &question, &answer, &error) && !strstr(error.text, "not in force") ? -EIO : 0;
}

static int find_namespace(struct datapath *dp)
{
	int fd = netns_open(netns, &error);

	(void)dp;
	return fd < 0 ? fd : close(fd);
}

static int read_secret(struct datapath *dp)
{
	CLEANUP_SECRET struct secret secret = { 0 };

	(void)dp;
	return secret_read(SECRET, &secret, &error);
}

static int find_cgroup(struct datapath *dp)
{
	CLEANUP_FREE char *found = cgroup ? cgroup_find(cgroup, 1) : NULL;

	(void)dp;
	return found ? 0 : cgroup ? -EPERM : -EOPNOTSUPP;
}

/* -EOPNOTSUPP: the kernel is locked down against it. */
static int write_allowed(struct datapath *dp)
{
	(void)dp;
	return datapath_inside_writes() ? 0 : -EOPNOTSUPP;
}

static int write_memory(struct datapath *dp)
{
	(void)dp;
	return datapath_inside_writes() ? 0 : -EPERM;
}

static int read_counters(struct datapath *dp)
{
	__u64 counters[WEIR_REASON_COUNT];

	return datapath_counters(dp, 0, counters, &error);
}

#define LOADING (1ULL << CAP_NET_ADMIN | 1ULL << CAP_PERFMON | 1ULL << CAP_BPF)
#define ADMIN (1ULL << CAP_SYS_ADMIN)

static const struct step {
	const char *name;
	int (*run)(struct datapath *dp);
	int (*before)(struct datapath *dp); /* with all there is */
	__u64 needs;			    /* bits of capabilities */
} steps[] = {
	{ "maps and programs are opened anew", open_again, NULL, LOADING | ADMIN },
	{ "a limit is made", make_limit, unmake_limit, 1ULL << CAP_BPF },
	{ "a limit is changed", make_limit, make_limit, ADMIN },
	{ "a limit's buckets are read", read_limit, make_limit, ADMIN },
	{ "a limit goes", unmake_limit, make_limit, 0 },
	{ "counters are read", read_counters, NULL, 0 },
	{ "programs are put on devices", watch_devices, NULL, ADMIN },
	{ "a program is put on a cgroup", hold, let_go, 1ULL << CAP_NET_ADMIN },
	{ "a program is taken off it", let_go, hold, 0 },
	{ "a queue is made", pace, unpace, 1ULL << CAP_NET_ADMIN | ADMIN },
	{ "a queue is taken away", unpace, pace, 1ULL << CAP_NET_ADMIN | ADMIN },
	{ "conntrack is asked", track, NULL, ADMIN },
	{ "a request is explained", explain, NULL, LOADING },
	{ "a process's namespace is opened", find_namespace, NULL, 1ULL << CAP_SYS_PTRACE },
	{ "a program that may write memory is made", write_memory, write_allowed,
	  1ULL << CAP_PERFMON | 1ULL << CAP_BPF | ADMIN },
	{ "another user's file is read", read_secret, NULL, 1ULL << CAP_DAC_READ_SEARCH },
	{ "a cgroup is found by its number", find_cgroup, NULL, 1ULL << CAP_DAC_READ_SEARCH },
};

/* What a child has, beside what privilege_drop() takes: one capability less. */
static int give_up(cap_value_t capability)
{
	int ret = privilege_drop(&error);
	cap_t caps = cap_get_proc();

	if (!ret && capability >= 0)
		ret = cap_set_flag(caps, CAP_PERMITTED, 1, &capability, CAP_CLEAR) ?: cap_set_proc(caps);
	cap_free(caps);
	return ret;
}

/* What a step has returned in a child: 0, or an errno. */
static int alone(struct datapath *dp, const struct step *step, cap_value_t without)
{
	int status;
	pid_t pid;

	if (step->before && step->before(dp) == -EOPNOTSUPP)
		return EOPNOTSUPP;
	pid = fork();
	if (pid == 0) {
		int ret = give_up(without) ?: step->run(dp);

		if (ret && ret != -EOPNOTSUPP && without < 0)
			print_error("%s: %s\n", step->name, error.text);
		_exit(-ret);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Without tcx, what is put on devices are filters of a queueing discipline. */
static __u64 may_need(const struct step *step)
{
	return step->run == watch_devices ? 1ULL << CAP_NET_ADMIN : 0;
}

static void assert_needs(struct datapath *dp, const struct step *step)
{
	static const cap_value_t kept[] = { CAP_DAC_READ_SEARCH, CAP_NET_ADMIN, CAP_SYS_PTRACE,
					    CAP_SYS_ADMIN,	 CAP_PERFMON,	CAP_BPF };
	int ret = alone(dp, step, -1);

	if (ret == EOPNOTSUPP) {
		print_message("%s: not on this kernel\n", step->name);
		return;
	}
	assert_int_equal(ret, 0);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		bool failed = alone(dp, step, kept[i]), needs = step->needs >> kept[i] & 1;

		if (failed != needs && !(may_need(step) >> kept[i] & 1))
			fail_msg("%s %s without capability %d", step->name, failed ? "fails" : "goes", kept[i]);
	}
}

static void test_each_step(void **state)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		assert_needs(*state, &steps[i]);
}

static int assert_given_up(struct datapath *dp)
{
	struct privileged privileged;
	struct rlimit limit;
	bool raised, lowered;
	cap_t caps;

	(void)dp;
	if (prctl(PR_GET_DUMPABLE) || !prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) || getrlimit(RLIMIT_CORE, &limit) ||
	    limit.rlim_max || umask(0) != 077 || cap_get_bound(CAP_SYS_ADMIN))
		return -EINVAL;
	privileged = privilege_begin(PRIVILEGE_CGROUP);
	caps = cap_get_proc();
	raised = strstr(cap_to_text(caps, NULL), "cap_net_admin=ep");
	privilege_end(&privileged);
	caps = cap_get_proc();
	lowered = !strstr(cap_to_text(caps, NULL), "=e");
	return raised && lowered &&
			       cap_set_flag(caps, CAP_PERMITTED, 1, &(cap_value_t){ CAP_SYS_MODULE }, CAP_SET) == 0 &&
			       cap_set_proc(caps) ?
		       0 :
		       -EINVAL;
}

static void test_given_up(void **state)
{
	const struct step step = { .name = "giving up", .run = assert_given_up };

	(void)state;
	assert_int_equal(alone(NULL, &step, -1), 0);
}

/* Who has given up nothing keeps everything. */
static void test_left_alone(void **state)
{
	CLEANUP_PRIVILEGED struct privileged outer = privilege_begin(PRIVILEGE_READ);
	struct privileged inner = privilege_begin(PRIVILEGE_LOAD);
	cap_t caps;
	cap_flag_value_t value;

	(void)state;
	privilege_end(&inner);
	caps = cap_get_proc();
	assert_int_equal(cap_get_flag(caps, CAP_CHOWN, CAP_EFFECTIVE, &value), 0);
	assert_int_equal(value, CAP_SET);
	cap_free(caps);
}

static pid_t mighty;

static int make_world(void **state)
{
	CLEANUP_FREE char *root = cgroup_root();
	FILE *secret = fopen(SECRET, "w");

	if (!secret || fchmod(fileno(secret), 0600) || fchown(fileno(secret), NOBODY, NOBODY) || fclose(secret))
		return -1;
	if (root && asprintf(&cgroup, "%s/weir-test-%d", root, getpid()) > 0 && mkdir(cgroup, 0755)) {
		free(cgroup);
		cgroup = NULL;
	}
	mighty = fork();
	if (mighty == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
	}
	snprintf(netns, sizeof(netns), "/proc/%d/ns/net", mighty);
	return namespaces_setup(state);
}

static int unmake_world(void **state)
{
	(void)state;
	kill(mighty, SIGKILL);
	waitpid(mighty, NULL, 0);
	unlink(SECRET);
	if (cgroup && rmdir(cgroup))
		return -1;
	free(cgroup);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_step, datapath_setup, datapath_teardown),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_left_alone),
	};

	return cmocka_run_group_tests_name("privilege", tests, make_world, unmake_world);
}
