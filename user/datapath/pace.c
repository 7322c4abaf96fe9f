/* SPDX-License-Identifier: GPL-2.0 */
/* The device on which packets wait for their time, and what the programs know of it. */
#include <errno.h>

#include "datapath/private.h"
#include "sys/netns.h"
#include "sys/pace.h"

struct pace_call {
	__u32 ifindex; /* 0: there is to be none */
	struct error *err;
};

/* Before Linux 6.4, an ifb drops what a program redirects to it. The next one that can be told apart is 6.6. */
static int make_inside(void *arg)
{
	struct pace_call *call = arg;

	if (!attach_has_tcx())
		return error_set(call->err, -EOPNOTSUPP, "this kernel is older than Linux 6.6");
	return pace_device_make(&call->ifindex, call->err);
}

static int remove_inside(void *arg)
{
	struct pace_call *call = arg;

	return pace_device_remove(call->err);
}

/* What is right already is not written again: a program may be reading it. */
static int settings_write(struct datapath *dp, struct weir_settings *settings, __u32 ifindex, struct error *err)
{
	__u32 zero = 0;

	dp->pace_ifindex = ifindex;
	if (settings->pace_ifindex == ifindex)
		return 0;
	settings->pace_ifindex = ifindex;
	if (bpf_map_update_elem(dp->maps.settings, &zero, settings, BPF_ANY))
		return datapath_map_failed(err, -errno, "settings");
	return 0;
}

int datapath_pace(struct datapath *dp, bool on, struct error *err)
{
	struct pace_call call = { .err = err };
	struct weir_settings settings;
	__u32 zero = 0;
	bool was_on;
	int ret = 0;

	if (bpf_map_lookup_elem(dp->maps.settings, &zero, &settings))
		return datapath_map_failed(err, -errno, "settings");
	was_on = settings.pace_ifindex;
	if (on)
		ret = netns_run(dp->netns_fd, make_inside, &call, err);
	ret = settings_write(dp, &settings, call.ifindex, ret ? NULL : err) ?: ret;
	if (!ret && !on && was_on)
		ret = netns_run(dp->netns_fd, remove_inside, &call, err);
	return ret;
}
