/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Holding what cannot be read: the client's side of an opaque connection (conn.h), as the server's socket is about to get
 * it. A segment that is over a limit is dropped. TCP sends it again, and it is asked again. All numbers are the server's.
 * The steps are those of conn.h:
 *
 *   begin (locked)    FRAME: the reader is to be fed the segment's bytes from `next` on, as far as they go
 *   feed  (unlocked)  then weir_hold_reader_end() tells what the segment weighs, and it is decided
 *   commit (locked)   or refuse: the segment is dropped
 *
 * TLS is followed by its records. Each record costs its weight at the segment in which it begins. Any other stream, and one
 * whose records were lost, is charged by segments: each that has news is one record of its length. A connection that was joined
 * in mid-stream is taken for TLS when a segment begins as a record of application data does. If that proves wrong, the
 * connection is what it was. Such records may as well be in the body of a request of HTTP, and requests behind it in what they announce. So
 * there each segment costs what its records do, or what its empty lines do if that is more.
 *
 * What could be HTTP, and was not read, is not cheaper than HTTP: each segment costs a token at least, and one for each
 * empty line in it, because each may end a request's head.
 *
 * A head may end without one: Perl's HTTP::Daemon ends it at any line that is no field. So a line that may begin a head ends the one
 * before it. Like this a head in two segments is not charged twice.
 *
 * Behind an upgrade short segments cost as little as HTTP/2's, but empty lines cost what they do elsewhere: some proxies send on a 101 that an
 * upstream has made up for its client, and read requests behind it.
 *
 * Two kinds of request have no empty line. One of HTTP/0.9 is one line (RFC 1945, 4.1), and ends with it; the answer ends the
 * connection. And some servers take a client's FIN for the end of a head. Either is a connection's last request, so one at most is a
 * connection's. The first segment with a line that may be the one, or with a FIN that may end the other, costs a token for that,
 * once a connection.
 *
 * Behind an answer that came before its request's end only the lines that end a head count, and that line. A body that the server reads
 * after all costs nothing else.
 *
 * On a connection that is hunting (joined in mid-stream, or lost) only these count, too, less one for each request that was
 * decided on its way here. A body that was under way costs nothing else. When the server has answered meanwhile, what tc
 * could not read is no such body, and is charged as if it was unseen.
 */
#ifndef WEIR_CONN_HOLD_H
#define WEIR_CONN_HOLD_H

#include "weir/conn/hold_reader.h"
#include "weir/conn/stray.h"

/* Does the stream look like TLS from the first byte that was not read? */
WEIR_INLINE bool weir_hold_begins_tls(const struct weir_conn *c)
{
	return c->hold.by_records && !(c->bare & WEIR_BARE_MIDWAY);
}

/*
 * Is it TLS to its end? Its first record has come to the socket, the server has answered in kind, and what was read in its turn were records.
 * Then nothing else can be in it, also where a gap hides where they begin.
 */
WEIR_INLINE bool weir_hold_stays_tls(const struct weir_conn *c)
{
	return c->opaque_why == WEIR_TLS &&
	       (c->bare & (WEIR_BARE_NONE | WEIR_BARE_MIDWAY | WEIR_BARE_UNTOLD)) == WEIR_BARE_NONE;
}

/* Is it TLS? */
WEIR_INLINE bool weir_hold_is_tls(const struct weir_conn *c)
{
	return (weir_hold_begins_tls(c) && !(c->bare & WEIR_BARE_UNTOLD)) || weir_hold_stays_tls(c);
}

/*
 * All but what is known to be something else: what is not read here may be read by the server. What is read on the way there may be lost
 * behind, and something else come in its place: TLS and HTTP/2 are known once a segment has come by that begins it, and TLS by its records as
 * long as there are some. Either is known when the server has answered in kind.
 */
WEIR_INLINE bool weir_hold_may_be_http(const struct weir_conn *c)
{
	if (c->opaque_why == WEIR_TLS)
		return !weir_hold_is_tls(c);
	if (c->opaque_why == WEIR_HTTP2)
		return !(c->bare & WEIR_BARE_NONE) || (c->bare & WEIR_BARE_UNTOLD);
	return true;
}

/* A connection that is hunting: a segment of TLS joins it to what is held; any other is charged by its lines. */
WEIR_INLINE void weir_hold_join(const struct weir_conn *c, const struct weir_socket *k, const struct weir_segment *g,
				struct weir_hold_reader *r)
{
	bool read = !seq_after(g->seq + g->len, weir_splice_seq_to_server(&c->splice, c->request_next));

	r->joining = 1;
	r->by_lines = 1;
	r->crumbs = 0;
	r->free = read || !c->hold.answers;
	r->decided = c->hold.decided;
	if (!k->listens && seq_after(k->next, g->seq))
		r->news = k->next;
	weir_hold_seek(r, false);
}

/* May a segment end a head by its FIN? */
WEIR_INLINE bool weir_hold_cuts(const struct weir_conn *c, const struct weir_segment *g)
{
	return weir_segment_has(g, WEIR_TCP_FIN) && weir_hold_may_be_http(c) &&
	       (c->phase == WEIR_PHASE_HUNTING || !weir_hold_is_tls(c));
}

/*
 * Is each segment charged until the server has it? What was charged before may have been dropped behind this hook, for a wrong
 * checksum say, and other bytes come in its place, which could be requests. Then what is before `next` was decided elsewhere, or
 * charged where it was sure to get to the socket (pace.h).
 */
WEIR_INLINE bool weir_hold_charges_all(const struct weir_conn *c)
{
	return !c->hold.by_records && weir_hold_may_be_http(c);
}

/*
 * Are the segment's bytes, as far as they are before `next`, those that were decided or charged? What was seen on its way (`badged`) was
 * compared there. Anything else, fragments say, may come in the place of a packet that was lost behind ingress, or still waits (pace.h).
 * Only where records were charged at this hook alone, what is before `next` is theirs.
 */
WEIR_INLINE bool weir_hold_knows(const struct weir_conn *c, bool badged)
{
	return badged || (c->hold.by_records && !c->hold.departs_ns);
}

/* Behind which byte is a segment charged? Requests beside records are until the server has them. */
WEIR_INLINE __u32 weir_hold_from(const struct weir_conn *c, const struct weir_socket *k, bool known)
{
	if (!known || (c->hold.by_records && !weir_hold_is_tls(c)))
		return weir_hold_acked(c, k);
	return weir_hold_charges_all(c) ? seq_max(c->hold.next, weir_hold_acked(c, k)) : c->hold.next;
}

/* Is it the first byte of the client's stream, or the first behind the preamble, which was read and compared on its way? */
WEIR_INLINE bool weir_hold_is_start(const struct weir_conn *c, __u32 seq)
{
	return c->bare & WEIR_BARE_FIRST && seq == weir_splice_seq_to_server(&c->splice, c->request_next);
}

/*
 * Does the client's stream begin with the segment, for all that its socket has? In the middle of it HTTP/2's preface says nothing: it may
 * be in a request's body.
 */
WEIR_INLINE bool weir_hold_is_first(const struct weir_conn *c, const struct weir_socket *k,
				    const struct weir_segment *g)
{
	return k->listens || (!k->busy && g->seq == k->next && (k->untouched || weir_hold_is_start(c, g->seq)));
}

WEIR_INLINE void weir_hold_reader_start(const struct weir_conn *c, const struct weir_socket *k,
					const struct weir_segment *g, bool cuts, struct weir_hold_reader *r)
{
	bool by_lines = c->opaque_why == WEIR_TLS || weir_hold_may_be_http(c);
	bool untold = (c->bare & WEIR_BARE_UNTOLD) && c->hold.by_records;

	*r = (struct weir_hold_reader){
		.next = g->seq,
		.news = g->seq,
		.acked = weir_hold_acked(c, k),
		.version = c->hold.version,
		.again = !!c->hold.since_ns,
		.by_lines = by_lines,
		.crumbs = !by_lines || c->opaque_why == WEIR_UPGRADE,
		.line = 1,
		.begun = untold ? 0 : WEIR_HOLD_BEGUN,
		.untold = untold,
		.named = 1,
		.head = !!(c->bare & WEIR_BARE_HEAD),
		.headed = !!(c->bare & WEIR_BARE_HEAD),
		.bare_paid = !!(c->bare & WEIR_BARE_PAID),
		.open = !!(c->bare & WEIR_BARE_OPEN),
		.cuts = cuts,
		.preface = WEIR_HOLD_NO_PREFACE,
		.free = weir_reason_is_body(c->opaque_why),
		.record.spared = c->hold.record.spared,
		.record.overhead = c->hold.record.overhead,
	};
}

WEIR_INLINE enum weir_action weir_hold_begin_hunting(const struct weir_conn *c, const struct weir_socket *k,
						     const struct weir_segment *g, struct weir_hold_reader *r,
						     enum weir_reason *why)
{
	if (!k->listens && !seq_after(g->seq + g->len + r->cuts, k->next))
		return WEIR_PASS;
	if (r->cuts && seq_after(g->seq, r->acked)) {
		*why = WEIR_OUT_OF_ORDER;
		return WEIR_DROP;
	}
	weir_hold_join(c, k, g, r);
	return WEIR_FRAME;
}

/* May the stream be TLS, for all that was seen of it? */
WEIR_INLINE bool weir_hold_may_be_tls(const struct weir_conn *c)
{
	return c->opaque_why == WEIR_TLS || c->opaque_why == WEIR_MID_STREAM || c->opaque_why == WEIR_UNSEEN ||
	       c->opaque_why == WEIR_SIGNED;
}

/* The segment's first record goes on, or begins, where the last one that was charged has ended. */
WEIR_INLINE void weir_hold_reader_go_on(const struct weir_conn *c, struct weir_hold_reader *r)
{
	r->by_records = 1;
	r->midway = !weir_hold_is_tls(c);
	r->fresh = weir_hold_begins_tls(c) && !c->hold.record.type && !c->hold.record.header;
	r->next = c->hold.next;
	r->record = c->hold.record;
	if (r->untold)
		r->record.stage |= WEIR_RECORD_EARLY;
}

/*
 * The segment's news begin at `from`, or where it begins.
 *
 * A segment of records that is ahead of its turn is charged as what may be HTTP, because its first record may be none. It moves nothing,
 * because it may be dropped behind this hook. It is not dropped here: the server would never ask for what is missing, and the client would
 * find that out by its timer alone. The same holds for a segment that comes by another way than the records that were charged.
 */
WEIR_INLINE enum weir_action weir_hold_begin_opaque(const struct weir_conn *c, const struct weir_socket *k,
						    const struct weir_segment *g, __u32 from, bool known,
						    struct weir_hold_reader *r, enum weir_reason *why)
{
	const struct weir_hold *h = &c->hold;
	__u32 end = g->seq + g->len + r->cuts;
	bool ahead = seq_after(g->seq, h->next);
	/* What the server has and was never seen here does not come again. */
	bool in_order = !ahead || !seq_after(g->seq, r->acked), in_step, is_tls = weir_hold_stays_tls(c);

	/* What a FIN ends has to be known: that of a segment ahead of its turn is not. */
	if (!in_order && (r->cuts || (h->by_records && !is_tls && weir_segment_has(g, WEIR_TCP_FIN)))) {
		*why = WEIR_OUT_OF_ORDER;
		return WEIR_DROP;
	}
	r->next = r->news = seq_max(from, g->seq);
	in_step = h->by_records && !ahead;
	if (is_tls && !(in_step && known))
		r->by_lines = 0;
	if (h->by_records && (!in_order || !known)) {
		r->ahead = r->apart = 1;
		r->head = 0;
		return WEIR_FRAME;
	}
	if (c->opaque_why == WEIR_HTTP2 && r->news == h->next && weir_hold_is_first(c, k, g))
		r->preface = 0;
	if (in_step)
		weir_hold_reader_go_on(c, r);
	else if (r->crumbs)
		r->grants = end - r->news <= WEIR_HOLD_GRANTS && (end - r->news) % WEIR_HOLD_GRANT == 0;
	else if (in_order && weir_hold_may_be_tls(c))
		weir_hold_seek(r, !r->by_lines);
	return WEIR_FRAME;
}

/*
 * known: weir_hold_knows(), at the socket's hook. PASS: the segment brings no news. DROP: the socket would drop it, or what is before it must
 * come first.
 */
WEIR_INLINE enum weir_action weir_hold_begin(const struct weir_conn *c, const struct weir_socket *k,
					     const struct weir_segment *g, bool known, struct weir_hold_reader *r,
					     enum weir_reason *why)
{
	bool cuts = weir_hold_cuts(c, g);
	__u32 from = weir_hold_from(c, k, known), end = g->seq + g->len + cuts;

	WEIR_FRESH_ALL();
	if (end == g->seq || (g->flags & (WEIR_TCP_SYN | WEIR_TCP_RST)))
		return WEIR_PASS;
	if (c->phase != WEIR_PHASE_HUNTING && (c->phase != WEIR_PHASE_OPAQUE || !seq_after(end, from)))
		return WEIR_PASS;
	if (!weir_hold_socket_takes(c, k, g)) {
		*why = WEIR_OUT_OF_WINDOW;
		return WEIR_DROP;
	}
	WEIR_FRESH_ALL();
	weir_hold_reader_start(c, k, g, cuts, r);
	WEIR_FRESH_ALL();
	if (c->phase == WEIR_PHASE_HUNTING)
		return weir_hold_begin_hunting(c, k, g, r, why);
	return weir_hold_begin_opaque(c, k, g, from, known, r, why);
}

/* The segment is over a limit. */
WEIR_INLINE void weir_hold_refuse(struct weir_conn *c, const struct weir_hold_reader *r, __u64 now_ns)
{
	struct weir_hold *h = &c->hold;

	if (h->version != r->version)
		return;
	if (!h->since_ns)
		h->since_ns = now_ns;
	/* It stays what it is when it comes again, and the server has answered the hello before it. */
	h->record.stage |= r->record.stage & WEIR_RECORD_EARLY;
}

/* How long was withheld what is let through now? */
WEIR_INLINE void weir_hold_release(struct weir_hold *h, __u64 now_ns, __u64 *held_ns)
{
	if (h->since_ns && now_ns > h->since_ns)
		*held_ns = now_ns - h->since_ns;
	h->since_ns = 0;
}

/* Does it begin HTTP/2, or TLS? */
WEIR_INLINE bool weir_hold_reader_begins(const struct weir_hold_reader *r)
{
	return r->preface == WEIR_HOLD_PREFACE || (r->by_records && r->fresh && r->record.type && !r->record.header);
}

/* Once a segment has ended within what may be a head, it is not known what others have ended there since. */
WEIR_INLINE void weir_hold_note_bare(struct weir_conn *c, const struct weir_hold_reader *r)
{
	c->bare |= (r->bare ? WEIR_BARE_PAID : 0) | (r->open ? WEIR_BARE_OPEN : 0);
	c->bare |= weir_hold_reader_begins(r) ? WEIR_BARE_NONE : 0;
	c->bare |= r->by_records && r->midway && !r->untold ? WEIR_BARE_MIDWAY : 0;
	/* What is out of its turn was not read behind what comes before it. */
	if (!r->ahead && !r->arrives)
		c->bare = (c->bare & ~WEIR_BARE_HEAD) | (r->head ? WEIR_BARE_HEAD : 0);
}

WEIR_INLINE enum weir_action weir_hold_commit_hunting(struct weir_conn *c, const struct weir_hold_reader *r,
						      __u64 now_ns, __u64 *held_ns, enum weir_reason *why)
{
	struct weir_hold *h = &c->hold;

	if (r->decided > h->decided) {
		*why = WEIR_CONTENDED;
		return WEIR_DROP;
	}
	h->decided -= r->decided;
	weir_hold_note_bare(c, r);
	weir_hold_release(h, now_ns, held_ns);
	return WEIR_PASS;
}

/* Segments of a connection that is hunting are read side by side. Has another begun a head meanwhile, or ended the one that was open? */
WEIR_INLINE bool weir_hold_head_moved(const struct weir_conn *c, const struct weir_hold_reader *r)
{
	return r->joining && r->headed != !!(c->bare & WEIR_BARE_HEAD);
}

/* Sets *held_ns to how long the segment was withheld. DROP: someone else moved the state, and it must come again. */
WEIR_INLINE enum weir_action weir_hold_commit(struct weir_conn *c, const struct weir_hold_reader *r, __u64 now_ns,
					      __u64 *held_ns, enum weir_reason *why)
{
	struct weir_hold *h = &c->hold;
	const __u8 bare = c->bare;
	bool lost;

	if (weir_hold_head_moved(c, r)) {
		*why = WEIR_CONTENDED;
		return WEIR_DROP;
	}
	if (r->joining && (!r->by_records || c->phase != WEIR_PHASE_HUNTING))
		return weir_hold_commit_hunting(c, r, now_ns, held_ns, why);
	if (h->version != r->version) {
		*why = WEIR_CONTENDED;
		return WEIR_DROP;
	}
	if (r->joining)
		weir_conn_opaque(c, r->news, WEIR_MID_STREAM);
	weir_hold_note_bare(c, r);
	weir_hold_release(h, now_ns, held_ns);
	if (!r->by_records && !r->ahead && c->opaque_why == WEIR_MID_STREAM) {
		weir_conn_hunt(c);
		return WEIR_PASS;
	}
	/* What is in its turn, and being read meanwhile, stays in it. */
	if (r->ahead && c->bare == bare)
		return WEIR_PASS;
	h->version++;
	if (r->ahead || r->arrives)
		return WEIR_PASS;
	lost = h->by_records && !r->by_records;
	/* Not where TLS was only sought. */
	if (lost && r->by_lines)
		c->bare = (c->bare & ~WEIR_BARE_UNTOLD) | WEIR_BARE_MIDWAY;
	h->by_records = r->by_records;
	h->record = r->record;
	if (r->untold)
		h->record.stage &= ~WEIR_RECORD_EARLY; /* what was early has come */
	/* Over a record that was none the position has run ahead. What is ahead of a gap does not make the gap old. */
	if (weir_hold_charges_all(c))
		h->next = lost ? r->acked : seq_max(h->next, r->acked);
	else if (!seq_after(r->news, h->next) || !seq_after(r->news, r->acked))
		h->next = seq_max(h->next, r->next);
	return WEIR_PASS;
}

#endif
