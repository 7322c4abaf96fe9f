/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_DATAPATH_XDP_H
#define WEIR_USER_DATAPATH_XDP_H

#include "datapath/private.h"
#include "sys/links.h"
#include "sys/xdp.h"

/* The devices of a namespace, and what each has of the programs. */
struct xdp_devices {
	const struct device *devices;
	struct datapath_link *links;
	int n;
};

/* Puts the program at XDP on the attached devices that are to have it, and takes it off the others; fills in what links say of it. */
void datapath_xdp_sync(struct datapath *dp, enum xdp_asked asked, const struct xdp_devices *of);

/* Lets go of the program; on devices it stays. */
void datapath_xdp_close(struct datapath *dp);

#endif
