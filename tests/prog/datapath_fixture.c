/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath_fixture.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include "sys/netns.h"

#define PIN_DIR "/sys/fs/bpf/weir-test"

int test_netns;
struct error error;

static __u64 cookie;
static char net_dir[128];

static int make_netns(void *unused)
{
	(void)unused;
	return unshare(CLONE_NEWNET) ? -errno : netns_open(NULL, NULL);
}

/* An empty /sys/fs/bpf, so that opening has to mount it. */
static int make_mounts(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	while (!umount2("/sys/fs/bpf", MNT_DETACH))
		;
	return 0;
}

int namespaces_setup(void **state)
{
	int home = netns_open(NULL, NULL);

	(void)state;
	test_netns = netns_run(home, make_netns, NULL, NULL);
	close(home);
	if (test_netns < 0 || netns_cookie(test_netns, &cookie, NULL) || make_mounts())
		return -1;
	snprintf(net_dir, sizeof(net_dir), PIN_DIR "/net-%llu", cookie);
	return inside("ip link set lo up");
}

/* The lock of the datapath opened latest: letting go of it is what an agent's death does. */
static int latest_lock = -1;

void agent_dies(void)
{
	if (latest_lock < 0)
		return;
	flock(latest_lock, LOCK_UN);
	close(latest_lock);
	latest_lock = -1;
}

static int open_into(struct datapath **dp, __u32 conns_max)
{
	struct datapath_options options = {
		.pin_dir = PIN_DIR,
		.netns_fd = test_netns,
		.netns_cookie = cookie,
		.conns_max = conns_max,
	};

	int ret = datapath_open(dp, &options, &error);

	if (!ret)
		latest_lock = dup((*dp)->dir_fd);
	return ret;
}

struct datapath *open_datapath(__u32 conns_max)
{
	struct datapath *dp = NULL;

	agent_dies();
	done(open_into(&dp, conns_max));
	return dp;
}

int try_open(__u32 conns_max)
{
	struct datapath *dp = NULL;
	int ret;

	agent_dies();
	ret = open_into(&dp, conns_max);

	datapath_close(dp);
	return ret;
}

int open_beside(void)
{
	struct datapath *dp = NULL;

	return open_into(&dp, 0);
}

int datapath_setup(void **state)
{
	*state = open_datapath(1024);
	return 0;
}

int datapath_teardown(void **state)
{
	agent_dies();
	done(datapath_remove(*state, &error));
	datapath_close(*state);
	assert_int_equal(access(net_dir, F_OK), -1);
	return 0;
}

static int run_command(void *command)
{
	return system(command); /* NOLINT(cert-env33-c) */
}

void assert_changes(struct datapath *dp, enum datapath_part part, __u64 added, __u64 changed, __u64 dropped)
{
	const struct datapath_changes *c = &datapath_written(dp)->of[part];

	if (c->added != added || c->changed != changed || c->dropped != dropped)
		fail_msg("%s: %llu added, %llu changed, %llu dropped", datapath_part_name(part), c->added, c->changed,
			 c->dropped);
}

int inside(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return call_inside(run_command, command);
}

int call_inside(int (*run)(void *arg), void *arg)
{
	return netns_run(test_netns, run, arg, NULL);
}

bool pinned(const char *format, ...)
{
	char path[256];
	int length = snprintf(path, sizeof(path), "%s/", net_dir);
	va_list args;

	va_start(args, format);
	vsnprintf(path + length, sizeof(path) - length, format, args);
	va_end(args);
	return !access(path, F_OK);
}

int unpin(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", net_dir, name);
	return unlink(path);
}

int detach_pinned(const char *link)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", net_dir, link);
	CLEANUP_CLOSE int fd = bpf_obj_get(path);
	return fd < 0 ? fd : bpf_link_detach(fd);
}

/* The kernel frees programs some time after the last reference went. */
bool program_is_gone(__u32 id)
{
	for (int i = 0; i < 1000; i++) {
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0)
			return true;
		close(fd);
		usleep(5000);
	}
	return false;
}

static int find_ifindex(void *name)
{
	return if_nametoindex(name);
}

__u32 ifindex_of(const char *device)
{
	return call_inside(find_ifindex, (void *)device);
}

struct query {
	__u32 ifindex, program;
	enum bpf_attach_type hook;
};

static int query_tcx(void *arg)
{
	struct query *query = arg;
	__u32 ids[64], n = 64, flags;

	if (bpf_prog_query(query->ifindex, query->hook, 0, &flags, ids, &n))
		return 0;
	while (n--) {
		if (ids[n] == query->program)
			return 1;
	}
	return 0;
}

bool runs(struct datapath *dp, const char *device, enum attach_direction direction)
{
	struct query query = {
		.ifindex = ifindex_of(device),
		.program = dp->attach.program[direction].id,
		.hook = direction == ATTACH_INGRESS ? 46 : 47, /* tcx */
	};

	return call_inside(query_tcx, &query) || !inside("tc filter show dev %s %s 2>/dev/null | grep -q ' id %u '",
							 device, attach_direction_name(direction), query.program);
}

static struct datapath_limit built_in(enum weir_builtin_limit builtin)
{
	static const __u8 keys[] = {
		[WEIR_BUILTIN_NAMESPACE] = WEIR_KEY_NAMESPACE,
		[WEIR_BUILTIN_USER] = WEIR_KEY_USER,
		[WEIR_BUILTIN_SOURCE_AND_OBJECT] = WEIR_KEY_OBJECT,
	};

	return (struct datapath_limit){ .reason = WEIR_SHED_TOTAL + builtin, .key = keys[builtin] };
}

int limit_set(struct datapath *dp, __u32 server, enum weir_builtin_limit builtin, __u64 per_ns, __u64 burst, __u32 keys)
{
	struct datapath_limit limit = built_in(builtin);

	limit.keys = keys;
	limit.amount = (struct datapath_amount){ .set = true, .per_ns = per_ns, .burst = burst };
	return datapath_limit_set(dp, server, builtin, &limit, &error);
}

int limit_unset(struct datapath *dp, __u32 server, enum weir_builtin_limit builtin)
{
	struct datapath_limit limit = built_in(builtin);

	return datapath_limit_set(dp, server, builtin, &limit, &error);
}

int override_set(struct datapath *dp, __u32 server, enum weir_builtin_limit builtin, __u64 subject, __u64 per_ns,
		 __u64 burst)
{
	struct datapath_amount amount = { .set = true, .per_ns = per_ns, .burst = burst };
	__u32 index = weir_limit_index(server, builtin);
	struct weir_limit there;

	if (bpf_map_lookup_elem(dp->maps.limits, &index, &there) && limit_unset(dp, server, builtin))
		return -1;
	return datapath_override_set(dp, server, builtin, subject, &amount, &error);
}
