/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Processes that are found at once, without a search: each has one place, and those that share it are found in `inside_processes`, where all
 * are. What a CPU that has rested waits for are lines of memory, and a hash has three before the entry's own.
 *
 *   map           type    key                         value
 *   inside_near   ARRAY   weir_inside_near_of(tgid)   struct weir_inside_near
 *
 * Only the agent writes here, but for what programs have learnt. An entry has its process' number while it says what `inside_processes` says
 * of it. In this order, so that no program ever finds another word, or half of one:
 *
 * - the number goes, in one store, before anything changes in `inside_processes`. Programs look there from then on;
 * - the content is written over only after a grace period of RCU, with the number 0. Who had found the entry by its number has ended by then,
 *   for a program that may sleep, which such a period does not wait for, never looks here. So under a number the content never changes;
 * - the number comes last, in one store. Whoever sees it sees the content, for x86 makes stores visible in their order.
 *
 * An agent that ends anywhere in between leaves an entry without a number, which is none. Other places for processes, or another struct,
 * are another map: programs of before would look where this agent does not clear.
 */
#ifndef WEIR_INSIDE_NEAR_H
#define WEIR_INSIDE_NEAR_H

#include "weir/inside/process.h"

#define WEIR_INSIDE_NEAR 64 /* places: a power of two. With more, the kernel would have the map in small pages. */

struct weir_inside_near {
	__u32 id; /* 0: nobody's */
	__u32 pad;
	struct weir_inside_process process;
};
WEIR_ASSERT_SIZE(struct weir_inside_near, 456);

WEIR_INLINE __u32 weir_inside_near_of(__u32 process)
{
	return process & (WEIR_INSIDE_NEAR - 1);
}

/* What weir_inside_near_number sets: the number of an entry, and nothing else of it. */
struct weir_inside_numbered {
	__u32 at;
	__u32 id;
};

#endif
