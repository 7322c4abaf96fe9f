/* SPDX-License-Identifier: GPL-2.0 */
/* A PROXY protocol preamble as its machine (preamble.h) knows it, between any two bytes. */
#ifndef WEIR_HTTP_PREAMBLE_STATE_H
#define WEIR_HTTP_PREAMBLE_STATE_H

#include "weir/base/frame.h"
#include "weir/base/types.h"
#include "weir/http/byte.h"

#define WEIR_PREAMBLE_LINE_MAX 107 /* bytes of the line, its CRLF included */
#define WEIR_PREAMBLE_NO_GAP 255

enum weir_preamble_state {
	WEIR_PREAMBLE_NONE, /* nothing is awaited, or all of it has come */
	WEIR_PREAMBLE_FIRST,
	WEIR_PREAMBLE_WORDS, /* "PROXY TCP4 ", "PROXY TCP6 " or "PROXY UNKNOWN" */
	WEIR_PREAMBLE_ADDRESS,
	WEIR_PREAMBLE_PORT,
	WEIR_PREAMBLE_TEXT, /* behind UNKNOWN: nothing matters */
	WEIR_PREAMBLE_LF,
	WEIR_PREAMBLE_SIGNATURE,
	WEIR_PREAMBLE_COMMAND,
	WEIR_PREAMBLE_FAMILY,
	WEIR_PREAMBLE_LENGTH,
	WEIR_PREAMBLE_LENGTH_LOW,
	WEIR_PREAMBLE_BINARY, /* the source address */
	WEIR_PREAMBLE_SKIP,   /* what follows it: `left` bytes */
};

struct weir_preamble {
	__u8 address[16]; /* the client's, network order, IPv4 as ::ffff:a.b.c.d; with `given` */
	__u32 value;	  /* of the number being read: its digits as they stand, four bits each */
	__u16 left;	  /* binary: bytes still to come */
	__u8 state;	  /* enum weir_preamble_state */
	__u8 given;	  /* it names an address; whether that is believed is not known here */
	__u8 position;	  /* bytes so far, up to the addresses of the binary header */
	__u8 family;	  /* '4', '6', 'U': UNKNOWN; binary: family and protocol, 0 for a command without an address */
	__u8 field;	  /* of the line: 0 and 1 are addresses, 2 and 3 ports */
	__u8 bytes;	  /* of the address so far */
	__u8 gap;	  /* bytes of it before `::` */
	__u8 digits;	  /* of the number being read */
	__u8 dotted;	  /* the address goes on with four decimal numbers; how many of them are read, + 1 */
	__u8 colons;	  /* that came right before this byte */
};
WEIR_ASSERT_SIZE(struct weir_preamble, 32);

WEIR_INLINE void weir_preamble_start(struct weir_preamble *p)
{
	*p = (struct weir_preamble){ .state = WEIR_PREAMBLE_FIRST };
}

WEIR_INLINE bool weir_preamble_awaited(const struct weir_preamble *p)
{
	return p->state != WEIR_PREAMBLE_NONE;
}

/* Some of it has been read: a struct of zeros, or one that has just been started, knows of none. */
WEIR_INLINE bool weir_preamble_begun(const struct weir_preamble *p)
{
	return p->position != 0;
}

WEIR_INLINE bool weir_preamble_midway(const struct weir_preamble *p)
{
	return weir_preamble_begun(p) && weir_preamble_awaited(p);
}

/* Have two machines read the same? */
WEIR_INLINE bool weir_preamble_same(const struct weir_preamble *a, const struct weir_preamble *b)
{
	__u64 x[4], y[4];

	__builtin_memcpy(x, a, sizeof(x));
	__builtin_memcpy(y, b, sizeof(y));
	return x[0] == y[0] && x[1] == y[1] && x[2] == y[2] && x[3] == y[3];
}

WEIR_INLINE __u32 weir_preamble_skippable(const struct weir_preamble *p)
{
	return p->state == WEIR_PREAMBLE_SKIP ? p->left : 0;
}

WEIR_INLINE enum weir_frame_event weir_preamble_end(struct weir_preamble *p)
{
	p->state = WEIR_PREAMBLE_NONE;
	return WEIR_FRAME_MESSAGE;
}

/* n: at most weir_preamble_skippable() */
WEIR_INLINE enum weir_frame_event weir_preamble_skip(struct weir_preamble *p, __u32 n)
{
	p->left -= n;
	return p->left ? WEIR_FRAME_MORE : weir_preamble_end(p);
}

/* Byte n of a text of up to eight. */
#define WEIR_PREAMBLE_CHAR(text, n) ((__u8)(WEIR_TEXT_WORD(text, 0) >> 8 * ((sizeof(text) - 2 - (n)) & 7)))

#endif
