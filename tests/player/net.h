/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Virtual time and the four ways a packet goes. Events are kept in a heap, ordered by time and then by the order in
 * which they were made, so that one seed is one history.
 */
#ifndef PLAYER_NET_H
#define PLAYER_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../random.h"
#include "weir/tcp/segment.h"

#define US 1000ULL
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define NEVER UINT64_MAX

enum hop {
	HOP_CLIENT_WEIR, /* the network towards the server's host */
	HOP_WEIR_SERVER, /* from the ingress hook to the server's socket */
	HOP_SERVER_WEIR, /* from the server's socket to the egress hook */
	HOP_WEIR_CLIENT, /* the network back */
	HOPS,
};

struct packet {
	struct weir_segment g;
	const uint8_t *data; /* g.len bytes that live as long as the schedule */
	uint32_t number;     /* among all packets sent on this hop, from 0 */
	bool joined;	     /* laid over an answer that has arrived: its bytes below are not the client's */
};

/* What may happen to a packet on its way, per mille, until `heals`. */
struct link {
	uint64_t delay_ns, jitter_ns;
	uint64_t heals_ns;
	uint64_t late_ns; /* of a late duplicate, at most */
	uint64_t outage_from_ns, outage_until_ns;
	unsigned int loss, duplicate, late_duplicate, reorder;
	uint64_t last_ns; /* arrival of the latest packet that kept its order */
	uint32_t sent;
};

enum event_kind {
	EVENT_PACKET, /* `at` is the hop it arrives from */
	EVENT_COMMIT, /* `at` is the box's job */
};

struct event {
	uint64_t time, order;
	enum event_kind kind;
	unsigned int at;
	struct packet packet;
};

struct net {
	uint64_t now;
	uint64_t order;
	struct random random;
	struct link link[HOPS];
	struct event *heap;
	size_t n, room;
};

void net_reset(struct net *n, uint64_t seed);
void net_free(struct net *n);
void net_schedule(struct net *n, uint64_t time, enum event_kind kind, unsigned int at, const struct packet *p);
/* Sends a packet over a hop: it is lost, or arrives once or more, at some time. */
void net_send(struct net *n, enum hop hop, const struct packet *p);
/* Time of the next event, NEVER when there is none. */
uint64_t net_next(const struct net *n);
struct event net_take(struct net *n);
/* Is any packet on its way over this hop? */
bool net_under_way(const struct net *n, enum hop hop);

#endif
