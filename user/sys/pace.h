/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The device on which packets wait for their time of departure (include/weir/conn/pace.h): an ifb, which sends what it is
 * given back up into the namespace, with the queueing discipline fq, which keeps to the times. Both functions work in the
 * caller's namespace and may be repeated.
 */
#ifndef WEIR_USER_SYS_PACE_H
#define WEIR_USER_SYS_PACE_H

#include <linux/types.h>
#include <stdbool.h>

#include "base/error.h"

#define PACE_DEVICE "weir-hold"

/* Makes the device, or repairs it. -EOPNOTSUPP: this kernel has no ifb or no fq, and nothing was changed. */
int pace_device_make(__u32 *ifindex, struct error *err);

/*
 * Are there an ifb and fq? They are made in the caller's namespace, which must be for trying alone. -EOPNOTSUPP, -ENOENT: no.
 * Where the first would load a module, interfaces come with it: then it is not to be tried, and there is one.
 */
int pace_try_ifb(void);
int pace_try_fq(void);
bool pace_ifb_would_load(void);

/* What waits is lost; TCP brings it again. */
int pace_device_remove(struct error *err);

#endif
