/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two programs on a device: by tcx links, pinned as DIR/link-IFINDEX-{egress,ingress}, or on an older kernel as
 * filters of a clsact qdisc, with DIR/clsact-IFINDEX as the note that they are there and DIR/qdisc-IFINDEX as the note
 * that the qdisc is ours. Functions work in the caller's network namespace, may be repeated, and repair what a killed
 * process left half done. Egress goes on first and off last: what ingress answers, egress must translate.
 */
#ifndef WEIR_USER_SYS_ATTACH_H
#define WEIR_USER_SYS_ATTACH_H

#include <linux/types.h>
#include <stdbool.h>

#include "base/error.h"

enum attach_way {
	ATTACH_UNKNOWN, /* until the first device shows what the kernel has */
	ATTACH_TCX,
	ATTACH_CLSACT,
};

enum attach_direction {
	ATTACH_EGRESS,
	ATTACH_INGRESS,
	ATTACH_DIRECTIONS,
};

struct attach {
	const char *dir; /* of the pins */
	struct {
		int fd;
		__u32 id; /* the kernel's */
	} program[ATTACH_DIRECTIONS];
	enum attach_way way;
};

/* Ours among the filters of a device: before those that take what number is free. */
#define ATTACH_FILTER_PRIORITY 1
#define ATTACH_FILTER_HANDLE 0x77656972 /* "weir" */

const char *attach_direction_name(enum attach_direction direction);
__u32 attach_filter_parent(enum attach_direction direction);

/* Has this kernel tcx? Linux 6.6 and later do. */
bool attach_has_tcx(void);

/* The ids of the programs on a device, in the order in which they run. How many, or a negative errno; -EINVAL: no tcx. */
#define ATTACH_TCX_MAX 64
int attach_tcx_programs(__u32 ifindex, enum attach_direction direction, __u32 ids[static ATTACH_TCX_MAX]);

/* Makes a clsact qdisc on the loopback device of the caller's namespace, which must be for trying alone. -ENOENT: no clsact. */
int attach_try_clsact(void);

/* 1: the programs, or one of them, were not there; -ENODEV: the device is gone. */
int attach_add(struct attach *attach, __u32 ifindex, struct error *err);
/* With the one at XDP (xdp.h). */
void attach_remove(const struct attach *attach, __u32 ifindex);

/* Puts the programs in the place of the ones found on the devices that have them. */
int attach_take_over(struct attach *attach, struct error *err);

/* The devices with pins or notes. Returns how many and the list, which the caller frees; or a negative errno. */
int attach_list(const struct attach *attach, __u32 **ifindexes);

#endif
