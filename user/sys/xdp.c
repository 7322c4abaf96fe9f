/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/xdp.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/links.h"
#include "sys/object_id.h"
#include "sys/pins.h"

const char *xdp_mode_name(enum xdp_mode mode)
{
	static const char *const names[] = {
		[XDP_NONE] = "none", [XDP_MODE_GENERIC] = "generic", [XDP_MODE_NATIVE] = "native"
	};

	return names[mode];
}

static void link_path(char path[static PATH_MAX], const char *dir, __u32 ifindex)
{
	pins_path(path, dir, "link-%u-xdp", ifindex);
}

static void name_program(struct xdp_owner *owner)
{
	CLEANUP_CLOSE int fd = bpf_prog_get_fd_by_id(owner->id);
	struct bpf_prog_info info = {};
	__u32 length = sizeof(info);

	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &length))
		snprintf(owner->name, sizeof(owner->name), "%s", info.name);
}

/*
 * 1: by our link. 0: not, or there is no such link. A negative errno: nobody can tell. A link outlives its device, and a number
 * may be given to another one: the device's program must be the link's.
 */
static int link_runs(const char *dir, __u32 ifindex, __u32 id)
{
	struct bpf_link_info info = {};
	__u32 length = sizeof(info);
	char path[PATH_MAX];

	link_path(path, dir, ifindex);
	CLEANUP_CLOSE int fd = bpf_obj_get(path);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	return bpf_obj_get_info_by_fd(fd, &info, &length) ?: info.xdp.ifindex == ifindex && info.prog_id == id;
}

int xdp_look(const char *dir, __u32 ifindex, struct xdp_owner *owner)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct xdp_owner there = { 0 };
	int ret = bpf_xdp_query(ifindex, 0, &query);

	if (ret)
		return ret;
	if (query.attach_mode) {
		there.mode = query.attach_mode == XDP_ATTACHED_SKB ? XDP_MODE_GENERIC : XDP_MODE_NATIVE;
		there.id = there.mode == XDP_MODE_GENERIC ? query.skb_prog_id : query.drv_prog_id ?: query.hw_prog_id;
		name_program(&there);
		ret = dir ? link_runs(dir, ifindex, there.id) : 0;
		if (ret < 0)
			return ret;
		there.ours = ret;
	}
	*owner = there;
	return 0;
}

static void choose(struct xdp_choice *choice, enum xdp_mode mode, const char *why)
{
	choice->mode = mode;
	snprintf(choice->why, sizeof(choice->why), "%s", why);
}

/*
 * Generic mode runs a few steps before tc, when the kernel has made the skb, and has to make one piece of every packet first: it is
 * not worth it unasked. Native mode saves the skb, but taking it up resets the rings of a device, and turns off offloads of the
 * other end of a veth.
 */
static void choose_auto(const struct device *device, const struct xdp_owner *there, struct xdp_choice *choice)
{
	bool taken_up = there->ours && there->mode == XDP_MODE_NATIVE;

	if (!taken_up && device->kind[0])
		choose(choice, XDP_NONE, "auto: a virtual device gains nothing");
	else if (!taken_up && device->up)
		choose(choice, XDP_NONE, "auto: it is up, and native mode would reset its rings");
	else
		choose(choice, XDP_MODE_NATIVE, "");
}

void xdp_choose(enum xdp_asked asked, const struct device *device, const struct xdp_owner *there,
		struct xdp_choice *choice)
{
	choose(choice, XDP_NONE, "off");
	if (asked == XDP_OFF)
		return;
	if (device->type == ARPHRD_LOOPBACK) {
		choose(choice, XDP_NONE, "loopback");
	} else if (there->mode != XDP_NONE && !there->ours) {
		choice->mode = XDP_NONE;
		snprintf(choice->why, sizeof(choice->why), "the program %s (id %u) is there", there->name, there->id);
	} else if (asked == XDP_AUTO) {
		choose_auto(device, there, choice);
	} else {
		choose(choice, asked == XDP_NATIVE ? XDP_MODE_NATIVE : XDP_MODE_GENERIC, "");
	}
}

/* A veth in native mode hands it to its other end, which loses it if it has neither a program of its own nor GRO: that cannot be seen. */
bool xdp_answers(enum xdp_mode mode, const struct device *device)
{
	return mode == XDP_MODE_GENERIC || (mode == XDP_MODE_NATIVE && strcmp(device->kind, "veth") != 0);
}

static int xdp_update(const char *dir, __u32 ifindex, int program)
{
	char path[PATH_MAX];

	link_path(path, dir, ifindex);
	CLEANUP_CLOSE int fd = bpf_obj_get(path);
	return fd < 0 ? fd : bpf_link_update(fd, program, NULL);
}

int xdp_put(const char *dir, __u32 ifindex, int program, enum xdp_mode mode, const struct xdp_owner *there)
{
	LIBBPF_OPTS(bpf_link_create_opts, options,
		    .flags = mode == XDP_MODE_NATIVE ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE);
	char path[PATH_MAX];

	if (there->ours && there->mode == mode)
		return there->id == object_id(program) ? 0 : xdp_update(dir, ifindex, program);
	xdp_remove(dir, ifindex);
	link_path(path, dir, ifindex);
	CLEANUP_CLOSE int fd = bpf_link_create(program, ifindex, BPF_XDP, &options);
	if (fd < 0)
		return fd;
	return bpf_obj_pin(fd, path) ?: 1;
}

void xdp_remove(const char *dir, __u32 ifindex)
{
	char path[PATH_MAX];

	link_path(path, dir, ifindex);
	CLEANUP_CLOSE int fd = bpf_obj_get(path);

	/* Unpinning alone would take the program off only some time later. */
	if (fd >= 0)
		bpf_link_detach(fd);
	unlink(path);
}
