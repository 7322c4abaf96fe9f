/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The program at XDP of a device, by a link pinned as DIR/link-IFINDEX-xdp. Functions work in the caller's network namespace, may
 * be repeated, and repair what a killed process left half done.
 */
#ifndef WEIR_USER_SYS_XDP_H
#define WEIR_USER_SYS_XDP_H

#include <linux/types.h>
#include <stdbool.h>

struct device; /* sys/links.h */

/* What a server's operator asks for. Of several servers' the last in this order holds. */
enum xdp_asked {
	XDP_OFF,
	XDP_AUTO,
	XDP_GENERIC,
	XDP_NATIVE,
};

/* Where the connections of a device are refused. */
enum xdp_mode {
	XDP_NONE, /* at tc */
	XDP_MODE_GENERIC,
	XDP_MODE_NATIVE,
};

/* What is at XDP of a device. */
struct xdp_owner {
	enum xdp_mode mode; /* XDP_NONE: nothing */
	bool ours;	    /* by the pinned link */
	__u32 id;	    /* of the program */
	char name[16];
};

#define XDP_WHY 160

struct xdp_choice {
	enum xdp_mode mode;
	char why[XDP_WHY]; /* for people: why not at XDP; "": there is nothing to explain */
};

const char *xdp_mode_name(enum xdp_mode mode);

/* dir NULL: what is there is nobody's. A negative errno: it cannot be told. */
int xdp_look(const char *dir, __u32 ifindex, struct xdp_owner *owner);

/* What a device gets that has this. */
void xdp_choose(enum xdp_asked asked, const struct device *device, const struct xdp_owner *there,
		struct xdp_choice *choice);

/* Does what a program in this mode sends back (XDP_TX) get out by the device? */
bool xdp_answers(enum xdp_mode mode, const struct device *device);

/* Puts the program on the device, in one step in the place of ours if that is there in this mode. 1: there was none. */
int xdp_put(const char *dir, __u32 ifindex, int program, enum xdp_mode mode, const struct xdp_owner *there);
/* Takes ours off, if it is there. */
void xdp_remove(const char *dir, __u32 ifindex);

#endif
