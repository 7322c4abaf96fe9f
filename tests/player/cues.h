/* SPDX-License-Identifier: GPL-2.0 */
/* What is done to chosen packets: the directed part of a schedule. */
#ifndef PLAYER_CUES_H
#define PLAYER_CUES_H

#include "world.h"

enum cue_act {
	CUE_COUNT, /* nothing is done, but it is counted */
	CUE_LOSE,
	CUE_TWICE,  /* and again at once */
	CUE_LATE,   /* and again later */
	CUE_BYPASS, /* it reaches the server, and weir does not see it */
	CUE_SHUT,   /* it offers no window */
	CUE_SPLIT,  /* in three pieces, the last one first */
};

struct cue {
	enum hop hop;
	enum cue_act act;
	bool (*matches)(const struct world *w, const struct packet *p);
	uint64_t late_ns;
	unsigned int skip;  /* that many are let go before it acts */
	unsigned int times; /* 0: always */
	unsigned int seen;  /* packets that matched */
};

#define CUES_MAX 8

struct cues {
	struct cue cue[CUES_MAX];
	unsigned int n;
};

/* Plays with cues; what they saw is in them afterwards. */
bool cues_play(struct world *w, const struct config *config, struct cues *cues);

bool any_packet(const struct world *w, const struct packet *p);
bool is_answer(const struct world *w, const struct packet *p);	/* begins a 429 */
bool is_request(const struct world *w, const struct packet *p); /* begins one */
bool is_bare_ack(const struct world *w, const struct packet *p);
bool is_shut(const struct world *w, const struct packet *p); /* weir's own, and the window in it is 0 */
bool is_data(const struct world *w, const struct packet *p);
bool is_body(const struct world *w, const struct packet *p); /* data that begins no request */
bool is_fin(const struct world *w, const struct packet *p);
bool is_joined_fin(const struct world *w, const struct packet *p); /* with data */
bool is_reset(const struct world *w, const struct packet *p);
bool is_handshake(const struct world *w, const struct packet *p); /* SYN, and ACK or not */
bool is_joined(const struct world *w, const struct packet *p);	  /* laid over the answer */
bool is_old_probe(const struct world *w, const struct packet *p); /* a keep-alive probe as the server must see it */

#endif
