/* SPDX-License-Identifier: GPL-2.0 */
/* One connection of a client that does what it likes. All that it does follows from a seed, and from what it hears. */
#ifndef WEIR_TESTS_PACKETS_CONN_H
#define WEIR_TESTS_PACKETS_CONN_H

#include "stream.h"
#include "tricks.h"
#include "wire.h"

#define TRICKS_AT_ONCE 3

enum handshake {
	HANDSHAKE_PLAIN,
	HANDSHAKE_WITH_DATA, /* the last acknowledgement brings the first request */
	HANDSHAKE_SYN_ACK,   /* SYN|ACK in the place of the last acknowledgement */
	HANDSHAKE_DATA_IN_SYN,
	HANDSHAKE_FAST_OPEN,
	HANDSHAKE_ODD_SYN, /* a trick is played on it */
	HANDSHAKES,
};

/* What one connection is prone to: a few things, and those often, find more than everything now and then. */
struct habits {
	enum handshake handshake;
	bool stamps, slow, insists;
	bool misleads; /* before the first real byte decoys stand in the place of them all */
	const struct trick *roads[TRICKS_AT_ONCE], *faults[TRICKS_AT_ONCE];
	unsigned int road_chance, fault_chance;				   /* per mille */
	unsigned int decoy, rewrite, ahead, burst, crumbs, control, again; /* weights of actions */
};

enum conn_state {
	CONN_OPENING,
	CONN_OPEN,
	CONN_OVER,
};

struct conn {
	uint64_t number;
	struct random random;
	struct ends ends;
	struct habits habits;
	struct stream real, decoy;
	struct wire *wire;
	enum conn_state state;
	uint32_t first; /* the sequence number of the stream's first byte */
	uint32_t acked; /* offsets in the stream: what the server has acknowledged, what it has been sent */
	uint32_t sent;
	uint32_t peer;	/* the server's next byte */
	uint32_t clock; /* of the timestamps */
	bool heard_syn, heard_data, heard_reset;
	int steps, waited, lives;
	uint64_t sleeps_until_ns;
};

/* ends: the client's are filled in. */
void conn_begin(struct conn *conn, struct wire *wire, const struct ends *ends, uint64_t seed, uint64_t number);
void conn_hear(struct conn *conn, const struct heard *heard);
/* The next thing that it does; at its end it is CONN_OVER. */
void conn_step(struct conn *conn, uint64_t now_ns);
/* Prints what it is prone to. */
void conn_describe(const struct conn *conn);

#endif
