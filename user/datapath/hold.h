/* SPDX-License-Identifier: GPL-2.0 */
/* How what cannot be read waits: at the sockets of cgroups, or on a device. */
#ifndef WEIR_USER_DATAPATH_HOLD_H
#define WEIR_USER_DATAPATH_HOLD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct datapath;

/* Why it goes without the program at the sockets; "": it does not. */
const char *datapath_no_hold(const struct datapath *dp);

/*
 * Makes these cgroups (paths) the ones whose sockets are held when they cannot be read. Where it fails, what can be read is
 * limited all the same.
 */
int datapath_hold_sync(struct datapath *dp, const char *const *cgroups, size_t n, struct error *err);
/* Do all of these have the programs, whether or not they could be brought into step? */
bool datapath_hold_runs(const struct datapath *dp, const char *const *cgroups, size_t n);

/*
 * Makes (or takes away) the device on which what cannot be read waits for its time, for the servers with
 * WEIR_SERVER_PACED. Where it fails, no packet may be sent there; -EOPNOTSUPP: this kernel cannot.
 */
int datapath_pace(struct datapath *dp, bool on, struct error *err);

#endif
