/* SPDX-License-Identifier: GPL-2.0 */
/* The network namespaces in use: opened, watched, and let go when no server uses them. */
#ifndef WEIR_USER_AGENT_NET_H
#define WEIR_USER_AGENT_NET_H

#include <limits.h>

#include "agent/agent.h"
#include "probe/probe.h"

/* A network namespace in use. */
struct net {
	struct agent *agent;
	struct net *next;
	__u64 cookie;
	int fd;
	struct datapath *dp;
	struct datapath_written written; /* as it was when the lock was taken last */
	bool devices_changed;		 /* since they were last read */
	bool leaving;			 /* its last server is gone, and so is it soon */
	__u64 swept;			 /* round of the sweeper (sweep.c) */
	unsigned int inside_unswept;	 /* turns of inside_follow() since what is kept of requests was swept */
	bool loopback_tracked;		 /* by conntrack, so translated connections would be invalid to it */
	bool loopback_known;		 /* it was found out once */
	struct error links_err;		 /* the last failure to follow the devices, so that it is logged once */
	struct error hold_err;		 /* the same, to reach the sockets of connections that cannot be read */
	bool hold_runs;			 /* they are reached all the same, as before that failure */
	bool paced;	       /* what cannot be read waits on a device of its own, for the servers that want that */
	struct probe probe;    /* what it was found to be able to */
	struct error pace_err; /* why it does not, if one of them does */
	struct {
		__u64 *seats;	/* as limit_counts.c has read them last, if that took long */
		__u64 until_ns; /* so long they are not read again; 0: at once */
	} taken;
	struct {
		struct open_requests requests; /* as net_in_flight.c has read them last */
		int by;			       /* rows of this kind */
		__u64 read_ns, until_ns;       /* so long they are not read again; 0: at once */
	} open;
};

/* net.c: namespaces */

/* The namespace in use with this cookie, or NULL. */
struct net *net_find(const struct agent *agent, __u64 cookie);
/* The namespace of a server whose datapath is open, or NULL. */
struct net *server_net(const struct agent *agent, const struct server *server);
/* That of a server in force. NULL: it is in none, and gets all that it asks for when it is brought up. */
struct net *net_in_force(const struct agent *agent, int slot);
/* The server in this slot, if it is one of the namespace, or NULL. */
struct server *net_server(const struct net *net, int slot);
/* The first slot with a server of the namespace, or -ENOENT. */
int net_first_server(const struct agent *agent, __u64 cookie);
/* Takes over fd and dp; NULL without memory, and they are still the caller's. */
struct net *net_add(struct agent *agent, int fd, __u64 cookie, struct datapath *dp);
/* Follows what the servers now want of a namespace: its interfaces, or its end when no server is left. */
int net_settle(struct net *net, struct error *err);
/* Takes all out of it, and forgets it: even where that fails. No server may be in force there. */
int net_leave(struct net *net, struct error *err);
/* What a subject is called, as far as it is known; the caller frees it. NULL without memory. */
char *net_name(struct net *net, __u64 subject);
/* Leaves everything in force. */
void nets_close(struct agent *agent);
/* Are these the names of devices of the namespace? */
int net_check_interfaces(int fd, const struct server *server, struct error *err);

/* net_open.c */

/* The namespace that a server was attached by: its descriptor, which the caller closes, and cookie. */
int net_open(struct agent *agent, const struct server *server, int *fd, __u64 *cookie, struct error *err);

/*
 * Opens it if need be, within a change or a repair, whose turn passes on meanwhile; fd stays the caller's. A namespace that no server uses
 * is let go by net_settle().
 */
int net_get(struct agent *agent, int fd, __u64 cookie, struct net **out, struct error *err);
/* The directory of what is pinned for a namespace. */
void net_pins(const struct agent *agent, __u64 cookie, char path[static PATH_MAX]);
/* Removes what is pinned for a namespace of which the state knows no server: an agent's whose state was lost. */
int net_clear_leftovers(struct agent *agent, int fd, __u64 cookie, struct error *err);
/* Removes the pins of a namespace that is not open and that no server uses any more. */
void net_unpin(struct agent *agent, __u64 cookie);

/* net_watch.c: what namespaces tell the event loop */
void net_watch(struct net *net);
void net_unwatch(struct net *net);
/* For the event loop, when devices_fd or rings_fd is readable. */
void nets_devices_changed(struct agent *agent);
void nets_traced(struct agent *agent);

/* upkeep.c: looks after the devices, cgroups, conntrack and connections of all namespaces. A job. */
void nets_look_after(struct agent *agent);
/* Is there one that is held in part? */
bool nets_held_in_part(const struct agent *agent);
/* Looks after the cgroups of those: a service that is started again has a new one, and may have its sockets from another. A job. */
void nets_hold(struct agent *agent);

/* net_links.c */
int net_sync_links(struct net *net, struct error *err);
/* The same; a failure is logged once and kept as the namespace's links_err. */
void net_follow(struct net *net);

/* net_hold.c */

/* Has what cannot be read held on the servers' cgroups; a failure is logged once and kept as the namespace's hold_err. */
void net_hold(struct net *net);
/* Is a server of it held on less than all of the machine's cgroups? */
bool net_is_held_in_part(const struct net *net);

/*
 * Says on which interfaces another weir's programs are besides, so that requests are decided twice; the caller frees it. NULL: on
 * none.
 */
char *net_other_weir(struct net *net);

/* net_in_flight.c: the requests in flight, by rows of this kind. A job asks: the namespace stays meanwhile. */
int net_read_in_flight(struct net *net, int by, struct error *err);

/* net_pace.c */

/* Paces what is held, if a server wants that and the kernel can. Tells the servers when that has changed. */
void net_pace(struct net *net);
/* Looks whether conntrack tracks loopback; tells the servers when that changed. */
void net_find_tracking(struct net *net);

/* probe.c: finds out, once, what can be done in the namespace, and tells what cannot. Its datapath is open. */
void net_probe(struct net *net);

#endif
