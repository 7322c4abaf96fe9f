/* SPDX-License-Identifier: GPL-2.0 */
/*
 * TLS records in a client's stream (RFC 8446, 5.1; RFC 5246, 6.2): where each begins, and what it weighs. What is in them
 * is not known; a record of application data is taken for a request, a long one for as many as it has KiB.
 *
 *   weir_record_start(r), _start_midway(r)   before a record's first byte
 *   weir_record_byte(r, c)                   WEIR_FRAME_HEAD: a header ended, weir_record_weight(r) tells what it costs;
 *                                            WEIR_FRAME_MESSAGE: a body ended; the next byte begins the next record
 *
 * Bytes of bodies may be skipped instead. After LOST the machine must be started anew.
 *
 * Two kinds of application data cost nothing. Short ones: HTTP/2's SETTINGS acknowledgement, WINDOW_UPDATE and
 * RST_STREAM have at most 13 bytes; a GET whose headers are all in the peer's table has 16 in Go's client (4 pseudo
 * headers and 3 others). PING has 17, as many as a GET with one header more, so it is charged. And TLS 1.3's handshake,
 * whose last messages (certificate, its proof, Finished) look like application data: up to three records that are the
 * first of a connection, to the one that has the length of a Finished, and no more than 2 KiB: a certificate of RSA with 2,048 bits
 * and its proof have 1.5. A client can pad its Finished, or send early data late, and bring requests in what is left. What comes before the server
 * has answered is early data (RFC 8446, 2.3), and costs what other data does. In TLS 1.2, the Finished is the first handshake
 * record after a change of cipher; its length tells what the cipher adds, as far as an AEAD does. What seems to add more may be padding of the
 * client's, or a piece of TLS 1.3's second hello, and records with whole requests would pass for short ones. HTTP/2 is not to be spoken over
 * ciphers that add more (RFC 9113, 9.2.2): with these, short ones cost what others do.
 *
 * Some servers take a GET of 13 bytes, and any of them one that is cut in two. So short ones are not free without end: one in 64 costs a
 * token, which is what as many GETs cost that are packed into one record. So does the first of a connection, if nothing before it did: or
 * one connection after the other would be free. The preface of HTTP/2 comes before its clients' short ones. A connection that ends behind its
 * handshake stays free: its first short one is a goodbye, and what comes behind that pays.
 *
 * Behind the handshake any other record costs as much as application data. Where records are found in mid-stream, a client may have written
 * what looks like one into a body of its own: what is announced there may be requests.
 */
#ifndef WEIR_CONN_RECORD_H
#define WEIR_CONN_RECORD_H

#include "weir/base/frame.h"
#include "weir/base/types.h"

#define WEIR_RECORD_MAX ((1U << 14) + 2048) /* bytes of a body */
#define WEIR_RECORD_FREE 13		    /* bytes of plain text that cost nothing */
#define WEIR_RECORD_SHARE 1024		    /* bytes that weigh one token */
#define WEIR_RECORD_SPARED 64		    /* of what is so short, one in so many costs a token all the same */
#define WEIR_RECORD_GOODBYE 2		    /* bytes of an alert, which TLS 1.3 sends as data: no request is so short */
#define WEIR_RECORD_OVERHEAD 17		    /* what TLS 1.3 adds to a plain text: its type, and a tag of 16 bytes */

enum weir_record_type {
	WEIR_RECORD_CIPHER = 20,
	WEIR_RECORD_ALERT,
	WEIR_RECORD_HANDSHAKE,
	WEIR_RECORD_DATA,
	WEIR_RECORD_HEARTBEAT,
};

enum weir_record_stage {
	WEIR_RECORD_CIPHERED = 1 << 0, /* the cipher was changed */
	WEIR_RECORD_EARLY = 1 << 1,    /* the server has not answered: application data is TLS 1.3's early data */
};

/* Finished in TLS 1.3: 4 bytes and a hash, of SHA-256 or SHA-384, and the overhead; in TLS 1.2: 16 bytes and its own. */
#define WEIR_RECORD_FINISHED_256 (4 + 32 + WEIR_RECORD_OVERHEAD)
#define WEIR_RECORD_FINISHED_384 (4 + 48 + WEIR_RECORD_OVERHEAD)
#define WEIR_RECORD_FINISHED_12 16
#define WEIR_RECORD_OVERHEAD_12_MAX 96			  /* by CBC */
#define WEIR_RECORD_OVERHEAD_AEAD 24			  /* the most that one adds: AES-GCM, its nonce and a tag */
#define WEIR_RECORD_UNIT 8				  /* bytes */
#define WEIR_RECORD_FLIGHT 255				  /* units of application data that may be handshake */
#define WEIR_RECORD_FLIGHT_LEAST (WEIR_RECORD_FLIGHT / 3) /* taken for a record that has fewer */

struct weir_record {
	__u16 length; /* of the latest record's body */
	__u16 left;   /* of it still to come */
	__u8 header;  /* bytes of a header so far, 0 to 4 */
	__u8 type;    /* of the latest record: enum weir_record_type */
	__u8 weight;  /* of the latest record, in tokens */
	__u8 minor;   /* of the latest record's version, 3.minor */
	__u8 overhead;
	__u8 flight; /* units of application data that may still be handshake */
	__u8 stage;  /* enum weir_record_stage */
	__u8 spared; /* 0: nothing has cost a token yet; else 1 + the short ones since one of them did */
};
WEIR_ASSERT_SIZE(struct weir_record, 12);

/* At the first record of a connection. */
WEIR_INLINE void weir_record_start(struct weir_record *r)
{
	*r = (struct weir_record){ .overhead = WEIR_RECORD_OVERHEAD, .flight = WEIR_RECORD_FLIGHT };
}

/* At any other: what came before may have cost a token. */
WEIR_INLINE void weir_record_start_midway(struct weir_record *r)
{
	*r = (struct weir_record){ .overhead = WEIR_RECORD_OVERHEAD, .spared = 1 };
}

/* In tokens, of `bytes` bytes of the stream that are taken for one request, of which `free` would cost nothing. */
WEIR_INLINE __u32 weir_bytes_weight(__u32 bytes, __u32 free)
{
	return bytes > free ? 1 + (bytes - 1) / WEIR_RECORD_SHARE : 0;
}

/* In tokens, of one more that is too short to cost anything by itself. */
WEIR_INLINE __u32 weir_record_spare(struct weir_record *r)
{
	r->spared = r->spared % WEIR_RECORD_SPARED + 1;
	return r->spared == 1;
}

/* The same of a record's body. */
WEIR_INLINE __u32 weir_record_spare_body(struct weir_record *r)
{
	if (r->spared || r->length > r->overhead + WEIR_RECORD_GOODBYE)
		return weir_record_spare(r);
	r->spared = WEIR_RECORD_SPARED;
	return 0;
}

/* Something of the connection has cost a token: the next short ones are paid for. */
WEIR_INLINE void weir_record_paid(struct weir_record *r)
{
	r->spared += !r->spared;
}

WEIR_INLINE __u32 weir_record_weight(const struct weir_record *r)
{
	return r->weight;
}

/* Bytes that may be skipped without being looked at. */
WEIR_INLINE __u32 weir_record_skippable(const struct weir_record *r)
{
	return r->left;
}

/* n: at most weir_record_skippable() */
WEIR_INLINE enum weir_frame_event weir_record_skip(struct weir_record *r, __u32 n)
{
	r->left -= n;
	return r->left ? WEIR_FRAME_MORE : WEIR_FRAME_MESSAGE;
}

/* Of a record that may be TLS 1.3's handshake. */
WEIR_INLINE __u32 weir_record_flight_weight(struct weir_record *r)
{
	__u32 free = r->flight * WEIR_RECORD_UNIT, units = r->length / WEIR_RECORD_UNIT + 1;
	bool finished = r->length == WEIR_RECORD_FINISHED_256 || r->length == WEIR_RECORD_FINISHED_384;

	if (units < WEIR_RECORD_FLIGHT_LEAST)
		units = WEIR_RECORD_FLIGHT_LEAST;
	r->flight -= finished || units > r->flight ? r->flight : units;
	if (finished || r->length <= free)
		return 0;
	weir_record_paid(r);
	return weir_bytes_weight(r->length - free, 0);
}

WEIR_INLINE __u32 weir_record_data_weight(struct weir_record *r)
{
	__u32 weight = weir_bytes_weight(r->length, r->overhead + WEIR_RECORD_FREE);

	if (r->flight && !(r->stage & WEIR_RECORD_EARLY))
		return weir_record_flight_weight(r);
	if (!weight)
		return weir_record_spare_body(r);
	weir_record_paid(r);
	return weight;
}

/* A TLS 1.2 Finished; longer is the second hello of TLS 1.3, when the server did not like the first. */
WEIR_INLINE void weir_record_finished_12(struct weir_record *r)
{
	__u32 overhead = r->length - WEIR_RECORD_FINISHED_12;

	if (!(r->stage & WEIR_RECORD_CIPHERED) || !r->flight || overhead > WEIR_RECORD_OVERHEAD_12_MAX)
		return;
	r->overhead = overhead < WEIR_RECORD_OVERHEAD_AEAD ? overhead : WEIR_RECORD_OVERHEAD_AEAD;
	r->flight = 0;
}

WEIR_INLINE enum weir_frame_event weir_record_head(struct weir_record *r)
{
	if (r->length > WEIR_RECORD_MAX)
		return WEIR_FRAME_LOST;
	r->header = 0;
	r->left = r->length;
	r->weight = r->type == WEIR_RECORD_DATA || !r->flight ? weir_record_data_weight(r) : 0;
	if (r->type == WEIR_RECORD_HANDSHAKE)
		weir_record_finished_12(r);
	if (r->type == WEIR_RECORD_CIPHER)
		r->stage |= WEIR_RECORD_CIPHERED;
	return WEIR_FRAME_HEAD;
}

/* The header's bytes: type, version (3, minor), length (high, low). */
WEIR_INLINE enum weir_frame_event weir_record_byte(struct weir_record *r, __u8 c)
{
	bool right = true;

	if (r->left)
		return weir_record_skip(r, 1);
	switch (r->header) {
	case 0:
		r->type = c;
		right = c >= WEIR_RECORD_CIPHER && c <= WEIR_RECORD_HEARTBEAT;
		break;
	case 1:
		right = c == 3;
		break;
	case 2:
		r->minor = c;
		right = c <= 4;
		break;
	case 3:
		r->length = c << 8;
		break;
	default:
		r->length |= c;
		return weir_record_head(r);
	}
	r->header++;
	return right ? WEIR_FRAME_MORE : WEIR_FRAME_LOST;
}

#endif
