/* SPDX-License-Identifier: GPL-2.0 */
/*
 * weir's place between client and server: runs the connection logic (weir/conn/conn.h) over the packets as the programs on
 * the two hooks do, the steps of several packets in any order, and decides which requests are refused.
 */
#ifndef PLAYER_BOX_H
#define PLAYER_BOX_H

#include "net.h"
#include "weir/conn/conn.h"

#define BOX_JOBS 256
#define BOX_TEXTS 256
#define BOX_TEXT 512

struct world;

struct box_options {
	unsigned int shed;  /* per mille of the requests that may be answered, which are refused */
	uint64_t shed_mask; /* requests below 64 that are refused in any case */
	unsigned int hold;  /* per mille of the times that a request which may not be answered now is made to wait */
	unsigned int blunt; /* per mille of packets that cannot be cut off at a request's boundary */
	uint32_t swallow_max;
	unsigned int race;  /* per mille of packets whose commit waits */
	uint64_t race_ns;   /* that long, at most */
	uint64_t attach_ns; /* joins then, in mid-stream; 0: sees everything */
};

/* A packet between begin and commit. */
struct box_job {
	bool busy, from_server;
	struct packet packet;
	struct weir_request_reader request;
	struct weir_response_reader response;
	unsigned int id; /* of the request that is to be shed, or rejected */
};

struct box {
	bool open;
	struct weir_conn conn;
	struct weir_busy busy;
	struct box_job job[BOX_JOBS];
	struct packet waiting[BOX_JOBS]; /* of the server, behind one that is not committed */
	unsigned int waits;
	bool server_busy;
	bool gap;     /* one was not seen, or never came to the server: what follows cannot be read for sure */
	__u16 window; /* the server's latest, as far as it was seen */
	unsigned int sheds, rejects, closes, cut_short, followed;
	unsigned int asks, retaken, contradicted, heads_cut, early;
	unsigned int texts;
	struct weir_answer_choice choice[BOX_TEXTS];
	uint8_t text[BOX_TEXTS][BOX_TEXT];
	size_t text_length[BOX_TEXTS];
};

void box_reset(struct world *w);
void box_from_client(struct world *w, const struct packet *p);
void box_from_server(struct world *w, const struct packet *p);
void box_commit(struct world *w, unsigned int job);

#endif
