/* SPDX-License-Identifier: GPL-2.0 */
/* One schedule: a client, a server, the networks and weir between them, played to the end and judged. */
#ifndef PLAYER_WORLD_H
#define PLAYER_WORLD_H

#include <string.h>

#include "box.h"
#include "client.h"
#include "http.h"
#include "net.h"
#include "server.h"
#include "tcp.h"

#define EXCHANGES_MAX 128

struct config {
	uint64_t seed;
	struct link link[HOPS];
	struct tcp_options tcp[SIDES];
	struct client_options client;
	struct server_options server;
	struct box_options box;
};

struct world;

/* What is done to a packet that is about to go over a hop. */
enum fate {
	FATE_SEND,
	FATE_LOSE,
	FATE_DELIVERED, /* the filter has sent it itself */
};

struct filter {
	enum fate (*see)(struct world *w, enum hop hop, struct packet *p);
	void *data;
};

struct world {
	struct config config;
	struct net net;
	struct tcp tcp[SIDES];
	struct client client;
	struct server server;
	struct box box;
	struct exchange exchange[EXCHANGES_MAX + 1];
	struct filter filter;
	uint64_t packets;
	bool trace, failed;
	char why[200];
};

void world_init(struct world *w);
void world_free(struct world *w);
/* Plays a schedule. False: it failed, and w->why says how. */
bool world_play(struct world *w, const struct config *config);

/* For the parts. */
__attribute__((format(printf, 2, 3))) void world_fail(struct world *w, const char *format, ...);
void world_transmit(struct world *w, enum side from, const struct packet *p);
void world_send(struct world *w, enum hop hop, const struct packet *p);
void world_note(struct world *w, const char *step, enum weir_action action, enum weir_reason why);
const char *world_side(enum side side);

#endif
