/* SPDX-License-Identifier: GPL-2.0 */
/* Where servers listen, and networks. */
#ifndef WEIR_USER_DATAPATH_ADDRESS_H
#define WEIR_USER_DATAPATH_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "weir/base/types.h"

struct datapath_listen {
	bool any;	  /* every address */
	__u8 address[16]; /* network order, IPv4 as ::ffff:a.b.c.d; all zero with any */
	__u16 port;	  /* host order */
};

/* Does a socket that listens on this address (all zero: on any) and port take what comes there? */
static inline bool datapath_listen_hears(const struct datapath_listen *listen, const __u8 address[16], __u16 port)
{
	static const __u8 any[16];

	return listen->port == port &&
	       (listen->any || !memcmp(address, any, sizeof(any)) || !memcmp(address, listen->address, sizeof(any)));
}

struct datapath_cidr {
	__u8 address[16]; /* as above */
	__u8 bits;	  /* of 128: 96 + n for IPv4 */
};

#endif
