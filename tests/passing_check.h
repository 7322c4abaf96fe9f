/* SPDX-License-Identifier: GPL-2.0 */
/* What passes at a glance (include/weir/conn/passing.h) is what is asked passes as well, and is left as that leaves it. */
#ifndef WEIR_TESTS_PASSING_CHECK_H
#define WEIR_TESTS_PASSING_CHECK_H

#include "weir/conn/conn.h"
#include "weir/conn/passing.h"

#include "busy_keeper.h"
#include "rest_check.h"

#include <assert.h>
#include <string.h>

/* Padding, too: one is a copy of the other. */
static inline bool is_same_conn(const struct weir_conn *a, const struct weir_conn *b)
{
	return !memcmp((const void *)a, (const void *)b, sizeof(*a));
}

/* What goes by leaves reads to be settled by what comes after it, and the time as it was: on a connection that is to go, nothing does. */
static inline void check_client_goes_by(const struct weir_conn *before, const struct weir_conn *passed,
					const struct weir_segment *g)
{
	struct weir_conn c;

	memcpy(&c, before, sizeof(c));
	if (!weir_conn_client_goes_by(&c, c.id, g)) {
		assert(is_same_conn(before, &c));
		return;
	}
	weir_unconfirmed_settle(&c.unconfirmed, weir_conn_acked(&c));
	assert(!before->dying && passed && is_same_conn(passed, &c));
}

static inline void check_server_goes_by(const struct weir_conn *before, const struct weir_conn *passed,
					const struct weir_segment *g)
{
	struct weir_conn c;

	memcpy(&c, before, sizeof(c));
	if (weir_conn_server_goes_by(&c, c.id, g))
		assert(!before->dying && passed && is_same_conn(passed, &c));
	else
		assert(is_same_conn(before, &c));
}

/* weir_conn_begin_client(), and whether the segment passed at a glance is written to *passed. */
static inline enum weir_action checked_begin_client(struct weir_conn *c, struct weir_busy *busy,
						    const struct weir_socket *k, const struct weir_segment *g,
						    struct weir_request_reader *r, enum weir_reason *why, bool *passed)
{
	struct weir_conn before, glanced;
	enum weir_action action;

	rest_between(c, busy);
	memcpy(&before, c, sizeof(before));
	memcpy(&glanced, c, sizeof(glanced));
	*passed = !k->asked && weir_conn_client_passes(&glanced, g);
	assert(*passed || is_same_conn(&before, &glanced));
	check_client_goes_by(&before, *passed ? &glanced : NULL, g);
	action = weir_conn_begin_client(c, busy_there(c, busy), k, g, r, why);
	assert(!*passed || (action == WEIR_PASS && *why == WEIR_REASON_NONE && is_same_conn(c, &glanced)));
	return action;
}

/* The same of the server's. */
static inline enum weir_action checked_begin_server(struct weir_conn *c, struct weir_busy *busy,
						    const struct weir_segment *g, struct weir_response_reader *r,
						    enum weir_reason *why, bool *passed)
{
	struct weir_conn before, glanced;
	enum weir_action action;

	rest_between(c, busy);
	memcpy(&before, c, sizeof(before));
	memcpy(&glanced, c, sizeof(glanced));
	*passed = weir_conn_server_passes(&glanced, g);
	assert(*passed || is_same_conn(&before, &glanced));
	check_server_goes_by(&before, *passed ? &glanced : NULL, g);
	action = weir_conn_begin_server(c, busy_there(c, busy), g, r, why);
	assert(!*passed || (action == WEIR_PASS && *why == WEIR_REASON_NONE && is_same_conn(c, &glanced)));
	return action;
}

#endif
