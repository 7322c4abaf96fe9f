/* SPDX-License-Identifier: GPL-2.0 */
/* The IP addresses of a network namespace. */
#ifndef WEIR_USER_SYS_ADDRESSES_H
#define WEIR_USER_SYS_ADDRESSES_H

#include <linux/types.h>

#include "base/error.h"

struct own_address {
	__u8 bytes[16]; /* network order, IPv4 as ::ffff:a.b.c.d */
	__u32 ifindex;	/* of the device that has it; several may have the same one */
};

/* Of the caller's namespace; of all devices. Caller frees *addresses. Returns how many (>= 0). */
int addresses_read(struct own_address **addresses, struct error *err);

#endif
