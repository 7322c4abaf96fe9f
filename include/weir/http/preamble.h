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
#ifndef WEIR_HTTP_PREAMBLE_H
#define WEIR_HTTP_PREAMBLE_H

#include "weir/http/preamble_binary.h"
#include "weir/http/preamble_line.h"
#include "weir/http/preamble_state.h"

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
