/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rejecting an ambiguous request (ambiguity.h): what its reader, which it has stopped, is told between feed and commit.
 * Like a refused one it is answered in its turn, or waits for it, and nothing of it goes on to the server; the answer is
 * a 400, and always ends the connection. Where the server has its first part already, the end of the connection keeps
 * the server from taking the rest for something else; a 400 is said then only if no answer has begun.
 */
#ifndef WEIR_CONN_REJECT_H
#define WEIR_CONN_REJECT_H

#include "weir/conn/request_reader.h"
#include "weir/http/ambiguity.h"

/* May the request that was lost be rejected? A connection that was joined in mid-stream, or is closing, is left alone. */
WEIR_INLINE bool weir_request_reader_may_reject(const struct weir_request_reader *r)
{
	return !r->shed && !r->again && r->why_not != WEIR_MID_STREAM && r->why_not != WEIR_SERVER_CLOSED &&
	       weir_reason_is_ambiguity(r->lost, r->first && !r->heads);
}

/*
 * Takes weir_request_reader_passed() back if it was called for this request: its head was in order, but its body is ambiguous.
 */
WEIR_INLINE bool weir_request_reader_unpass(struct weir_request_reader *r)
{
	if (!r->heads || !r->request.head_length)
		return false;
	r->heads--;
	r->head_bits &= ~(1ULL << (r->heads % WEIR_OUTSTANDING_MAX));
	return true;
}

/* The request will be answered (WEIR_REASON_NONE), or the reason for which it waits. */
WEIR_INLINE enum weir_reason weir_request_reader_reject(struct weir_request_reader *r)
{
	enum weir_reason why = r->heads ? WEIR_PIPELINED : r->why_not;

	if (!r->whole && r->must_close)
		why = WEIR_REASON_NONE;
	r->shed = why == WEIR_REASON_NONE;
	r->held = !r->shed;
	r->answer.rejected = r->lost;
	return why;
}

#endif
