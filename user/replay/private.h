/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of user/replay share. */
#ifndef WEIR_USER_REPLAY_PRIVATE_H
#define WEIR_USER_REPLAY_PRIVATE_H

#include "replay/replay.h"
#include "replay/tally.h"
#include "weir/conn/explain.h"

struct replay {
	struct datapath *dp;
	struct server *servers[WEIR_MAX_SERVERS];
	char names[WEIR_MAX_SERVERS][WEIR_SERVER_LIMITS][SLOT_NAME_SIZE]; /* of their limits; "": not asked for yet */
	__u32 n_servers;
	/* Of the thread that reads (batches.c). */
	bool by_time;		   /* the recording has no other clock */
	__u64 first_ns, latest_ns; /* by its clock */
	__u64 base_ns;		   /* what first_ns is to the programs */
	__u64 elsewhere, rejected; /* not asked for */
	/* Of the one that counts. */
	__u64 requests, unread, same;
	__u64 missing[RECORDED_MISSING];
	__u64 recorded[WEIR_REASON_COUNT], replayed[WEIR_REASON_COUNT];
	struct tally tally;
};

/* A line of the recording, from its text to what the policy says of it. */
struct replay_line {
	json_t *whole; /* as it stands; NULL: nobody prints it */
	struct recorded recorded;
	__u32 server;
	bool asked; /* of the programs, in the slot that goes with the line */
};

/* Asks in this slot. -EINVAL: it is not the next request. */
int replay_ask(struct replay *replay, struct replay_line *line, __u32 slot, struct error *err);

/* Counts what was answered, if it was asked. */
int replay_count(struct replay *replay, const struct replay_line *line, const struct weir_explained *answer,
		 struct replayed *out, struct error *err);

#endif
