/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The devices of a network namespace, and which of them see each packet once. Some packets cross two devices: a bridge
 * and its port, a bond and its slave, a macvlan and its parent. One of the two is left out. A VLAN device and its parent
 * are both used: the programs skip frames that carry a tag.
 */
#ifndef WEIR_USER_SYS_LINKS_H
#define WEIR_USER_SYS_LINKS_H

#include <linux/if.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct device {
	__u32 ifindex;
	__u32 master;		/* the bridge, bond, VRF, ... that this device belongs to; 0: none */
	__u32 parent;		/* the device below it in the same namespace; 0: none */
	__u16 type;		/* ARPHRD_ETHER, ... */
	__u32 gso_max, gro_max; /* bytes of a packet that goes down, or comes up, in one */
	__u8 address[6];
	bool up;      /* asked to be, whether or not there is a carrier */
	__u16 vlan;   /* of a device of kind "vlan" */
	bool service; /* its tags are those of 802.1ad */
	bool offload; /* macsec: the hardware decrypts, so that the parent sees clear text */
	char name[IFNAMSIZ];
	char kind[IFNAMSIZ]; /* "bridge", "macvlan", ...; empty for hardware */
};

/* Reads the caller's namespace. Returns how many (>= 0) and the list, which the caller frees; or a negative errno. */
int links_read(struct device **devices, struct error *err);

/* The devices a user named; NULL: all. */
struct links_wanted {
	const char *const *names;
	size_t n;
};

/* Why this device of `devices` is left out, for people; NULL: it is to have the programs. */
const char *links_left_out(const struct device *device, const struct device *devices, size_t n,
			   const struct links_wanted *wanted);

/*
 * Has a user named the device by which these packets come? Where a device belongs to a VRF, the kernel's sockets are told of the VRF
 * alone.
 */
bool links_named(const struct device *device, const struct device *devices, size_t n,
		 const struct links_wanted *wanted);

#endif
