/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bpf/busy.h does around the engine's steps: what a connection has only while something is under way stands beside it, is
 * there when it is wanted, and goes at once when it is not. What is gone is overwritten, so that who reads it reads nonsense.
 */
#ifndef WEIR_TESTS_BUSY_KEEPER_H
#define WEIR_TESTS_BUSY_KEEPER_H

#include "weir/conn/conn.h"

#include <string.h>

#define BUSY_GONE 0xa5

/* For a step that begins. */
static inline struct weir_busy *busy_there(const struct weir_conn *c, struct weir_busy *busy)
{
	return c->busy && weir_conn_wants_busy(c) ? busy : NULL;
}

/* For a step that may leave something under way. */
static inline struct weir_busy *busy_ready(const struct weir_conn *c, struct weir_busy *busy, bool stays)
{
	if (stays && !c->busy)
		memset(busy, 0, sizeof(*busy));
	return stays || (c->busy && weir_conn_wants_busy(c)) ? busy : NULL;
}

static inline void busy_settle(struct weir_conn *c, struct weir_busy *busy)
{
	c->busy = weir_conn_wants_busy(c);
	if (!c->busy)
		memset(busy, BUSY_GONE, sizeof(*busy));
}

static inline enum weir_action kept_commit_client(struct weir_conn *c, struct weir_busy *busy,
						  const struct weir_segment *g, struct weir_request_reader *r,
						  enum weir_reason *why)
{
	struct weir_busy *there = busy_ready(c, busy, weir_request_reader_stays_midway(r));
	enum weir_action action = weir_conn_commit_client(c, there, g, r, why);

	busy_settle(c, busy);
	return action;
}

static inline void kept_commit_server(struct weir_conn *c, struct weir_busy *busy, const struct weir_response_reader *r,
				      enum weir_reason *why)
{
	bool stays = weir_place_is_midway(weir_response_place(&r->response));

	weir_conn_commit_server(c, busy_ready(c, busy, stays), r, why);
	busy_settle(c, busy);
}

#endif
