/* SPDX-License-Identifier: GPL-2.0 */
/* The programs on the namespace's devices, and what else is found out about those. */
#ifndef WEIR_USER_DATAPATH_LINKS_H
#define WEIR_USER_DATAPATH_LINKS_H

#include "weir/abi/abi.h"

#include "base/error.h"
#include "sys/xdp.h"

struct datapath;

/*
 * Interfaces. sync compares the namespace's devices with the links that exist and repairs the difference; call it
 * at start and whenever the netlink descriptor is readable (it drains it).
 */
struct datapath_interfaces {
	const char *const *names; /* NULL: all */
	size_t n;
	enum xdp_asked xdp;
};
int datapath_netlink_fd(const struct datapath *dp);
int datapath_links_sync(struct datapath *dp, const struct datapath_interfaces *wanted, struct error *err);

struct datapath_link {
	char name[16];
	__u32 ifindex;
	const char *how; /* "tcx", "clsact", or why it is left out: "bridge port", "bond slave", ... */
	bool attached;
	__u32 other_weir;	/* a program of another weir that is there, too; 0: none */
	enum xdp_mode xdp;	/* XDP_NONE: its connections are refused at tc */
	char xdp_why[XDP_WHY];	/* and why; "": there is nothing to explain */
	const char *no_cookies; /* why XDP sends no SYN cookies; NULL: it does so for servers that ask for it */
};
/* Caller frees *links. Returns how many (>= 0). */
int datapath_links(struct datapath *dp, struct datapath_link **links, struct error *err);

/* Does conntrack track loopback connections of this namespace? 1 yes, 0 no. */
int datapath_loopback_tracked(struct datapath *dp, struct error *err);

#endif
