/* SPDX-License-Identifier: GPL-2.0 */
/* Network namespaces: finding them, telling them apart, and working inside one. */
#ifndef WEIR_USER_SYS_NETNS_H
#define WEIR_USER_SYS_NETNS_H

#include <linux/types.h>

#include "base/error.h"

/*
 * path: NULL for the caller's own namespace; a name without '/' is looked up in /run/netns. Returns a descriptor that
 * the caller closes, or a negative errno.
 */
int netns_open(const char *path, struct error *err);

/* The kernel's id of a namespace, never used twice between two boots. */
int netns_cookie(int netns_fd, __u64 *cookie, struct error *err);

/*
 * Calls run(arg) with this thread inside the namespace, with what may be done there in effect (PRIVILEGE_NAMESPACE), and
 * returns what it returned; sockets that it opens stay there.
 * Every way out leads back to the thread's own namespace: where that fails, the process aborts rather than go on in
 * the wrong one.
 */
int netns_run(int netns_fd, int (*run)(void *arg), void *arg, struct error *err);

#endif
