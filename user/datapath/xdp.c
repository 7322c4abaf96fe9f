/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The program at XDP, on the devices that are to have it. It has no pins but its links: an agent that takes over loads its own, and
 * puts it in the place of the one that is there. tc behind it refuses the same, so nothing here is an error to those who
 * want limits: why a device goes without it stands in its struct datapath_link.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "datapath/map_cursor.h"
#include "datapath/xdp.h"
#include "sys/addresses.h"
#include "sys/libbpf_log.h"
#include "sys/privilege.h"
#include "weir.skel.h"
#include "xdp.skel.h"

/* --- the program */

int datapath_try_cookies(void)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_LOAD);

	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_XDP, BPF_FUNC_tcp_raw_gen_syncookie_ipv4, NULL);
}

/* Of the kernel's clock: its coarse clocks move with it. 0: this kernel makes no SYN cookies for XDP. */
static __u32 cookie_ticks_per_s(void)
{
	struct timespec tick = { 0 };

	if (datapath_try_cookies() != 1 || clock_getres(CLOCK_MONOTONIC_COARSE, &tick) || tick.tv_sec || !tick.tv_nsec)
		return 0;
	return WEIR_NS_PER_S / tick.tv_nsec;
}

static int load(struct datapath *dp, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_LOAD);
	struct xdp_bpf *skeleton;
	int ret;

	libbpf_log_begin();
	skeleton = xdp_bpf__open();
	if (!skeleton)
		return error_set(err, -errno, "opening the BPF object: %s", libbpf_log_failure());
	skeleton->rodata->ticks_per_s = cookie_ticks_per_s();
	ret = datapath_maps_share(dp, skeleton->obj) ?: xdp_bpf__load(skeleton);
	if (ret) {
		xdp_bpf__destroy(skeleton);
		return datapath_load_failed(ret, err);
	}
	dp->xdp = skeleton;
	return 0;
}

/* A kernel that has refused the program once is not asked again. */
static bool is_loaded(struct datapath *dp)
{
	if (!dp->xdp && !dp->no_xdp.text[0])
		load(dp, &dp->no_xdp);
	return dp->xdp;
}

static struct bpf_program *program_of(const struct xdp_bpf *skeleton, enum xdp_mode mode)
{
	return mode == XDP_MODE_NATIVE ? skeleton->progs.weir_xdp : skeleton->progs.weir_xdp_generic;
}

void datapath_xdp_close(struct datapath *dp)
{
	xdp_bpf__destroy(dp->xdp);
	dp->xdp = NULL;
}

/* --- which frames are for which device */

static const struct device *find(const struct xdp_devices *of, __u32 ifindex)
{
	for (int i = 0; ifindex && i < of->n; i++)
		if (of->devices[i].ifindex == ifindex)
			return &of->devices[i];
	return NULL;
}

static enum xdp_mode mode_of(const struct xdp_devices *of, const struct device *device)
{
	return of->links[device - of->devices].xdp;
}

struct entries {
	struct weir_device_key *keys;
	size_t n;
};

static int entry_put(int map, struct entries *entries, const struct device *below, __u32 tags,
		     const struct device *device, bool answers)
{
	struct weir_device_key key = { .ifindex = below->ifindex, .tags = tags };
	struct weir_device value = { .ifindex = device->ifindex, .answers = answers };

	memcpy(value.address, device->address, sizeof(value.address));
	entries->keys[entries->n++] = key;
	return bpf_map_update_elem(map, &key, &value, BPF_ANY) ? -errno : 0;
}

/* The device's own frames, and those that it has of the devices below it, by VLAN tags. */
static int entries_put(int map, struct entries *entries, const struct xdp_devices *of, const struct device *device)
{
	const struct device *below = device;
	__u32 tags = 0;
	int ret = 0;

	for (int depth = 0; below && !ret; depth++) {
		if (mode_of(of, below) != XDP_NONE)
			ret = entry_put(map, entries, below, tags, device, xdp_answers(mode_of(of, below), below));
		if (depth == WEIR_DEVICE_TAGS || strcmp(below->kind, "vlan"))
			break;
		tags |= weir_device_tags(0, below->vlan, below->service) << (16 * depth);
		below = find(of, below->parent);
	}
	return ret;
}

static bool is_gone(const void *key, const void *value, const void *arg)
{
	const struct entries *entries = arg;

	(void)value;
	for (size_t i = 0; i < entries->n; i++)
		if (!memcmp(&entries->keys[i], key, sizeof(entries->keys[i])))
			return false;
	return true;
}

static int devices_sync(struct datapath *dp, const struct xdp_devices *of)
{
	int map = bpf_map__fd(dp->xdp->maps.devices), ret = 0;
	CLEANUP_FREE struct weir_device_key *keys = calloc(of->n + 1, (WEIR_DEVICE_TAGS + 1) * sizeof(*keys));
	struct entries entries = { .keys = keys };

	if (!keys)
		return -ENOMEM;
	for (int i = 0; i < of->n && !ret; i++)
		ret = entries_put(map, &entries, of, &of->devices[i]);
	return ret ?: map_drop_if(map, sizeof(struct weir_device_key), sizeof(struct weir_device), is_gone, &entries);
}

/* --- which addresses are this namespace's */

static int address_put(int map, const struct own_address *addresses, int n, int i)
{
	__u32 ifindex = addresses[i].ifindex;

	for (int j = 0; j < n; j++)
		if (addresses[j].ifindex != addresses[i].ifindex &&
		    !memcmp(addresses[j].bytes, addresses[i].bytes, sizeof(addresses[i].bytes)))
			ifindex = 0;
	return bpf_map_update_elem(map, addresses[i].bytes, &ifindex, BPF_ANY) ? -errno : 0;
}

struct own_addresses {
	const struct own_address *addresses;
	int n;
};

static bool address_is_gone(const void *key, const void *value, const void *arg)
{
	const struct own_addresses *own = arg;

	(void)value;
	for (int i = 0; i < own->n; i++)
		if (!memcmp(own->addresses[i].bytes, key, sizeof(own->addresses[i].bytes)))
			return false;
	return true;
}

/* Those for which there is no room are refused at tc, and answered by the kernel. */
static int addresses_sync(struct datapath *dp)
{
	int map = bpf_map__fd(dp->xdp->maps.own_addresses), ret = 0, n;
	CLEANUP_FREE struct own_address *addresses = NULL;
	struct own_addresses own;
	struct error err;

	n = addresses_read(&addresses, &err);
	if (n < 0)
		return n;
	own = (struct own_addresses){ .addresses = addresses, .n = n };
	ret = map_drop_if(map, sizeof(struct weir_own_address), sizeof(__u32), address_is_gone, &own);
	for (int i = 0; i < n && !ret; i++)
		ret = address_put(map, addresses, n, i);
	return ret == -E2BIG ? 0 : ret;
}

/* --- links */

static void go_without(struct datapath_link *link, const char *why)
{
	link->xdp = XDP_NONE;
	snprintf(link->xdp_why, sizeof(link->xdp_why), "%s", why);
}

static void choose(struct datapath *dp, enum xdp_asked asked, const struct device *device, struct xdp_owner *there,
		   struct datapath_link *link)
{
	struct xdp_choice choice;

	if (!link->attached)
		return;
	if (xdp_look(dp->dir, device->ifindex, there)) {
		go_without(link, "the kernel does not say what is there");
		return;
	}
	xdp_choose(asked, device, there, &choice);
	go_without(link, choice.why);
	link->xdp = choice.mode;
	if (choice.mode != XDP_NONE && !is_loaded(dp))
		go_without(link, dp->no_xdp.text);
}

static void put(struct datapath *dp, const struct xdp_owner *there, struct datapath_link *link)
{
	int ret;

	if (link->xdp == XDP_NONE) {
		if (there->ours)
			xdp_remove(dp->dir, link->ifindex);
		return;
	}
	ret = xdp_put(dp->dir, link->ifindex, bpf_program__fd(program_of(dp->xdp, link->xdp)), link->xdp, there);
	if (ret == -EOPNOTSUPP && link->xdp == XDP_MODE_NATIVE)
		go_without(link, "its driver has no native mode");
	else if (ret < 0)
		go_without(link, strerror(-ret));
}

static const char *no_cookies(const struct datapath *dp, const struct device *device, const struct datapath_link *link)
{
	if (link->xdp == XDP_NONE)
		return "no program at XDP";
	if (!dp->xdp->rodata->ticks_per_s)
		return "this kernel makes none for XDP";
	return xdp_answers(link->xdp, device) ? NULL : "in native mode a veth may lose what is sent back";
}

void datapath_xdp_sync(struct datapath *dp, enum xdp_asked asked, const struct xdp_devices *of)
{
	CLEANUP_FREE struct xdp_owner *there = calloc(of->n + 1, sizeof(*there));
	bool used = false;
	int ret = 0;

	for (int i = 0; i < of->n && there; i++) {
		choose(dp, asked, &of->devices[i], &there[i], &of->links[i]);
		used |= of->links[i].xdp != XDP_NONE;
	}
	if (used)
		ret = devices_sync(dp, of) ?: addresses_sync(dp);
	for (int i = 0; i < of->n && there; i++) {
		if (ret && of->links[i].xdp != XDP_NONE)
			go_without(&of->links[i], strerror(-ret));
		put(dp, &there[i], &of->links[i]);
	}
	for (int i = 0; i < of->n; i++)
		of->links[i].no_cookies = no_cookies(dp, &of->devices[i], &of->links[i]);
	if (!used)
		datapath_xdp_close(dp);
}
