/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the programs inside servers have pinned: links as inside-GENERATION-N, and the maps that are of them alone. Removing the links takes
 * the probes off.
 */
#ifndef WEIR_USER_DATAPATH_INSIDE_PINS_H
#define WEIR_USER_DATAPATH_INSIDE_PINS_H

#include <linux/types.h>

#include "base/error.h"

#define INSIDE_PIN "inside-"

#define DATAPATH_INSIDE_MAPS(X) X(inside_processes) X(inside_near) X(inside_requests) X(inside_seats) X(inside_open)

/* dir: the datapath's; where there is none, nothing is pinned. Drops the links of all generations but this one. */
int inside_pins_drop_others(const char *dir, __u32 generation, struct error *err);

/* Drops all links and maps. */
int inside_pins_drop(const char *dir, struct error *err);

#endif
