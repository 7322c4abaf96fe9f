/* SPDX-License-Identifier: GPL-2.0 */
/* Whether a connection has rested between two segments (include/weir/conn/rest.h) makes no difference: here it does whenever it can. */
#ifndef WEIR_TESTS_REST_CHECK_H
#define WEIR_TESTS_REST_CHECK_H

#include "weir/conn/rest.h"

#include "busy_keeper.h"

#include <string.h>

static inline void rest_between(struct weir_conn *c, struct weir_busy *busy)
{
	struct weir_conn woken = {};
	struct weir_resting r;

	if (!weir_conn_can_rest(c))
		return;
	weir_resting_note(&r, c);
	weir_resting_wake(&r, &woken);
	woken.badge = c->badge;
	woken.stood = c->stood;
	woken.version = c->version;
	woken.hold.version = c->hold.version;
	if (woken.splice.cuts)
		woken.splice.cuts = c->splice.cuts; /* how many there were only tests ask */
	memcpy(c, &woken, sizeof(*c));
	busy_settle(c, busy);
}

#endif
