/* SPDX-License-Identifier: GPL-2.0 */
/* One question, all its answers: the little that every netlink family asked here has in common. */
#ifndef WEIR_USER_SYS_NETLINK_H
#define WEIR_USER_SYS_NETLINK_H

#include <libmnl/libmnl.h>

/* bus: NETLINK_ROUTE, NETLINK_SOCK_DIAG, ...; in the caller's network namespace. NULL with errno set. */
struct mnl_socket *netlink_open(int bus);

static inline void cleanup_netlink(struct mnl_socket **nl)
{
	if (*nl)
		mnl_socket_close(*nl);
}
#define CLEANUP_NETLINK __attribute__((cleanup(cleanup_netlink)))

/*
 * Sends the request and calls each(message, arg), which returns MNL_CB_OK, for every answer; each may be NULL. Returns
 * 0 or the negative errno that the kernel answered with; -EINTR: a dump that changed under way.
 */
int netlink_ask(struct mnl_socket *nl, struct nlmsghdr *request, mnl_cb_t each, void *arg);

#endif
