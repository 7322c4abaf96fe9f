/* SPDX-License-Identifier: GPL-2.0 */
/* What one segment of a connection that is held (hold.h) is found to weigh: by its records, by its lines, or by its length. */
#ifndef WEIR_CONN_HOLD_READER_H
#define WEIR_CONN_HOLD_READER_H

#include "weir/conn/record.h"
#include "weir/tcp/segment.h"

#define WEIR_HOLD_BEGUN 4    /* of "GET " */
#define WEIR_HOLD_ENDING 9   /* of " HTTP/1.1" */
#define WEIR_HOLD_NAMED 6    /* of " HTTP/" */
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
	__u8 ending; /* bytes of " HTTP/1.1" with which the line ends, as far as it goes */
	__u8 named; /* bytes of " HTTP/" that stand there; all of them: the line names a version, as a request's first line does */
	__u8 head;	/* such a line has come, and no empty one behind it */
	__u8 headed;	/* one had before the segment, for all that was known when its reading began */
	__u8 apart;	/* what comes before it and behind it is not known */
	__u8 bare;	/* a request without an empty line may be in it, and is paid for with this segment */
	__u8 bare_paid; /* one was before */
	__u8 open;	/* the next byte may be within a head that nothing was paid for */
	__u8 cuts;	/* a FIN would end that */
	__u8 preface;	/* bytes of HTTP/2's with which the segment begins, as far as it goes */
	__u8 ahead;	/* of its turn: where its records begin is not known */
	__u8 midway;	/* its records may be in a body: requests count beside them */
	__u8 arrives;	/* ingress has charged the bytes that it expects in its place (pace.h) */
	__u8 fresh;	/* nothing of its first record was read before */
	__u8 untold;	/* its records, from the stream's first on, may be none: no line before them is under way */
	__u8 grants;	/* it may be WINDOW_UPDATEs: bytes of them that were found, and one; 0: it is something else */
	__u8 crumbs; /* a segment that is as short as a WINDOW_UPDATE costs nothing by its bytes, nor do several of these */
	__u32 lines;   /* that end a head: empty ones, and first ones of the next */
	__u32 decided; /* requests of the connection that are paid for and have not come by before */
	struct weir_record record;
};

/*
 * Does the segment begin with what looks like a record? is_tls: whether that is one or not, no line of the stream is a request's, and what its
 * cipher adds is known from its handshake.
 */
WEIR_INLINE void weir_hold_seek(struct weir_hold_reader *r, bool is_tls)
{
	__u8 spared = r->record.spared, overhead = r->record.overhead;

	r->by_records = 1;
	r->seeking = 1;
	r->midway = !is_tls;
	r->untold = 0;
	weir_record_start_midway(&r->record);
	if (spared)
		r->record.spared = spared;
	if (is_tls)
		r->record.overhead = overhead;
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

/* The white space may be any. */
WEIR_INLINE __u8 weir_hold_named(__u8 named, __u8 byte)
{
	__u8 next = 0x2f5054544820ULL >> 8 * (named & 7); /* " HTTP/" */

	return named && byte == next ? named + 1 : byte <= ' ';
}

/*
 * All of HTTP/2's preface (RFC 9113, 3.4). The first line alone would not do: Go's server hands it to its handler as a request, and reads
 * another one. A server of HTTP/1 that goes on behind all of it is known by its answer (server.h).
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

/*
 * A head begins. Some servers end the one before it at any line that is no field, and need no empty one. The last, which has none either,
 * is paid once a connection.
 */
WEIR_INLINE void weir_hold_reader_begin_head(struct weir_hold_reader *r)
{
	r->lines += r->head;
	r->bare |= r->head;
	r->head = 1;
}

WEIR_INLINE void weir_hold_reader_name(struct weir_hold_reader *r, __u8 byte)
{
	if (r->named == WEIR_HOLD_NAMED)
		return;
	r->named = weir_hold_named(r->named, byte);
	if (r->named == WEIR_HOLD_NAMED)
		weir_hold_reader_begin_head(r);
}

/* Has HTTP/2's preface just ended? What comes behind it begins a line. */
WEIR_INLINE bool weir_hold_reader_prefaced(struct weir_hold_reader *r, __u8 byte)
{
	bool before = r->preface == WEIR_HOLD_PREFACE;

	r->preface = weir_hold_preface(r->preface, byte);
	if (before || r->preface != WEIR_HOLD_PREFACE)
		return false;
	r->lines = r->bare = r->open = r->begun = r->ending = r->named = r->head = 0;
	r->line = 1;
	return true;
}

/* Where it wants lines: a byte that is new. */
WEIR_INLINE void weir_hold_reader_line(struct weir_hold_reader *r, __u8 byte)
{
	r->grants = weir_hold_grants(r->grants, byte);
	if (!r->by_lines)
		return;
	if (weir_hold_reader_prefaced(r, byte))
		return;
	if (byte != '\n') {
		r->begun = weir_hold_begun(r->begun, byte);
		r->ending = weir_hold_ending(r->ending, byte);
		weir_hold_reader_name(r, byte);
		r->line = byte == '\r' && r->line;
		r->open |= !r->line;
		return;
	}
	r->lines += r->line;
	r->open &= !r->line;
	r->bare |= !r->line && r->begun == WEIR_HOLD_BEGUN && r->ending != WEIR_HOLD_ENDING;
	r->head &= !r->line;
	r->line = 1;
	r->begun = r->ending = r->named = 0;
}

/* Its bytes may not be those that the server takes: they move no position. */
WEIR_INLINE void weir_hold_reader_distrust(struct weir_hold_reader *r)
{
	r->by_records = r->seeking = 0;
}

/* A name that is cut counts where it begins, but for its white space: the next segment's may be that. */
WEIR_INLINE void weir_hold_reader_end_name(struct weir_hold_reader *r)
{
	if (r->named > 1 && r->named != WEIR_HOLD_NAMED)
		weir_hold_reader_begin_head(r);
}

/* What comes behind it may be anything, and nobody remembers the head that is open: that is paid with the segment. */
WEIR_INLINE void weir_hold_reader_end_head(struct weir_hold_reader *r)
{
	r->lines += r->apart && r->head;
}

/* What the segment costs at least, for the requests that may be in it. */
WEIR_INLINE void weir_hold_reader_requests(struct weir_hold_reader *r)
{
	r->bare |= (r->cuts && r->open) || (r->untold && r->begun);
	r->bare &= !r->bare_paid;
	if (r->by_lines && r->lines + r->bare > r->weight)
		r->weight = r->lines + r->bare;
	r->open &= r->weight == r->lines + r->bare;
}

/*
 * Its records are decided inside the server: they cost nothing here. Nor do lines in those that its client begins with: Go's servers take no
 * method that begins with a record's header.
 */
WEIR_INLINE void weir_hold_reader_spare_records(struct weir_hold_reader *r)
{
	r->weight = r->by_records && r->midway && !r->untold ? r->lines + r->bare : 0;
}

/* How many bytes of a segment without records cost nothing by themselves, if it has no more? */
WEIR_INLINE __u32 weir_hold_reader_spares(const struct weir_hold_reader *r)
{
	__u32 granting = r->grants - 1U;

	if (!r->crumbs)
		return 0;
	return granting == r->next - r->news ? granting : WEIR_RECORD_FREE;
}

/* All bytes have been fed, or the records were lost: what is new of the segment is one record then. */
WEIR_INLINE void weir_hold_reader_end(struct weir_hold_reader *r, const struct weir_segment *g)
{
	weir_hold_reader_end_name(r);
	weir_hold_reader_end_head(r);
	if (r->by_records && !r->seeking) {
		if (r->midway)
			weir_hold_reader_requests(r);
		r->records += !r->records && r->weight;
		return;
	}
	r->by_records = 0;
	r->next = g->seq + g->len;
	if (r->preface == WEIR_HOLD_PREFACE) {
		/* Servers of HTTP/1 that go on behind it take it for a request, too. */
		r->by_lines = r->lines || r->bare || r->head || r->cuts;
		r->lines += r->by_lines;
		r->crumbs = 1;
	}
	r->weight = r->free ? 0 : weir_bytes_weight(r->next - r->news, weir_hold_reader_spares(r));
	if (r->crumbs) /* behind a preface, or a request that asked for an upgrade */
		weir_record_paid(&r->record);
	if (!r->weight && r->crumbs)
		r->weight = weir_record_spare(&r->record);
	weir_hold_reader_requests(r);
	if (r->decided > r->weight)
		r->decided = r->weight;
	r->weight -= r->decided;
	r->records = !!r->weight;
}

#endif
