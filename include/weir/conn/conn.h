/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One connection: the framing of both directions and the translation between them.
 *
 * A segment is taken in three steps, so that the state is locked only while plain numbers change hands:
 *
 *   begin (locked)    what can be said from the header alone; FRAME hands out a copy of the framing machine
 *   feed  (unlocked)  the segment's new bytes run through the copy; what a request may do is decided meanwhile
 *   commit (locked)   the copy becomes the state, if nobody else moved it; the segment passes or is cut
 *
 * What begins a request or an answer in its turn, where nothing is in doubt or under way, is fed first; begin and commit are one step
 * then (client_at_once.h, weir_conn_take_server()).
 *
 * When begin or commit has said what is to be done, a view taken under the same lock (weir_conn_look) is all that is
 * needed to do it: to translate the segment (weir_splice_to_server, _to_client), or to make replies (weir_view_reply,
 * weir_view_forward).
 *
 * On a server whose connections begin with a PROXY protocol preamble the reader's bytes go to that machine first
 * (weir_request_reader_feed_preamble), and to the request's when it has ended.
 *
 * The framing position may run ahead of the bytes seen: a body of known length is skipped as a whole, so that its
 * segments are below the position and pass without a look, in whatever order they come.
 */
#ifndef WEIR_CONN_CONN_H
#define WEIR_CONN_CONN_H

#include "weir/conn/client_commit.h"
#include "weir/conn/reject.h"
#include "weir/conn/server.h"
#include "weir/conn/state.h"

/* Taken under the lock, after begin or commit said `action` of segment g. Where nothing was ever cut, that is all of it. */
WEIR_INLINE void weir_conn_look(struct weir_conn *c, const struct weir_segment *g, enum weir_action action,
				struct weir_view *view)
{
	view->closed = c->phase == WEIR_PHASE_CLOSED;
	view->opaque = c->phase == WEIR_PHASE_OPAQUE;
	view->news = 0;
	view->splice.cuts = c->splice.cuts;
	if (!c->splice.cuts)
		return;
	view->news = action >= WEIR_ANSWER && !view->closed && weir_splice_has_news(&c->splice, g);
	if (view->news)
		weir_splice_tell(&c->splice, g);
	view->splice = c->splice;
	view->answer = c->answer;
}

/* The header of what weir says to the client in reply to segment g: ANSWER, ACK or CLOSE. */
WEIR_INLINE void weir_view_reply(const struct weir_view *view, const struct weir_segment *g, enum weir_action action,
				 struct weir_segment *reply)
{
	weir_splice_reply(&view->splice, g, reply);
	if (action == WEIR_ACK) {
		reply->seq = weir_splice_answer_end(&view->splice) + view->closed;
		reply->len = 0;
		reply->flags = WEIR_TCP_ACK;
	} else if (view->closed) {
		reply->flags |= WEIR_TCP_FIN;
	}
}

/* What the server may see of segment g, whose bytes were cut: CLOSE: a RST; with news: a bare acknowledgement. */
WEIR_INLINE void weir_view_forward(const struct weir_view *view, const struct weir_segment *g, enum weir_action action,
				   struct weir_segment *forward)
{
	*forward = *g;
	if (action == WEIR_CLOSE)
		*forward = (struct weir_segment){
			.seq = weir_splice_cut_at(&view->splice),
			.flags = WEIR_TCP_RST,
		};
	else
		weir_splice_strip(&view->splice, forward);
}

#endif
