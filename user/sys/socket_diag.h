/* SPDX-License-Identifier: GPL-2.0 */
/* The TCP sockets of the caller's network namespace, and those of UDP without a peer, by inet_diag. A flow's `server` end is the socket's own. */
#ifndef WEIR_USER_SYS_SOCKET_DIAG_H
#define WEIR_USER_SYS_SOCKET_DIAG_H

#include <linux/inet_diag.h>
#include <stdbool.h>

#include "weir/abi/abi.h"

#include "sys/netlink.h"

struct socket_id {
	__u8 family; /* AF_INET, or AF_INET6 for an IPv6 socket that may hold an IPv4 connection */
	struct inet_diag_sockid id;
};

/*
 * Calls each(flow, id, arg) for every socket that has a peer, those in TIME-WAIT and half-open ones included. The dump
 * is not atomic: ask socket_diag_find() before believing that a socket is gone. Returns 0 or a negative errno; -ENOENT:
 * the kernel has no inet_diag.
 */
typedef void (*socket_diag_each_t)(const struct weir_flow *flow, const struct socket_id *id, void *arg);
int socket_diag_each(struct mnl_socket *nl, socket_diag_each_t call, void *arg);

/*
 * The state (TCP_ESTABLISHED, ...) of this flow's socket, 0 when there is none, or a negative errno. Sockets that are
 * bound to a device are only found by socket_diag_each().
 */
int socket_diag_find(struct mnl_socket *nl, const struct weir_flow *flow);

struct socket_listener {
	__u8 address[16]; /* its own, network order, IPv4 as ::ffff:a.b.c.d; all zero: any */
	__u16 port;	  /* host order */
	__u32 inode;	  /* as /proc shows it */
	__u64 cgroup;	  /* the id of that in which it was made, and to which its connections belong; 0: not known */
};

/* Calls call(listener, arg) for every socket that listens. Returns as socket_diag_each(). */
typedef void (*socket_diag_listener_t)(const struct socket_listener *listener, void *arg);
int socket_diag_listeners(socket_diag_listener_t call, void *arg);
/* Of UDP, for every socket that takes packets from anybody. -ENOENT: the kernel does not tell (udp_diag). */
int socket_diag_udp(socket_diag_listener_t call, void *arg);

/* Ends a socket as if it had been reset: its owner reads an error, its peer gets a RST. */
int socket_diag_destroy(struct mnl_socket *nl, const struct socket_id *socket);

#endif
