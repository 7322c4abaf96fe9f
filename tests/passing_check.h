/* SPDX-License-Identifier: GPL-2.0 */
/* What passes at a glance (include/weir/conn/passing.h) is what is asked passes as well, and is left as that leaves it. */
#ifndef WEIR_TESTS_PASSING_CHECK_H
#define WEIR_TESTS_PASSING_CHECK_H

#include "weir/conn/conn.h"
#include "weir/conn/passing.h"

#include <assert.h>
#include <string.h>

/* weir_conn_begin_client(), and whether the segment passed at a glance is written to *passed. */
static inline enum weir_action checked_begin_client(struct weir_conn *c, const struct weir_socket *k,
						    const struct weir_segment *g, struct weir_request_reader *r,
						    enum weir_reason *why, bool *passed)
{
	struct weir_conn before, glanced;
	enum weir_action action;

	memcpy(&before, c, sizeof(before));
	memcpy(&glanced, c, sizeof(glanced));
	*passed = !k->asked && weir_conn_client_passes(&glanced, g);
	assert(*passed || !memcmp(&before, &glanced, sizeof(before)));
	action = weir_conn_begin_client(c, k, g, r, why);
	assert(!*passed || (action == WEIR_PASS && *why == WEIR_REASON_NONE && !memcmp(c, &glanced, sizeof(*c))));
	return action;
}

/* The same of the server's. */
static inline enum weir_action checked_begin_server(struct weir_conn *c, const struct weir_segment *g,
						    struct weir_response_reader *r, enum weir_reason *why, bool *passed)
{
	struct weir_conn before, glanced;
	enum weir_action action;

	memcpy(&before, c, sizeof(before));
	memcpy(&glanced, c, sizeof(glanced));
	*passed = weir_conn_server_passes(&glanced, g);
	assert(*passed || !memcmp(&before, &glanced, sizeof(before)));
	action = weir_conn_begin_server(c, g, r, why);
	assert(!*passed || (action == WEIR_PASS && *why == WEIR_REASON_NONE && !memcmp(c, &glanced, sizeof(*c))));
	return action;
}

#endif
