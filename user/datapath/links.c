/* SPDX-License-Identifier: GPL-2.0 */
/* Keeping the programs on the devices of the namespace, as they come and go. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "datapath/map_sync.h"
#include "datapath/private.h"
#include "datapath/xdp.h"
#include "sys/conntrack.h"
#include "sys/hooks.h"
#include "sys/links.h"
#include "sys/netns.h"

int datapath_netlink_fd(const struct datapath *dp)
{
	return mnl_socket_get_fd(dp->monitor);
}

/* What was said does not matter, lost messages included: all devices are read anew. */
static void monitor_drain(struct datapath *dp)
{
	char buffer[8192];

	while (mnl_socket_recvfrom(dp->monitor, buffer, sizeof(buffer)) > 0 || errno == ENOBUFS || errno == ENOSPC)
		;
}

static bool is_attached(const struct datapath_link *links, int n, __u32 ifindex)
{
	for (int i = 0; i < n; i++) {
		if (links[i].ifindex == ifindex && links[i].attached)
			return true;
	}
	return false;
}

static int detach_others(struct datapath *dp, const struct datapath_link *links, int n)
{
	CLEANUP_FREE __u32 *attached = NULL;
	int n_attached = attach_list(&dp->attach, &attached);

	for (int i = 0; i < n_attached; i++) {
		if (is_attached(links, n, attached[i]))
			continue;
		attach_remove(&dp->attach, attached[i]);
		dp->written.of[DATAPATH_links].dropped++;
	}
	return n_attached < 0 ? n_attached : 0;
}

/* A device that had the programs and has lost them is another matter than one that is new. */
static void count_added(struct datapath *dp, __u32 ifindex, int added)
{
	struct datapath_changes *written = &dp->written.of[DATAPATH_links];
	bool lost = is_attached(dp->links, dp->n_links, ifindex);

	if (added > 0)
		*(lost ? &written->changed : &written->added) += 1;
}

/* What cannot be read is taken for none: it is only to be told of. */
static __u32 find_other_weir(const struct datapath *dp, __u32 ifindex)
{
	__s64 id = 0;

	for (int d = 0; d < ATTACH_DIRECTIONS && id <= 0; d++)
		id = hooks_other_weir(ifindex, d, dp->attach.program[d].id);
	return id > 0 ? id : 0;
}

struct sync_call {
	struct datapath *dp;
	const struct links_wanted *wanted;
	enum xdp_asked xdp;
	struct error *err;
};

/* Which of the devices are to have the programs, and why the others are not. NULL: out of memory. */
static struct datapath_link *choose(const struct device *devices, int n, const struct links_wanted *wanted)
{
	struct datapath_link *links = calloc(n + 1, sizeof(*links));

	for (int i = 0; links && i < n; i++) {
		links[i].ifindex = devices[i].ifindex;
		memcpy(links[i].name, devices[i].name, sizeof(links[i].name));
		links[i].how = links_left_out(&devices[i], devices, n, wanted);
		links[i].attached = !links[i].how;
	}
	return links;
}

/* To a device that is to have the programs. One that has gone meanwhile is no failure. */
static int attach_to(struct datapath *dp, struct datapath_link *link, struct error *err)
{
	int ret = attach_add(&dp->attach, link->ifindex, err);

	count_added(dp, link->ifindex, ret);
	link->attached = ret >= 0;
	link->other_weir = ret >= 0 ? find_other_weir(dp, link->ifindex) : 0;
	link->how = ret < 0 ? "failed" : dp->attach.way == ATTACH_TCX ? "tcx" : "clsact";
	return ret < 0 && ret != -ENODEV ? ret : 0;
}

/* Whose packets are limited where devices were named; where none was, nobody asks. */
static int named_sync(struct datapath *dp, const struct device *devices, int n, const struct links_wanted *wanted)
{
	const struct map_range range = {
		.part = DATAPATH_named_devices,
		.fd = dp->maps.named_devices,
		.key_size = sizeof(__u32),
		.value_size = sizeof(__u8),
	};
	CLEANUP_FREE __u32 *keys = calloc(n + 1, sizeof(*keys));
	CLEANUP_FREE __u8 *values = calloc(n + 1, sizeof(*values));
	size_t n_named = 0;

	if (!keys || !values)
		return -ENOMEM;
	for (int i = 0; i < n && wanted->names; i++)
		if (links_named(&devices[i], devices, n, wanted))
			keys[n_named++] = devices[i].ifindex;
	return map_sync(dp, &range, &(struct map_entries){ keys, values, n_named });
}

/* In the place of what was known of the devices before. */
static void keep(struct datapath *dp, struct datapath_link *links, int n)
{
	pthread_mutex_lock(&dp->lock);
	free(dp->links);
	dp->links = links;
	dp->n_links = n;
	pthread_mutex_unlock(&dp->lock);
}

/*
 * A device that is to lose the programs loses them before another gets them: no packet is handled twice in between. One
 * that fails does not keep the others from being served; the first failure is told.
 */
static int sync_inside(void *arg)
{
	struct sync_call *call = arg;
	struct datapath *dp = call->dp;
	CLEANUP_FREE struct device *devices = NULL;
	struct datapath_link *links;
	int ret, failed, n = links_read(&devices, call->err);

	if (n < 0)
		return n;
	links = choose(devices, n, call->wanted);
	if (!links)
		return error_set(call->err, -ENOMEM, "out of memory");
	ret = named_sync(dp, devices, n, call->wanted);
	if (ret)
		datapath_map_failed(call->err, ret, "named_devices");
	failed = detach_others(dp, links, n);
	if (failed && !ret)
		error_set(call->err, failed, "reading %s: %s", dp->dir, strerror(-failed));
	ret = ret ?: failed;
	for (int i = 0; i < n; i++) {
		failed = links[i].attached ? attach_to(dp, &links[i], ret ? NULL : call->err) : 0;
		ret = ret ?: failed;
	}
	datapath_xdp_sync(dp, call->xdp, &(struct xdp_devices){ .devices = devices, .links = links, .n = n });
	keep(dp, links, n);
	return ret;
}

int datapath_links_sync(struct datapath *dp, const struct datapath_interfaces *wanted, struct error *err)
{
	struct links_wanted names = { .names = wanted ? wanted->names : NULL, .n = wanted ? wanted->n : 0 };
	struct sync_call call = { .dp = dp, .wanted = &names, .xdp = wanted ? wanted->xdp : XDP_OFF, .err = err };

	monitor_drain(dp);
	return datapath_directory_sync(dp, err) ?: netns_run(dp->netns_fd, sync_inside, &call, err);
}

/* What ends elsewhere tells nobody: whoever has just uninstalled the other weir is not told to do so until the next look. */
static void forget_gone(struct datapath_link *links, int n)
{
	for (int i = 0; i < n; i++)
		if (links[i].other_weir && hooks_is_gone(links[i].other_weir))
			links[i].other_weir = 0;
}

int datapath_links(struct datapath *dp, struct datapath_link **links, struct error *err)
{
	struct datapath_link *copy;
	int n;

	pthread_mutex_lock(&dp->lock);
	n = dp->n_links;
	copy = calloc(n + 1, sizeof(*copy));
	if (copy && n)
		memcpy(copy, dp->links, n * sizeof(*copy));
	pthread_mutex_unlock(&dp->lock);
	if (!copy)
		return error_set(err, -ENOMEM, "out of memory");
	forget_gone(copy, n);
	*links = copy;
	return n;
}

static int tracked_inside(void *arg)
{
	int tracked = conntrack_tracks_loopback();

	return tracked < 0 ? error_set(arg, tracked, "a connection there: %s", strerror(-tracked)) : tracked;
}

int datapath_loopback_tracked(struct datapath *dp, struct error *err)
{
	return netns_run(dp->netns_fd, tracked_inside, err, err);
}
