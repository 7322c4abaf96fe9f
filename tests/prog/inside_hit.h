/* SPDX-License-Identifier: GPL-2.0 */
/* A call in this process that can be probed, with the registers that a Go server would have there. */
#ifndef WEIR_TESTS_INSIDE_HIT_H
#define WEIR_TESTS_INSIDE_HIT_H

#include "datapath/inside.h"

/* What is in AX and BX. goroutine: the runtime.g */
void inside_hit_with(const void *ax, const void *bx, const void *goroutine);
/* request: in AX */
void inside_hit(const void *request, const void *goroutine);
/* Where it is probed, at one point. Its descriptor is the caller's to close. */
struct datapath_binary inside_hit_binary(enum weir_inside_point point);
/* This process, as one that is looked into there. */
struct datapath_process inside_hit_process(const struct datapath_binary *binary,
					   const struct weir_inside_layout *layout);
/* How many hits there were in processes that are looked into: each has one of these outcomes. */
__u64 inside_hits_counted(void);

#endif
