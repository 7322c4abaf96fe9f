/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath/datapath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "datapath/private.h"
#include "datapath/xdp.h"
#include "sys/netlink.h"
#include "sys/netns.h"
#include "sys/pins.h"
#include "sys/privilege.h"
#include "weir.skel.h"

#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1

const struct datapath_written *datapath_written(const struct datapath *dp)
{
	return &dp->written;
}

__u64 datapath_now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int datapath_run(int prog_fd, const void *input, size_t size)
{
	__u8 frame[ETH_HLEN + DATAPATH_INPUT_MAX] = {};
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = ETH_HLEN + size);

	if (size > DATAPATH_INPUT_MAX)
		return -E2BIG;
	memcpy(frame + ETH_HLEN, input, size);
	return bpf_prog_test_run_opts(prog_fd, &run);
}

int datapath_kernel_check(struct error *err)
{
	struct utsname kernel;
	int major = 0, minor = 0;

	uname(&kernel);
	sscanf(kernel.release, "%d.%d", &major, &minor);
	if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
		return error_set(err, -EOPNOTSUPP, "this kernel is %s: weir needs Linux %d.%d or later", kernel.release,
				 KERNEL_MAJOR, KERNEL_MINOR);
	if (access(DATAPATH_KERNEL_BTF, R_OK))
		return error_set(err, -EOPNOTSUPP,
				 "this kernel does not describe its types (%s: %s): weir needs CONFIG_DEBUG_INFO_BTF",
				 DATAPATH_KERNEL_BTF, strerror(errno));
	return 0;
}

static int try_bpf(void)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_LOAD);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "weir_try", sizeof(__u32), sizeof(__u32), 1, NULL);

	if (fd >= 0)
		close(fd);
	return fd;
}

int datapath_permission_check(struct error *err)
{
	int ret = privilege_check(err);

	if (ret)
		return ret;
	if (try_bpf() == -EPERM)
		return error_set(
			err, -EPERM,
			"the kernel refuses bpf() to the agent, although it has the capabilities: a seccomp filter "
			"forbids it, or it is in a user namespace; run it as root of the machine itself");
	return 0;
}

int datapath_pins_check(const char *pin_dir, struct error *err)
{
	return pins_mount(pin_dir, err);
}

static int monitor_inside(void *arg)
{
	struct datapath *dp = arg;
	CLEANUP_NETLINK struct mnl_socket *monitor = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (!monitor)
		return -errno;
	if (mnl_socket_bind(monitor, RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR, MNL_SOCKET_AUTOPID))
		return -errno;
	dp->monitor = monitor;
	monitor = NULL;
	return 0;
}

static int monitor_open(struct datapath *dp, struct error *err)
{
	int ret = netns_run(dp->netns_fd, monitor_inside, dp, err);

	return ret ? error_set(err, ret, "watching the network devices: %s", strerror(-ret)) : 0;
}

/* One agent for each directory of pins, wherever it keeps its state: another one would undo what it finds there. */
int datapath_directory_lock(struct datapath *dp, struct error *err)
{
	CLEANUP_CLOSE int fd = open(dp->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return error_set(err, -errno, "%s: %s", dp->dir, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB))
		return error_set(
			err, -EBUSY,
			"another agent, with another state directory, holds the pins in %s: stop it, or give each "
			"agent a --pin-dir of its own",
			dp->dir);
	if (dp->dir_fd >= 0)
		close(dp->dir_fd);
	dp->dir_fd = cleanup_take(&fd);
	return 0;
}

static int directory_open(struct datapath *dp, const struct datapath_options *options, struct error *err)
{
	int ret = pins_directory(options->pin_dir, err);

	if (ret)
		return ret;
	if (asprintf(&dp->dir, "%s/net-%llu", options->pin_dir, options->netns_cookie) < 0) {
		dp->dir = NULL;
		return error_set(err, -ENOMEM, "out of memory");
	}
	ret = pins_directory(dp->dir, err);
	if (ret)
		return ret;
	return datapath_directory_lock(dp, err);
}

/* NULL without memory. */
static struct datapath *datapath_new(void)
{
	struct datapath *dp = calloc(1, sizeof(*dp));

	if (!dp)
		return NULL;
	dp->dir_fd = -1;
	dp->netns_fd = -1;
	for (int i = 0; i < DATAPATH_PROGRAMS_COUNT; i++)
		dp->programs[i] = -1;
	dp->cpus = libbpf_num_possible_cpus();
	pthread_mutex_init(&dp->lock, NULL);
	return dp;
}

int datapath_open_alone(struct datapath **out, struct error *err)
{
	struct datapath *dp = datapath_new();
	int ret = dp ? datapath_maps_alone(dp, err) : error_set(err, -ENOMEM, "out of memory");

	if (ret) {
		datapath_close(dp);
		return ret;
	}
	*out = dp;
	return 0;
}

int datapath_open(struct datapath **out, const struct datapath_options *options, struct error *err)
{
	struct datapath *dp = datapath_new();
	int ret;

	if (!dp)
		return error_set(err, -ENOMEM, "out of memory");
	dp->netns_fd = options->netns_fd;
	dp->netns_cookie = options->netns_cookie;
	ret = directory_open(dp, options, err)			      ?:
		      datapath_maps_load(dp, options->conns_max, err) ?:
		      datapath_maps_keep(dp, err)		      ?:
		      datapath_trace_open(dp, err)		      ?:
		      datapath_programs_keep(dp, err)		      ?:
									monitor_open(dp, err);
	if (ret) {
		datapath_close(dp);
		return ret;
	}
	*out = dp;
	return 0;
}

void datapath_close(struct datapath *dp)
{
	if (!dp)
		return;
	if (dp->monitor)
		mnl_socket_close(dp->monitor);
	ring_buffer__free(dp->ring);
	datapath_inside_close(dp);
	datapath_xdp_close(dp);
	datapath_replay_close(dp);
	weir_bpf__destroy(dp->explain);
	weir_bpf__destroy(dp->skeleton);
	datapath_programs_close(dp);
	if (dp->dir_fd >= 0)
		close(dp->dir_fd);
	pthread_mutex_destroy(&dp->lock);
	free(dp->links);
	free(dp->dir);
	free(dp);
}

static int detach_all(void *arg)
{
	struct datapath *dp = arg;
	CLEANUP_FREE __u32 *ifindexes = NULL;
	int n = attach_list(&dp->attach, &ifindexes);

	for (int i = 0; i < n; i++)
		attach_remove(&dp->attach, ifindexes[i]);
	return n < 0 ? n : 0;
}

static int unpin(const struct datapath *dp, const char *name, struct error *err)
{
	char path[PATH_MAX];

	pins_path(path, dp->dir, "%s", name);
	return unlink(path) && errno != ENOENT ? error_set(err, -errno, "removing %s: %s", path, strerror(errno)) : 0;
}

/* The maps go last, `settings` the very last: as long as any is there, it tells which version they belong to. */
int datapath_remove(struct datapath *dp, struct error *err)
{
	static const char *const maps[] = {
#define X(name) #name,
		DATAPATH_MAPS(X)
#undef X
	};
	int ret = datapath_inside_remove(dp, err);

	if (ret)
		return ret;
	ret = netns_run(dp->netns_fd, detach_all, dp, err);
	if (ret)
		return error_set(err, ret, "detaching: %s", strerror(-ret));
	ret = datapath_pace(dp, false, err) ?: datapath_hold_sync(dp, NULL, 0, err);
	if (ret)
		return ret;
	for (int i = 0; i < DATAPATH_PROGRAMS_COUNT && !ret; i++)
		ret = unpin(dp, datapath_program_pin(i), err);
	for (size_t n = sizeof(maps) / sizeof(*maps); n && !ret; n--)
		ret = unpin(dp, maps[n - 1], err);
	if (ret)
		return ret;
	if (rmdir(dp->dir) && errno != ENOENT)
		return error_set(err, -errno, "removing %s: %s", dp->dir, strerror(errno));
	free(dp->links);
	dp->links = NULL;
	dp->n_links = 0;
	return 0;
}
