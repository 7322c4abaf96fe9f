/* SPDX-License-Identifier: GPL-2.0 */
/* The preamble of version 2: a binary header, behind whose addresses may stand what does not matter here. */
#ifndef WEIR_HTTP_PREAMBLE_BINARY_H
#define WEIR_HTTP_PREAMBLE_BINARY_H

#include "weir/http/preamble_state.h"

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

#endif
