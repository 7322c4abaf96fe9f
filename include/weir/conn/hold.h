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
 * Two kinds of request have no empty line. One of HTTP/0.9 is one line (RFC 1945, 4.1), and ends with it; the answer ends the
 * connection. And some servers take a client's FIN for the end of a head. Either is a connection's last request, so one at most is a
 * connection's. The first segment with a line that may be the one, or with a FIN that may end the other, costs a token for that,
 * once a connection.
 *
 * Behind an answer that came before its request's end only the empty lines count, and that line. A body that the server reads
 * after all costs nothing else.
 *
 * On a connection that is hunting (joined in mid-stream, or lost) only these count, too, less one for each request that was
 * decided on its way here. A body that was under way costs nothing else. When the server has answered meanwhile, what tc
 * could not read is no such body, and is charged as if it was unseen.
 */
#ifndef WEIR_CONN_HOLD_H
#define WEIR_CONN_HOLD_H

#include "weir/conn/record.h"
#include "weir/conn/stray.h"

#define WEIR_HOLD_BEGUN 4    /* of "GET " */
#define WEIR_HOLD_ENDING 9   /* of " HTTP/1.1" */
#define WEIR_HOLD_PREFACE 24 /* of "PRI * HTTP/2.0", "SM", and their lines' ends */
#define WEIR_HOLD_NO_PREFACE 0xff
#define WEIR_HOLD_GRANT 13			/* bytes of a WINDOW_UPDATE of HTTP/2 */
#define WEIR_HOLD_GRANTS (19 * WEIR_HOLD_GRANT) /* of as many as are looked for in a segment */

/* One segment on a copy of the machine. */
struct weir_hold_reader {
	__u32 next;    /* next byte to feed */
	__u32 news;    /* the first byte that is new */
	__u32 acked;   /* the first byte that the server has not got, as far as is known */
	__u32 version; /* of the state it was copied from */
	__u32 records; /* found in this segment, not counting those that cost nothing */
	__u32 weight;  /* of them together, in tokens */
	__u8 by_records;
	__u8 seeking; /* the segment may begin with a record, if it is one of application data */
	__u8 joining; /* else the connection goes on hunting */
	__u8 again;   /* it was withheld before */
	__u8 by_lines;
	__u8 line;  /* the next byte begins a line, for all that is known */
	__u8 free;  /* only its lines are charged */
	__u8 begun; /* bytes of "GET " that the line may have begun with; all of them: it may be a request of HTTP/0.9 */
	__u8 ending;	/* bytes of " HTTP/1.1" with which the line ends, as far as it goes */
	__u8 bare;	/* a request without an empty line may be in it, and is paid for with this segment */
	__u8 bare_paid; /* one was before */
	__u8 open;	/* the next byte may be within a head that nothing was paid for */
	__u8 cuts;	/* a FIN would end that */
	__u8 preface;	/* bytes of HTTP/2's with which the segment begins, as far as it goes */
	__u8 ahead;	/* of its turn: where its records begin is not known */
	__u8 midway;	/* its records may be in a body: requests count beside them */
	__u8 arrives;	/* ingress has charged the bytes that it expects in its place (pace.h) */
	__u8 fresh;	/* nothing of its first record was read before */
	__u8 grants;	/* it may be WINDOW_UPDATEs: bytes of them that were found, and one; 0: it is something else */
	__u8 pad;
	__u32 lines;   /* empty ones */
	__u32 decided; /* requests of the connection that are paid for and have not come by before */
	struct weir_record record;
};

/* Is the stream TLS from the first byte that was not read? */
WEIR_INLINE bool weir_hold_is_tls(const struct weir_conn *c)
{
	return c->hold.by_records && !(c->bare & WEIR_BARE_MIDWAY);
}

WEIR_INLINE void weir_hold_seek(struct weir_hold_reader *r)
{
	__u8 spared = r->record.spared;

	r->by_records = 1;
	r->seeking = 1;
	r->midway = 1;
	weir_record_start_midway(&r->record);
	r->record.spared = spared;
}

/*
 * All but what is known to be something else: what is not read here may be read by the server. What is read on the way there may be lost
 * behind, and something else come in its place: TLS is known by its records, as long as there are some, and HTTP/2 once a segment has come
 * by that begins it.
 */
WEIR_INLINE bool weir_hold_may_be_http(const struct weir_conn *c)
{
	if (c->opaque_why == WEIR_TLS)
		return !weir_hold_is_tls(c);
	if (c->opaque_why == WEIR_HTTP2)
		return !(c->bare & WEIR_BARE_NONE);
	return c->opaque_why != WEIR_UPGRADE;
}

/* A connection that is hunting: a segment of TLS joins it to what is held; any other is charged by its lines. */
WEIR_INLINE void weir_hold_join(const struct weir_conn *c, const struct weir_socket *k, const struct weir_segment *g,
				struct weir_hold_reader *r)
{
	bool read = !seq_after(g->seq + g->len, weir_splice_seq_to_server(&c->splice, c->request_next));

	r->joining = 1;
	r->by_lines = 1;
	r->free = read || !c->hold.answers;
	r->decided = c->hold.decided;
	if (!k->listens && seq_after(k->next, g->seq))
		r->news = k->next;
	weir_hold_seek(r);
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

/*
 * Does the client's stream begin with the segment, for all that its socket has? In the middle of it HTTP/2's preface says nothing: it may be
 * in a request's body.
 */
WEIR_INLINE bool weir_hold_is_first(const struct weir_socket *k, const struct weir_segment *g)
{
	return k->listens || (k->untouched && !k->busy && g->seq == k->next);
}

/*
 * known: weir_hold_knows(), at the socket's hook. PASS: the segment brings no news. DROP: the socket would drop it, or what is before it must
 * come first.
 *
 * A segment of records that is ahead of its turn is charged as what may be HTTP, because its first record may be none. It moves nothing,
 * because it may be dropped behind this hook. It is not dropped here: the server would never ask for what is missing, and the client would
 * find that out by its timer alone. The same holds for a segment that comes by another way than the records that were charged.
 */
WEIR_INLINE enum weir_action weir_hold_begin(const struct weir_conn *c, const struct weir_socket *k,
					     const struct weir_segment *g, bool known, struct weir_hold_reader *r,
					     enum weir_reason *why)
{
	const struct weir_hold *h = &c->hold;
	bool cuts = weir_hold_cuts(c, g), ahead, in_order;
	__u32 from = weir_hold_from(c, k, known), end = g->seq + g->len + cuts;

	WEIR_FRESH_ALL();
	if (end == g->seq || (g->flags & (WEIR_TCP_SYN | WEIR_TCP_RST)))
		return WEIR_PASS;
	if (c->phase != WEIR_PHASE_HUNTING && (c->phase != WEIR_PHASE_OPAQUE || !seq_after(end, from)))
		return WEIR_PASS;
	if (!weir_hold_socket_takes(k, g)) {
		*why = WEIR_OUT_OF_WINDOW;
		return WEIR_DROP;
	}
	WEIR_FRESH_ALL();
	*r = (struct weir_hold_reader){
		.next = g->seq,
		.news = g->seq,
		.acked = weir_hold_acked(c, k),
		.version = h->version,
		.again = !!h->since_ns,
		.by_lines = c->opaque_why == WEIR_TLS || weir_hold_may_be_http(c),
		.line = 1,
		.begun = WEIR_HOLD_BEGUN,
		.bare_paid = !!(c->bare & WEIR_BARE_PAID),
		.open = !!(c->bare & WEIR_BARE_OPEN),
		.cuts = cuts,
		.preface = WEIR_HOLD_NO_PREFACE,
		.free = c->opaque_why == WEIR_ANSWERED_EARLY,
		.record.spared = h->record.spared,
	};
	WEIR_FRESH_ALL();
	if (c->phase == WEIR_PHASE_HUNTING) {
		if (!k->listens && !seq_after(end, k->next))
			return WEIR_PASS;
		if (cuts && seq_after(g->seq, r->acked)) {
			*why = WEIR_OUT_OF_ORDER;
			return WEIR_DROP;
		}
		weir_hold_join(c, k, g, r);
		return WEIR_FRAME;
	}
	ahead = seq_after(g->seq, h->next);
	/* What the server has and was never seen here does not come again. */
	in_order = !ahead || !seq_after(g->seq, r->acked);
	/* What a FIN ends has to be known: that of a segment ahead of its turn is not. */
	if (!in_order && (cuts || (h->by_records && weir_segment_has(g, WEIR_TCP_FIN)))) {
		*why = WEIR_OUT_OF_ORDER;
		return WEIR_DROP;
	}
	if (in_order || !h->by_records)
		r->next = r->news = seq_max(from, g->seq);
	if (h->by_records && (!in_order || !known)) {
		r->ahead = 1;
		return WEIR_FRAME;
	}
	if (c->opaque_why == WEIR_HTTP2 && r->news == h->next && weir_hold_is_first(k, g))
		r->preface = 0;
	if (h->by_records && !ahead) {
		r->by_records = 1;
		r->midway = !weir_hold_is_tls(c);
		r->fresh = !r->midway && !h->record.type && !h->record.header;
		r->next = seq_max(h->next, g->seq);
		r->record = h->record;
	} else if (!r->by_lines) {
		r->grants = end - r->news <= WEIR_HOLD_GRANTS && (end - r->news) % WEIR_HOLD_GRANT == 0;
	} else if (in_order && (c->opaque_why == WEIR_TLS || c->opaque_why == WEIR_MID_STREAM ||
				c->opaque_why == WEIR_UNSEEN || c->opaque_why == WEIR_SIGNED)) {
		weir_hold_seek(r);
	}
	return WEIR_FRAME;
}

/* A record has begun. The position runs ahead over its body: those segments pass without a look, in whatever order. */
WEIR_INLINE void weir_hold_reader_head(struct weir_hold_reader *r)
{
	__u32 rest = weir_record_skippable(&r->record);

	if (rest)
		weir_record_skip(&r->record, rest);
	r->next += rest;
	r->weight += weir_record_weight(&r->record);
	r->records += !!weir_record_weight(&r->record);
}

/* The next byte of the client's stream, at r->next. */
WEIR_INLINE enum weir_frame_event weir_hold_reader_feed(struct weir_hold_reader *r, __u8 byte)
{
	enum weir_frame_event event = weir_record_byte(&r->record, byte);

	r->next++;
	if (event == WEIR_FRAME_HEAD && r->seeking) {
		if (r->record.type != WEIR_RECORD_DATA || r->record.minor != 3)
			event = WEIR_FRAME_LOST;
		r->seeking = 0;
	}
	if (event == WEIR_FRAME_LOST)
		r->by_records = 0;
	if (event == WEIR_FRAME_HEAD)
		weir_hold_reader_head(r);
	return event;
}

/* "GET " anywhere in a line, for a body before it need not end with one. Some servers take any white space. */
WEIR_INLINE __u8 weir_hold_begun(__u8 begun, __u8 byte)
{
	__u8 next = 0x544547U >> 8 * (begun & 3); /* "GET" */

	if (begun == WEIR_HOLD_BEGUN || byte == next || (begun == 3 && byte <= ' '))
		return begun == WEIR_HOLD_BEGUN ? begun : begun + 1;
	return byte == 'G';
}

/* " HTTP/1.", a digit, and the line's end: such a request has an empty line, too. */
WEIR_INLINE __u8 weir_hold_ending(__u8 ending, __u8 byte)
{
	__u8 next = 0x2e312f5054544820ULL >> 8 * (ending & 7); /* " HTTP/1." */

	if (ending == WEIR_HOLD_ENDING)
		return byte == '\r' ? ending : byte == ' ';
	if (ending == WEIR_HOLD_ENDING - 1 ? byte >= '0' && byte <= '9' : byte == next)
		return ending + 1;
	return byte == ' ';
}

/*
 * All of HTTP/2's preface (RFC 9113, 3.4): a server that takes it for HTTP/1 does not go on behind it. The first line alone would not do:
 * Go's server hands it to its handler as a request, and reads another one.
 */
WEIR_INLINE __u8 weir_hold_preface(__u8 preface, __u8 byte)
{
	__u64 word = 0x5448202a20495250ULL; /* "PRI * HT" */

	if (preface >= WEIR_HOLD_PREFACE)
		return preface;
	if (preface >= 8)
		word = preface < 16 ? 0x0a0d302e322f5054ULL :
				      0x0a0d0a0d4d530a0dULL; /* "TP/2.0\r\n", "\r\nSM\r\n\r\n" */
	return byte == (word >> 8 * (preface & 7) & 0xff) ? preface + 1 : WEIR_HOLD_NO_PREFACE;
}

/*
 * Clients of HTTP/2 that take what they are sent say so again and again, of the stream and of the connection: a segment of whole
 * WINDOW_UPDATEs is as short as one. Wherever a server begins a frame in such bytes, none is a request: either its type is another one, its
 * stream's number is even, or it is empty. Streams are those whose numbers have two bytes, or the last would not hold.
 */
WEIR_INLINE __u8 weir_hold_grants(__u8 grants, __u8 byte)
{
	__u32 at = (grants - 1U) % WEIR_HOLD_GRANT;
	__u8 form = 0x08040000ULL >> 8 * (at & 7); /* length, type, flags, a stream: 0 0 4 8 0 0 0 */

	return grants && (at > 6 || byte == form) ? grants + 1 : 0;
}

/* Are the segment's new bytes to be fed to the reader of lines, too? */
WEIR_INLINE bool weir_hold_reader_wants_lines(const struct weir_hold_reader *r)
{
	return r->grants || (r->by_lines && (!r->by_records || r->midway));
}

/* Where it wants lines: a byte that is new. */
WEIR_INLINE void weir_hold_reader_line(struct weir_hold_reader *r, __u8 byte)
{
	if (!r->by_lines) {
		r->grants = weir_hold_grants(r->grants, byte);
		return;
	}
	r->preface = weir_hold_preface(r->preface, byte);
	if (byte != '\n') {
		r->begun = weir_hold_begun(r->begun, byte);
		r->ending = weir_hold_ending(r->ending, byte);
		r->line = byte == '\r' && r->line;
		r->open |= !r->line;
		return;
	}
	r->lines += r->line;
	r->open &= !r->line;
	r->bare |= !r->line && r->begun == WEIR_HOLD_BEGUN && r->ending != WEIR_HOLD_ENDING;
	r->line = 1;
	r->begun = r->ending = 0;
}

/* Its bytes may not be those that the server takes: they move no position. */
WEIR_INLINE void weir_hold_reader_distrust(struct weir_hold_reader *r)
{
	r->by_records = r->seeking = 0;
}

/* What the segment costs at least, for the requests that may be in it. */
WEIR_INLINE void weir_hold_reader_requests(struct weir_hold_reader *r)
{
	r->bare |= r->cuts && r->open;
	r->bare &= !r->bare_paid;
	if (r->by_lines && r->lines + r->bare > r->weight)
		r->weight = r->lines + r->bare;
	r->open &= r->weight == r->lines + r->bare;
}

/* Its records are decided inside the server: they cost nothing here. */
WEIR_INLINE void weir_hold_reader_spare_records(struct weir_hold_reader *r)
{
	r->weight = r->by_records && r->midway ? r->lines + r->bare : 0;
}

/* How many bytes of a segment without records cost nothing by themselves, if it has no more? */
WEIR_INLINE __u32 weir_hold_reader_spares(const struct weir_hold_reader *r)
{
	__u32 granting = r->grants - 1U;

	if (r->by_lines)
		return 0;
	return granting == r->next - r->news ? granting : WEIR_RECORD_FREE;
}

/* All bytes have been fed, or the records were lost: what is new of the segment is one record then. */
WEIR_INLINE void weir_hold_reader_end(struct weir_hold_reader *r, const struct weir_segment *g)
{
	if (r->by_records && !r->seeking) {
		if (r->midway)
			weir_hold_reader_requests(r);
		r->records += !r->records && r->weight;
		return;
	}
	r->by_records = 0;
	r->next = g->seq + g->len;
	if (r->preface == WEIR_HOLD_PREFACE)
		r->by_lines = r->open = r->bare = 0;
	r->weight = r->free ? 0 : weir_bytes_weight(r->next - r->news, weir_hold_reader_spares(r));
	if (!r->weight && !r->by_lines)
		r->weight = weir_record_spare(&r->record);
	weir_hold_reader_requests(r);
	if (r->decided > r->weight)
		r->decided = r->weight;
	r->weight -= r->decided;
	r->records = !!r->weight;
}

/* The segment is over a limit. */
WEIR_INLINE void weir_hold_refuse(struct weir_conn *c, const struct weir_hold_reader *r, __u64 now_ns)
{
	struct weir_hold *h = &c->hold;

	if (h->version == r->version && !h->since_ns)
		h->since_ns = now_ns;
}

/* How long was withheld what is let through now? */
WEIR_INLINE void weir_hold_release(struct weir_hold *h, __u64 now_ns, __u64 *held_ns)
{
	if (h->since_ns && now_ns > h->since_ns)
		*held_ns = now_ns - h->since_ns;
	h->since_ns = 0;
}

/* Does it begin what no server of HTTP/1 goes on behind? */
WEIR_INLINE bool weir_hold_reader_begins(const struct weir_hold_reader *r)
{
	return r->preface == WEIR_HOLD_PREFACE || (r->by_records && r->fresh && r->record.type && !r->record.header);
}

/* Once a segment has ended within what may be a head, it is not known what others have ended there since. */
WEIR_INLINE void weir_hold_note_bare(struct weir_conn *c, const struct weir_hold_reader *r)
{
	c->bare |= (r->bare ? WEIR_BARE_PAID : 0) | (r->open ? WEIR_BARE_OPEN : 0);
	c->bare |= weir_hold_reader_begins(r) ? WEIR_BARE_NONE : 0;
	c->bare |= r->by_records && r->midway ? WEIR_BARE_MIDWAY : 0;
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

/* Sets *held_ns to how long the segment was withheld. DROP: someone else moved the state, and it must come again. */
WEIR_INLINE enum weir_action weir_hold_commit(struct weir_conn *c, const struct weir_hold_reader *r, __u64 now_ns,
					      __u64 *held_ns, enum weir_reason *why)
{
	struct weir_hold *h = &c->hold;
	bool lost;

	if (r->joining && (!r->by_records || c->phase != WEIR_PHASE_HUNTING))
		return weir_hold_commit_hunting(c, r, now_ns, held_ns, why);
	if (h->version != r->version) {
		*why = WEIR_CONTENDED;
		return WEIR_DROP;
	}
	if (r->joining)
		weir_conn_opaque(c, r->news, WEIR_MID_STREAM);
	if (!r->by_records && !r->ahead && c->opaque_why == WEIR_MID_STREAM) {
		weir_conn_hunt(c);
		return WEIR_PASS;
	}
	weir_hold_note_bare(c, r);
	weir_hold_release(h, now_ns, held_ns);
	h->version++;
	if (r->ahead || r->arrives)
		return WEIR_PASS;
	lost = h->by_records && !r->by_records;
	h->by_records = r->by_records;
	h->record = r->record;
	/* Over a record that was none the position has run ahead. What is ahead of a gap does not make the gap old. */
	if (weir_hold_charges_all(c))
		h->next = lost ? r->acked : seq_max(h->next, r->acked);
	else if (!seq_after(r->news, h->next) || !seq_after(r->news, r->acked))
		h->next = seq_max(h->next, r->next);
	return WEIR_PASS;
}

#endif
