/* SPDX-License-Identifier: GPL-2.0 */
/* Connections and segments of any kind, whose numbers lie near one another. */
#ifndef WEIR_TESTS_UNIT_CONN_ANY_CONN_H
#define WEIR_TESTS_UNIT_CONN_ANY_CONN_H

#include <string.h>

#include "../../random.h"
#include "weir/conn/conn.h"

#define NEAR 6U
#define CLIENT 0xfffffffcU /* the streams wrap around */
#define SERVER 0x7ffffffdU

static inline __u32 near(struct random *r, __u32 number)
{
	return number + (__u32)random_below(r, 2 * NEAR) - NEAR;
}

static inline void any_splice(struct random *r, struct weir_splice *s)
{
	weir_splice_open(s, near(r, CLIENT), near(r, SERVER), random_below(r, 4) ? 500 : random_below(r, NEAR));
	s->client_acked = near(r, SERVER);
	s->client_end = near(r, CLIENT);
	s->passed_end = near(r, CLIENT);
	s->server_end = near(r, SERVER);
	s->server_acked = near(r, CLIENT);
	s->told = near(r, SERVER);
	s->client_has_ts = random_chance(r, 500);
	s->client_tsval = near(r, 0);
	s->has_ts = random_chance(r, 500);
	s->server_tsval = near(r, 0);
	s->cuts = random_chance(r, 100);
	s->in_off = s->cuts ? random_below(r, NEAR) : 0;
	s->owed = s->cuts && random_chance(r, 300);
	s->fins = random_chance(r, 100) ? random_below(r, 4) : 0;
	s->client_fin = near(r, CLIENT);
	s->server_fin = near(r, SERVER);
	s->server_reset = random_chance(r, 50);
}

static inline void any_reads(struct random *r, struct weir_unconfirmed *u)
{
	__u32 at = near(r, CLIENT);

	u->n = random_chance(r, 500) ? random_below(r, 4) : 0;
	for (unsigned int i = 0; i < u->n; i++) {
		u->read[i].start = at;
		at += random_below(r, 4);
		u->read[i].end = u->end = at;
		at += random_below(r, 3);
	}
}

static inline void any_conn(struct random *r, struct weir_conn *c)
{
	memset(c, 0, sizeof(*c));
	weir_conn_open(c, 0, random_below(r, 10) ? random_below(r, 3) : WEIR_PHASE_CLOSED, near(r, CLIENT),
		       near(r, SERVER), 0);
	any_splice(r, &c->splice);
	any_reads(r, &c->unconfirmed);
	c->requests = random_below(r, 3);
	c->responses = c->requests ? random_below(r, c->requests + 1) : 0;
	c->seats_end = random_below(r, 3);
	c->strays = random_below(r, 3);
	c->dying = random_chance(r, 100);
	c->opaque_why = c->phase == WEIR_PHASE_OPAQUE ? WEIR_TLS : 0;
	c->last_ns = WEIR_NS_PER_S + random_below(r, WEIR_NS_PER_S);
}

static inline struct weir_segment any_segment(struct random *r, __u32 seq, __u32 ack)
{
	struct weir_segment g = {
		.seq = near(r, seq),
		.ack = near(r, ack),
		.len = random_chance(r, 500) ? random_below(r, NEAR) : 0,
		.window = random_below(r, 3) * 100,
		.flags = random_chance(r, 800) ? WEIR_TCP_ACK : random_below(r, 0x40),
		.has_ts = random_chance(r, 500),
		.tsval = near(r, 0),
	};

	return g;
}

#endif
