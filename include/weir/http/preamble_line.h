/* SPDX-License-Identifier: GPL-2.0 */
/* The preamble of version 1: a line of text, "PROXY TCP4 192.0.2.1 198.51.100.7 56324 443". */
#ifndef WEIR_HTTP_PREAMBLE_LINE_H
#define WEIR_HTTP_PREAMBLE_LINE_H

#include "weir/http/preamble_state.h"

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

#endif
