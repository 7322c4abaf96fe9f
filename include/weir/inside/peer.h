/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A peer as Go's net.TCPAddr writes it, "192.0.2.1:443", "[2001:db8::1]:443" or "[fe80::1%eth0]:443", a byte at a time. What
 * is written in another way (a Unix socket's peer) is no peer.
 */
#ifndef WEIR_INSIDE_PEER_H
#define WEIR_INSIDE_PEER_H

#include "weir/base/types.h"

#define WEIR_INSIDE_PEER_MAX 64 /* bytes; an interface has 15 at most */
#define WEIR_PEER_GROUPS 8	/* of an IPv6 address, 16 bits each */
#define WEIR_PEER_NO_GAP 0xff

enum weir_peer_phase {
	WEIR_PEER_START,
	WEIR_PEER_IPV4,
	WEIR_PEER_IPV6,
	WEIR_PEER_ZONE,
	WEIR_PEER_COLON, /* must come before the port */
	WEIR_PEER_PORT,
	WEIR_PEER_BAD,
};

struct weir_peer_reader {
	__u16 groups[WEIR_PEER_GROUPS]; /* IPv4: its four bytes */
	__u32 value;			/* of the number that is being read */
	__u8 phase;			/* enum weir_peer_phase */
	__u8 digits;			/* of it */
	__u8 n;				/* groups that have been read */
	__u8 gap;			/* how many stand before "::" */
	bool ipv6;
	bool colon; /* the byte before was one, of an IPv6 address */
	__u8 pad[2];
};

WEIR_INLINE void weir_peer_start(struct weir_peer_reader *r)
{
	__builtin_memset(r, 0, sizeof(*r));
	r->gap = WEIR_PEER_NO_GAP;
}

WEIR_INLINE int weir_peer_digit(__u8 c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* The number that was being read is the next group. */
WEIR_INLINE void weir_peer_group(struct weir_peer_reader *r, __u32 most)
{
	if (!r->digits || r->n >= most) {
		r->phase = WEIR_PEER_BAD;
		return;
	}
	r->groups[r->n & (WEIR_PEER_GROUPS - 1)] = r->value;
	r->n++;
	r->value = 0;
	r->digits = 0;
}

WEIR_INLINE void weir_peer_decimal(struct weir_peer_reader *r, __u8 c, __u32 most)
{
	int digit = weir_peer_digit(c);

	r->value = r->value * 10 + digit;
	r->digits++;
	if (digit < 0 || digit > 9 || r->value > most || r->digits > 5)
		r->phase = WEIR_PEER_BAD;
}

WEIR_INLINE void weir_peer_ipv4(struct weir_peer_reader *r, __u8 c)
{
	if (c != '.' && c != ':') {
		weir_peer_decimal(r, c, 255);
		return;
	}
	weir_peer_group(r, 4);
	if (c == ':' && r->phase != WEIR_PEER_BAD)
		r->phase = r->n == 4 ? WEIR_PEER_PORT : WEIR_PEER_BAD;
}

/* The address has ended, or its zone begins. */
WEIR_INLINE void weir_peer_ipv6_end(struct weir_peer_reader *r, __u8 c)
{
	if (r->digits)
		weir_peer_group(r, WEIR_PEER_GROUPS);
	else if (!(r->colon && r->gap == r->n))
		r->phase = WEIR_PEER_BAD;
	if (r->phase != WEIR_PEER_BAD)
		r->phase = c == '%' ? WEIR_PEER_ZONE : WEIR_PEER_COLON;
	if (r->gap == WEIR_PEER_NO_GAP ? r->n != WEIR_PEER_GROUPS : r->n >= WEIR_PEER_GROUPS)
		r->phase = WEIR_PEER_BAD;
}

WEIR_INLINE void weir_peer_ipv6_colon(struct weir_peer_reader *r)
{
	if (r->digits) {
		weir_peer_group(r, WEIR_PEER_GROUPS);
	} else if (!r->colon && !r->n && r->gap == WEIR_PEER_NO_GAP) {
		r->colon = true; /* the first of "::" at the beginning */
		return;
	} else if (r->colon && r->gap == WEIR_PEER_NO_GAP) {
		r->gap = r->n;
	} else {
		r->phase = WEIR_PEER_BAD;
	}
	r->colon = true;
}

WEIR_INLINE void weir_peer_ipv6(struct weir_peer_reader *r, __u8 c)
{
	int digit = weir_peer_digit(c);

	if (c == ':') {
		weir_peer_ipv6_colon(r);
	} else if (c == ']' || c == '%') {
		weir_peer_ipv6_end(r, c);
	} else if (digit < 0 || r->digits >= 4 || (r->colon && !r->n && r->gap == WEIR_PEER_NO_GAP)) {
		r->phase = WEIR_PEER_BAD;
	} else {
		r->value = r->value << 4 | digit;
		r->digits++;
		r->colon = false;
	}
}

WEIR_INLINE void weir_peer_byte(struct weir_peer_reader *r, __u8 c)
{
	switch (r->phase) {
	case WEIR_PEER_START:
		r->ipv6 = c == '[';
		r->phase = r->ipv6 ? WEIR_PEER_IPV6 : WEIR_PEER_IPV4;
		if (!r->ipv6)
			weir_peer_ipv4(r, c);
		break;
	case WEIR_PEER_IPV4:
		weir_peer_ipv4(r, c);
		break;
	case WEIR_PEER_IPV6:
		weir_peer_ipv6(r, c);
		break;
	case WEIR_PEER_ZONE:
		if (c == ']')
			r->phase = WEIR_PEER_COLON;
		break;
	case WEIR_PEER_COLON:
		r->phase = c == ':' ? WEIR_PEER_PORT : WEIR_PEER_BAD;
		break;
	case WEIR_PEER_PORT:
		weir_peer_decimal(r, c, 65535);
		break;
	default:
		break;
	}
}

#define WEIR_PEER_IPV4_MAX 21	      /* "255.255.255.255:65535" */
#define WEIR_PEER_BETWEEN 0x2e2e2e3aU /* "...:", what stands between its numbers */

WEIR_INLINE void weir_peer_of_ipv4(__u32 ip, __u8 address[16])
{
	const __u8 bytes[16] = { [10] = 0xff, 0xff, ip >> 24, ip >> 16, ip >> 8, ip };

	__builtin_memcpy(address, bytes, sizeof(bytes));
}

/*
 * An IPv4 peer at once, which most are. text: as many bytes as there are at most, whatever its length. False: it is none, or one that only the
 * reader knows, and nothing is touched. No step depends on what a byte is: CPUs guess wrong at each dot of an address that they have not
 * just read, and verifiers follow each place of each dot.
 */
WEIR_INLINE bool weir_peer_ipv4_at_once(const char *text, __u32 length, __u8 address[16], __u16 *port)
{
	__u32 value = 0, digits = 0, n = 0, between = 0, wrong = 0, read = 0;

	if (length > WEIR_PEER_IPV4_MAX)
		return false;
#ifdef __clang__
#pragma clang loop unroll(disable)
#endif
	for (__u32 i = 0; i < WEIR_PEER_IPV4_MAX; i++) {
		__u8 c = text[i], digit = c - '0';
		__u32 there = (__u32)(i - length) >> 31, ends = (__u32)(9 - digit) >> 31;

		/* Masks, which compilers make no branches of. */
		WEIR_BARRIER(there);
		WEIR_BARRIER(ends);
		there = -there;
		ends = -ends & there;
		wrong |= ends & ((digits - 1) | (3 - digits) | (255 - value));
		read ^= (read ^ (read << 8 | value)) & ends;
		between ^= (between ^ (between << 8 | c)) & ends;
		n -= ends;
		there &= ~ends;
		value ^= (value ^ (value * 10 + digit)) & there;
		value &= ~ends;
		digits = (digits & ~ends) - there;
	}
	wrong |= (digits - 1) | (5 - digits) | (65535 - value);
	if (wrong >> 31 || n != 4 || between != WEIR_PEER_BETWEEN)
		return false;
	weir_peer_of_ipv4(read, address);
	*port = value;
	return true;
}

/* address: network order, IPv4 as ::ffff:a.b.c.d; port: host order. False: it is no peer, and neither is touched. */
WEIR_INLINE bool weir_peer_end(const struct weir_peer_reader *r, __u8 address[16], __u16 *port)
{
	if (r->phase != WEIR_PEER_PORT || !r->digits)
		return false;
	*port = r->value;
	__builtin_memset(address, 0, 16);
	if (!r->ipv6) {
		address[10] = address[11] = 0xff;
		for (__u32 i = 0; i < 4; i++)
			address[12 + i] = r->groups[i];
		return true;
	}
	for (__u32 i = 0; i < WEIR_PEER_GROUPS; i++) {
		__u32 behind = i >= r->gap ? WEIR_PEER_GROUPS - r->n : 0, at = (i + behind) & (WEIR_PEER_GROUPS - 1);

		if (i >= r->n)
			break;
		address[2 * at] = r->groups[i] >> 8;
		address[2 * at + 1] = r->groups[i];
	}
	return true;
}

#endif
