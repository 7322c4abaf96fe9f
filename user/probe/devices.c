/* SPDX-License-Identifier: GPL-2.0 */
/* What is on the devices of a namespace: others' programs, and offloads. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/read.h"
#include "sys/attach.h"
#include "sys/hooks.h"
#include "sys/links.h"
#include "sys/netns.h"
#include "sys/offload.h"
#include "sys/xdp.h"

#define BIG_TCP 65536 /* packets above it have no length in their IPv4 header */

static json_t *describe_owner(const struct hook_owner *owner)
{
	json_t *json = json_pack("{s:s, s:s, s:b}", "by", owner->clsact ? "clsact" : "tcx", "program", owner->name,
				 "weir", owner->ours);

	if (owner->id)
		json_object_set_new(json, "id", json_integer(owner->id));
	if (owner->clsact)
		json_object_set_new(json, "priority", json_integer(owner->priority));
	return json;
}

/* Where weir's own program will be, if it is not there. */
static void add_place(json_t *list, const struct hook_owner *owners, size_t n, bool tcx, enum attach_direction d)
{
	size_t at = hooks_place(owners, n, tcx);
	char name[32];

	if (at < n && owners[at].ours)
		return;
	snprintf(name, sizeof(name), "weir_%s", attach_direction_name(d));
	json_array_insert_new(list, at,
			      json_pack("{s:s, s:s, s:b, s:b}", "by", tcx ? "tcx" : "clsact", "program", name, "weir",
					1, "planned", 1));
}

static json_t *describe_hook(const struct device *device, enum attach_direction d, bool tcx, bool wanted)
{
	CLEANUP_FREE struct hook_owner *owners = NULL;
	int n = hooks_read(device->ifindex, d, &owners);
	json_t *list = json_array();

	if (n < 0) {
		json_decref(list);
		return json_null();
	}
	for (int i = 0; i < n; i++)
		json_array_append_new(list, describe_owner(&owners[i]));
	if (wanted)
		add_place(list, owners, n, tcx, d);
	return list;
}

/* One, or none. */
static json_t *describe_xdp(const struct xdp_owner *owner)
{
	json_t *list = json_array();

	if (owner->mode != XDP_NONE)
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:b, s:i}", "by", xdp_mode_name(owner->mode), "program",
						owner->name, "weir", !strncmp(owner->name, "weir_", strlen("weir_")),
						"id", owner->id));
	return list;
}

/* Why weir would put none there unasked; "": it would, or there is one. */
static json_t *describe_xdp_why(const struct device *device, const struct xdp_owner *owner)
{
	struct xdp_choice choice;

	xdp_choose(XDP_AUTO, device, owner, &choice);
	return json_string(owner->mode == XDP_NONE ? choice.why : "");
}

static json_t *describe_offloads(const char *device)
{
	bool on[OFFLOAD_COUNT];
	json_t *list = json_array();

	if (offload_read(device, on))
		return list;
	for (int offload = 0; offload < OFFLOAD_COUNT; offload++)
		if (on[offload])
			json_array_append_new(list, json_string(offload_name(offload)));
	return list;
}

static json_t *describe_device(const struct device *devices, int n, int i)
{
	const struct device *device = &devices[i];
	const char *left_out = links_left_out(device, devices, n, &(struct links_wanted){ 0 });
	bool tcx = attach_has_tcx(), known;
	struct xdp_owner xdp;

	known = !xdp_look(NULL, device->ifindex, &xdp);
	return json_pack("{s:s, s:s?, s:o, s:o, s:o, s:o, s:o, s:b, s:i, s:i}", "name", device->name, "left_out",
			 left_out, "xdp", known ? describe_xdp(&xdp) : json_null(), "xdp_why",
			 known ? describe_xdp_why(device, &xdp) : json_null(), "ingress",
			 describe_hook(device, ATTACH_INGRESS, tcx, !left_out), "egress",
			 describe_hook(device, ATTACH_EGRESS, tcx, !left_out), "offloads",
			 describe_offloads(device->name), "big_tcp",
			 device->gso_max > BIG_TCP || device->gro_max > BIG_TCP, "gso_max", (int)device->gso_max,
			 "gro_max", (int)device->gro_max);
}

struct call {
	json_t *list;
	struct error *err;
};

static int devices_inside(void *arg)
{
	CLEANUP_FREE struct device *devices = NULL;
	struct call *call = arg;
	int n = links_read(&devices, call->err);

	for (int i = 0; i < n; i++)
		json_array_append_new(call->list, describe_device(devices, n, i));
	return n < 0 ? n : 0;
}

int probe_devices(int netns_fd, json_t **out, struct error *err)
{
	CLEANUP_JSON json_t *list = json_array();
	struct call call = { .list = list, .err = err };
	int ret;

	/* Who is not root can look at his own namespace, without entering it. */
	ret = netns_fd < 0 ? devices_inside(&call) : netns_run(netns_fd, devices_inside, &call, err);
	if (!ret)
		*out = json_incref(list);
	return ret;
}
