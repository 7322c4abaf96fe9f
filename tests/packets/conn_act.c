/* SPDX-License-Identifier: GPL-2.0 */
/* What it does with its stream once it is open. */
#include "conn_private.h"

#define CRUMB 13 /* bytes */
#define CRUMBS 30

static void send_faulty(struct conn *c, struct segment *segment)
{
	struct shape shape = { 0 };

	if (conn_chance(c, c->habits.road_chance / 4))
		conn_play(c, c->habits.roads, TRICKS_AT_ONCE, segment, &shape);
	if (conn_chance(c, c->habits.fault_chance))
		conn_play(c, c->habits.faults, TRICKS_AT_ONCE, segment, &shape);
	conn_send(c, segment, &shape);
}

/* Where it goes on: what is not acknowledged is sent again, by most. */
static uint32_t position(struct conn *c)
{
	return c->habits.insists || conn_chance(c, 300) ? c->acked : c->sent;
}

void conn_send_next(struct conn *c)
{
	uint32_t at = position(c);
	struct segment segment = conn_data(c, &c->real, at, conn_some_length(c, at));

	conn_note_sent(c, at + segment.length);
	conn_send_by_road(c, &segment);
}

void conn_send_decoy(struct conn *c)
{
	uint32_t at = position(c);
	struct segment segment = conn_data(c, &c->decoy, at, conn_chance(c, 500) ? MSS : conn_some_length(c, at));

	send_faulty(c, &segment);
}

/* Other bytes for what was sent already. */
void conn_rewrite(struct conn *c)
{
	uint32_t back = conn_below(c, 600), at = c->sent > back ? c->sent - back : 0;
	struct segment segment = conn_data(c, conn_chance(c, 500) ? &c->decoy : &c->real, at,
					   1 + conn_below(c, 2 * back + 1));

	conn_send_by_road(c, &segment);
}

/* Leaves a hole. */
void conn_send_ahead(struct conn *c)
{
	uint32_t at = position(c) + 1 + conn_below(c, 1500);
	struct segment segment = conn_data(c, conn_chance(c, 400) ? &c->decoy : &c->real, at, conn_some_length(c, at));

	conn_send_by_road(c, &segment);
}

void conn_send_burst(struct conn *c)
{
	uint32_t at = position(c);

	for (uint32_t n = 2 + conn_below(c, 8); n; n--) {
		uint32_t here = conn_chance(c, 100) ? at + conn_below(c, 500) : at;
		struct segment segment = conn_data(c, conn_chance(c, 50) ? &c->decoy : &c->real, here,
						   conn_some_length(c, here));

		conn_send_by_road(c, &segment);
		if (here == at)
			at += segment.length;
	}
	conn_note_sent(c, at < c->real.length ? at : c->real.length);
}

/* A request and more, in pieces as small as what may be had for nothing. */
void conn_send_crumbs(struct conn *c)
{
	uint32_t at = position(c), end = stream_request_end(&c->real, at);

	for (uint32_t n = 0; at < end && n < CRUMBS; n++) {
		struct segment segment = conn_data(c, &c->real, at, 1 + conn_below(c, CRUMB));

		conn_send_by_road(c, &segment);
		at += segment.length;
	}
	conn_note_sent(c, at);
}

void conn_send_control(struct conn *c)
{
	static const uint8_t flags[] = { TCP_ACK,	    TCP_ACK,	       TCP_FIN | TCP_ACK, TCP_RST,
					 TCP_RST | TCP_ACK, TCP_SYN | TCP_ACK, TCP_SYN,		  0 };
	uint8_t chosen = flags[conn_below(c, sizeof(flags))];
	uint32_t at = conn_chance(c, 500) ? c->sent : c->acked;
	struct segment segment;

	if (chosen & TCP_RST) /* an exact one would be the end */
		at += 1 + conn_below(c, 5000);
	segment = conn_segment(c, chosen, at);
	send_faulty(c, &segment);
}
