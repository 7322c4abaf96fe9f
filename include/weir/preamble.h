/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The PROXY protocol (W. Tarreau, "The PROXY protocol, versions 1 & 2"): what a proxy says of its client before the first
 * byte of a connection. A line of text, or a binary header that may be followed by what does not matter here.
 *
 *   weir_preamble_start(p)     before a connection's first byte; a struct of zeros awaits none
 *   weir_preamble_byte(p, c)   until WEIR_FRAME_MESSAGE, or WEIR_FRAME_LOST: it is malformed
 *
 * Bytes may be skipped where weir_preamble_skippable() says so. It is read as strictly as a head: where a receiver might
 * read another address, or go on reading at another byte, it is malformed.
 */
#ifndef WEIR_PREAMBLE_H
#define WEIR_PREAMBLE_H

#include "field.h"
#include "frame.h"
#include "types.h"

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

/* --- the line */

WEIR_INLINE void weir_preamble_address_start(struct weir_preamble *p)
{
	p->state = WEIR_PREAMBLE_ADDRESS;
	p->value = p->digits = p->colons = 0;
	p->gap = WEIR_PREAMBLE_NO_GAP;
	p->bytes = p->family == '4' ? 12 : 0;
	p->dotted = p->family == '4';
	if (p->family == '4' && !p->field)
		p->address[10] = p->address[11] = 0xff;
}

WEIR_INLINE bool weir_preamble_put(struct weir_preamble *p, __u8 byte)
{
	if (p->bytes >= sizeof(p->address))
		return false;
	if (!p->field)
		p->address[p->bytes & 15] = byte;
	p->bytes++;
	return true;
}

/* A group of an IPv6 address. */
WEIR_INLINE bool weir_preamble_group_end(struct weir_preamble *p)
{
	bool fits = weir_preamble_put(p, p->value >> 8) && weir_preamble_put(p, p->value);

	p->value = p->digits = 0;
	return fits;
}

/* A decimal number, whose digits were read as hexadecimal ones; without a zero before it, which some take for octal. */
WEIR_INLINE int weir_preamble_decimal(struct weir_preamble *p)
{
	__u32 value = p->value, digits = p->digits, number;

	p->value = p->digits = 0;
	if (!digits || (digits > 1 && !(value >> (4 * (digits - 1) & 31))))
		return -1;
	for (__u32 i = 0; i < 5; i++) {
		if ((value >> 4 * i & 15) > 9)
			return -1;
	}
	number = (value & 15) + (value >> 4 & 15) * 10 + (value >> 8 & 15) * 100 + (value >> 12 & 15) * 1000 +
		 (value >> 16 & 15) * 10000;
	return number <= 65535 ? (int)number : -1;
}

WEIR_INLINE bool weir_preamble_octet_end(struct weir_preamble *p)
{
	int octet = weir_preamble_decimal(p);

	if (octet < 0 || octet > 255)
		return false;
	p->dotted++;
	return weir_preamble_put(p, octet);
}

/* Moves what stands behind `::` to the address's end. */
WEIR_INLINE void weir_preamble_stretch(struct weir_preamble *p)
{
	__u32 missing = sizeof(p->address) - p->bytes;

#pragma GCC unroll 16
	for (__u32 n = 0; n < sizeof(p->address); n++) {
		__u32 i = sizeof(p->address) - 1 - n;

		if (i >= p->gap + missing)
			p->address[i] = p->address[(i - missing) & 15];
		else if (i >= p->gap)
			p->address[i] = 0;
	}
}

/* The space behind an address. */
WEIR_INLINE bool weir_preamble_address_end(struct weir_preamble *p)
{
	bool gap = p->gap != WEIR_PREAMBLE_NO_GAP;

	if (p->dotted ? !weir_preamble_octet_end(p) || p->dotted != 5 :
	    p->digits ? !weir_preamble_group_end(p) :
			p->colons != 2)
		return false;
	if (gap ? p->bytes > 14 : p->bytes != sizeof(p->address))
		return false;
	if (gap && !p->field)
		weir_preamble_stretch(p);
	p->field++;
	if (p->field == 1)
		weir_preamble_address_start(p);
	else
		p->state = WEIR_PREAMBLE_PORT;
	return true;
}

WEIR_INLINE bool weir_preamble_colon(struct weir_preamble *p)
{
	if (p->dotted)
		return false;
	if (p->digits) {
		p->colons = 1;
		return weir_preamble_group_end(p) && p->bytes < sizeof(p->address);
	}
	if (p->colons > 1 || (p->colons && p->gap != WEIR_PREAMBLE_NO_GAP))
		return false;
	/* Without a number before it, it is the second of two, or the first one of the address. */
	if (p->colons)
		p->gap = p->bytes;
	else if (p->bytes)
		return false;
	p->colons++;
	return true;
}

WEIR_INLINE bool weir_preamble_digit(struct weir_preamble *p, __u8 c)
{
	int digit = weir_hex_digit(c);

	/* A colon at the very start has another one beside it. */
	if (digit < 0 || p->digits >= 4 || (p->colons == 1 && !p->bytes))
		return false;
	p->value = p->value << 4 | digit;
	p->digits++;
	p->colons = 0;
	return true;
}

WEIR_INLINE bool weir_preamble_address_byte(struct weir_preamble *p, __u8 c)
{
	if (c == ' ')
		return weir_preamble_address_end(p);
	if (c == ':')
		return weir_preamble_colon(p);
	if (c != '.')
		return weir_preamble_digit(p, c);
	if (!p->dotted)
		p->dotted = 1;
	return weir_preamble_octet_end(p) && p->dotted < 5;
}

WEIR_INLINE bool weir_preamble_port_byte(struct weir_preamble *p, __u8 c)
{
	if (weir_is_digit(c)) {
		p->value = p->value << 4 | (c - '0');
		return ++p->digits <= 5;
	}
	if (c != (p->field == 2 ? ' ' : '\r') || weir_preamble_decimal(p) < 0)
		return false;
	p->field++;
	if (c == '\r') {
		p->state = WEIR_PREAMBLE_LF;
		p->given = 1;
	}
	return true;
}

/* Up to the family, which the seventh byte begins to tell. */
WEIR_INLINE bool weir_preamble_words_byte(struct weir_preamble *p, __u8 c)
{
	__u32 at = p->position - 7;

	if (p->position <= 6)
		return c == WEIR_PREAMBLE_CHAR("PROXY ", p->position - 1);
	if (!at)
		p->family = c;
	if (p->family == 'U') {
		if (at < 7)
			return c == WEIR_PREAMBLE_CHAR("UNKNOWN", at);
		p->state = c == ' ' ? WEIR_PREAMBLE_TEXT : WEIR_PREAMBLE_LF;
		return c == ' ' || c == '\r';
	}
	if (at < 3)
		return c == WEIR_PREAMBLE_CHAR("TCP", at);
	if (at == 3) {
		p->family = c;
		return c == '4' || c == '6';
	}
	weir_preamble_address_start(p);
	return c == ' ';
}

WEIR_INLINE bool weir_preamble_text_byte(struct weir_preamble *p, __u8 c)
{
	if (c == '\r')
		p->state = WEIR_PREAMBLE_LF;
	return c == '\r' || (c >= ' ' && c < 0x7f);
}

/* --- the binary header */

WEIR_INLINE bool weir_preamble_signature_byte(struct weir_preamble *p, __u8 c)
{
	if (p->position <= 8)
		return c == WEIR_PREAMBLE_CHAR("\r\n\r\n\0\r\nQ", p->position - 1);
	if (p->position == 12)
		p->state = WEIR_PREAMBLE_COMMAND;
	return c == WEIR_PREAMBLE_CHAR("UIT\n", p->position - 9);
}

#define WEIR_PREAMBLE_TCP4 0x11
#define WEIR_PREAMBLE_TCP6 0x21

/* LOCAL, of the proxy's own, names nobody, whatever its family says. */
WEIR_INLINE bool weir_preamble_command_byte(struct weir_preamble *p, __u8 c)
{
	p->state = WEIR_PREAMBLE_FAMILY;
	p->given = c == 0x21;
	return c == 0x20 || c == 0x21;
}

WEIR_INLINE bool weir_preamble_family_byte(struct weir_preamble *p, __u8 c)
{
	p->state = WEIR_PREAMBLE_LENGTH;
	p->family = c;
	p->given &= c == WEIR_PREAMBLE_TCP4 || c == WEIR_PREAMBLE_TCP6;
	return c >> 4 <= 3 && (c & 15) <= 2;
}

/* Both ends' addresses and ports. */
WEIR_INLINE __u32 weir_preamble_ends(const struct weir_preamble *p)
{
	return p->family == WEIR_PREAMBLE_TCP4 ? 2 * 4 + 2 * 2 : 2 * 16 + 2 * 2;
}

WEIR_INLINE bool weir_preamble_length_end(struct weir_preamble *p)
{
	if (!p->given) {
		p->state = p->left ? WEIR_PREAMBLE_SKIP : WEIR_PREAMBLE_NONE;
		return true;
	}
	p->state = WEIR_PREAMBLE_BINARY;
	if (p->family == WEIR_PREAMBLE_TCP4) {
		p->address[10] = p->address[11] = 0xff;
		p->bytes = 12;
	}
	return p->left >= weir_preamble_ends(p);
}

WEIR_INLINE bool weir_preamble_binary_byte(struct weir_preamble *p, __u8 c)
{
	p->address[p->bytes & 15] = c;
	p->left--;
	if (++p->bytes == sizeof(p->address))
		p->state = WEIR_PREAMBLE_SKIP;
	return true;
}

WEIR_INLINE bool weir_preamble_any_byte(struct weir_preamble *p, __u8 c)
{
	switch (p->state) {
	case WEIR_PREAMBLE_FIRST:
		p->state = c == 'P' ? WEIR_PREAMBLE_WORDS : WEIR_PREAMBLE_SIGNATURE;
		return c == 'P' || c == '\r';
	case WEIR_PREAMBLE_WORDS:
		return weir_preamble_words_byte(p, c);
	case WEIR_PREAMBLE_ADDRESS:
		return weir_preamble_address_byte(p, c);
	case WEIR_PREAMBLE_PORT:
		return weir_preamble_port_byte(p, c);
	case WEIR_PREAMBLE_TEXT:
		return weir_preamble_text_byte(p, c);
	case WEIR_PREAMBLE_LF:
		p->state = WEIR_PREAMBLE_NONE;
		return c == '\n';
	case WEIR_PREAMBLE_SIGNATURE:
		return weir_preamble_signature_byte(p, c);
	case WEIR_PREAMBLE_COMMAND:
		return weir_preamble_command_byte(p, c);
	case WEIR_PREAMBLE_FAMILY:
		return weir_preamble_family_byte(p, c);
	case WEIR_PREAMBLE_LENGTH:
		p->left = c << 8;
		p->state = WEIR_PREAMBLE_LENGTH_LOW;
		return true;
	case WEIR_PREAMBLE_LENGTH_LOW:
		p->left |= c;
		return weir_preamble_length_end(p);
	case WEIR_PREAMBLE_BINARY:
		return weir_preamble_binary_byte(p, c);
	default:
		return false;
	}
}

/* Counted as far as the line may be long, or the binary header is of one length. */
WEIR_INLINE bool weir_preamble_fits(struct weir_preamble *p)
{
	return p->state >= WEIR_PREAMBLE_COMMAND || p->position++ < WEIR_PREAMBLE_LINE_MAX;
}

WEIR_INLINE enum weir_frame_event weir_preamble_byte(struct weir_preamble *p, __u8 c)
{
	if (p->state == WEIR_PREAMBLE_SKIP)
		return weir_preamble_skip(p, 1);
	if (!weir_preamble_fits(p) || !weir_preamble_any_byte(p, c)) {
		*p = (struct weir_preamble){ .state = WEIR_PREAMBLE_NONE };
		return WEIR_FRAME_LOST;
	}
	return p->state == WEIR_PREAMBLE_NONE ? WEIR_FRAME_MESSAGE : WEIR_FRAME_MORE;
}

#endif
