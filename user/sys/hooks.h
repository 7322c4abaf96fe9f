/* SPDX-License-Identifier: GPL-2.0 */
/* Whose programs are on a device's tc hooks, in the order in which they run. Works in the caller's network namespace. */
#ifndef WEIR_USER_SYS_HOOKS_H
#define WEIR_USER_SYS_HOOKS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "sys/attach.h"

struct hook_owner {
	bool clsact;	/* otherwise tcx: these run first */
	bool ours;	/* of some weir */
	__u32 priority; /* of a filter */
	__u32 handle;
	__u32 id;      /* of its program; 0: none, or not known */
	char name[64]; /* of the program, or the kind of filter */
};

/* Returns how many (>= 0), the caller frees *owners; or a negative errno. */
int hooks_read(__u32 ifindex, enum attach_direction direction, struct hook_owner **owners);

/*
 * The program of another weir, not this one's by its id: another agent's, or left over from one. Returns its id, 0 where there is
 * none, or a negative errno.
 */
__s64 hooks_other_weir(__u32 ifindex, enum attach_direction direction, __u32 own);

/* Whether no program has this id any more, on any hook. False where that cannot be found out. */
bool hooks_is_gone(__u32 id);

/* Where among n owners weir runs: before the one with this index, or behind all. It need not be there. */
size_t hooks_place(const struct hook_owner *owners, size_t n, bool tcx);

#endif
