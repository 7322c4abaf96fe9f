/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What requests and responses have in common up to the end of their heads: header fields, one byte at a time (RFC 9112, 5).
 * body.h follows with what comes after the head.
 *
 * The rules are stricter than the RFC's wherever two readers could differ about where a message ends: a line ends with
 * CRLF and nothing else, a field is one line, a length is told once and in one way.
 *
 * Functions here return an enum weir_frame_event, or the negative of an enum weir_reason when the message is lost.
 */
#ifndef WEIR_HTTP_FIELD_H
#define WEIR_HTTP_FIELD_H

#include "weir/http/byte.h"
#include "weir/http/framing.h"

/* RFC 9112, 9.3 */
WEIR_INLINE bool weir_asked_to_close(const struct weir_framing *f)
{
	if (f->seen & WEIR_SEEN_CLOSE)
		return true;
	return (f->seen & WEIR_SEEN_HTTP10) && !(f->seen & WEIR_SEEN_KEEP_ALIVE);
}

WEIR_INLINE int weir_content_length_byte(struct weir_framing *f, __u8 c)
{
	if (weir_is_blank(c)) {
		f->gap = f->count > 0;
		return WEIR_FRAME_MORE;
	}
	if (!weir_is_digit(c) || f->gap || f->left > (1ULL << 63) / 10)
		return -WEIR_BAD_CONTENT_LENGTH;
	f->left = f->left * 10 + (c - '0');
	f->count = 1;
	return f->left >> 63 ? -WEIR_BAD_CONTENT_LENGTH : WEIR_FRAME_MORE;
}

WEIR_INLINE void weir_element_byte(struct weir_framing *f, __u8 c)
{
	if (weir_is_blank(c))
		f->gap = f->count > 0;
	else
		weir_token_byte(f, weir_lower(c));
}

WEIR_INLINE void weir_element_end(struct weir_framing *f)
{
	if (f->field == WEIR_FIELD_EXPECT) {
		if (WEIR_TOKEN_IS(f, "100-continue"))
			f->seen |= WEIR_SEEN_EXPECT;
	} else if (WEIR_TOKEN_IS(f, "close")) {
		f->seen |= WEIR_SEEN_CLOSE;
	} else if (WEIR_TOKEN_IS(f, "keep-alive")) {
		f->seen |= WEIR_SEEN_KEEP_ALIVE;
	} else if (WEIR_TOKEN_IS(f, "upgrade")) {
		f->seen |= WEIR_SEEN_UPGRADE_OPTION;
	}
	weir_token_start(f);
}

WEIR_INLINE int weir_known_value_end(struct weir_framing *f)
{
	f->state = WEIR_AT_LINE_LF;
	if (f->field == WEIR_FIELD_CONTENT_LENGTH)
		return f->count ? WEIR_FRAME_MORE : -WEIR_BAD_CONTENT_LENGTH;
	if (f->field == WEIR_FIELD_TRANSFER_ENCODING)
		return WEIR_TOKEN_IS(f, "chunked") ? WEIR_FRAME_MORE : -WEIR_BAD_TRANSFER_ENCODING;
	weir_element_end(f);
	return WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_known_value_byte(struct weir_framing *f, __u8 c)
{
	if (c == '\r')
		return weir_known_value_end(f);
	if (!weir_is_text(c))
		return weir_bad_byte(c, WEIR_BAD_HEADER);
	if (f->field == WEIR_FIELD_CONTENT_LENGTH)
		return weir_content_length_byte(f, c);
	if (c == ',' && f->field != WEIR_FIELD_TRANSFER_ENCODING)
		weir_element_end(f);
	else
		weir_element_byte(f, c);
	return WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_content_length_start(struct weir_framing *f)
{
	if (f->seen & (WEIR_SEEN_LENGTH | WEIR_SEEN_CHUNKED))
		return -WEIR_LENGTH_CONFLICT;
	f->seen |= WEIR_SEEN_LENGTH;
	f->field = WEIR_FIELD_CONTENT_LENGTH;
	return WEIR_FRAME_MORE;
}

/* Any Transfer-Encoding that stands to its value's end is chunked. */
WEIR_INLINE int weir_transfer_encoding_start(struct weir_framing *f)
{
	if (f->seen & WEIR_SEEN_LENGTH)
		return -WEIR_LENGTH_CONFLICT;
	if (f->seen & (WEIR_SEEN_CHUNKED | WEIR_SEEN_HTTP10))
		return -WEIR_BAD_TRANSFER_ENCODING;
	f->seen |= WEIR_SEEN_CHUNKED;
	f->field = WEIR_FIELD_TRANSFER_ENCODING;
	return WEIR_FRAME_MORE;
}

/* The colon: what the value is read for. In trailers, for nothing. */
WEIR_INLINE int weir_name_end(struct weir_framing *f)
{
	int outcome = WEIR_FRAME_MORE;

	f->state = WEIR_AT_VALUE;
	if (f->seen & WEIR_SEEN_LAST_CHUNK)
		return WEIR_FRAME_MORE;
	if (WEIR_TOKEN_IS(f, "content-length")) {
		outcome = weir_content_length_start(f);
	} else if (WEIR_TOKEN_IS(f, "transfer-encoding")) {
		outcome = weir_transfer_encoding_start(f);
	} else if (WEIR_TOKEN_IS(f, "connection")) {
		f->field = WEIR_FIELD_CONNECTION;
	} else if (WEIR_TOKEN_IS(f, "expect")) {
		f->field = WEIR_FIELD_EXPECT;
	} else {
		if (WEIR_TOKEN_IS(f, "upgrade"))
			f->seen |= WEIR_SEEN_UPGRADE;
		return WEIR_FRAME_MORE;
	}
	f->state = WEIR_AT_KNOWN_VALUE;
	weir_token_start(f);
	return outcome;
}

WEIR_INLINE int weir_name_byte(struct weir_framing *f, __u8 c)
{
	if (c == ':')
		return weir_name_end(f);
	if (!weir_is_tchar(c))
		return weir_bad_byte(c, WEIR_BAD_HEADER);
	weir_token_byte(f, weir_lower(c));
	return WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_line_byte(struct weir_framing *f, __u8 c)
{
	if (c == '\r') {
		f->state = WEIR_AT_END_LF;
		return WEIR_FRAME_MORE;
	}
	if (weir_is_blank(c))
		return -WEIR_FOLDED_HEADER;
	if (!weir_is_tchar(c))
		return weir_bad_byte(c, WEIR_BAD_HEADER);
	f->state = WEIR_AT_NAME;
	weir_token_start(f);
	weir_token_byte(f, weir_lower(c));
	return WEIR_FRAME_MORE;
}

WEIR_INLINE int weir_value_byte(struct weir_framing *f, __u8 c)
{
	if (c == '\r')
		f->state = WEIR_AT_LINE_LF;
	else if (!weir_is_text(c))
		return weir_bad_byte(c, WEIR_BAD_HEADER);
	return WEIR_FRAME_MORE;
}

/* One byte of header lines: WEIR_FRAME_HEAD at the end of the empty line. */
WEIR_INLINE int weir_field_byte(struct weir_framing *f, __u8 c)
{
	switch (f->state) {
	case WEIR_AT_VALUE:
		return weir_value_byte(f, c);
	case WEIR_AT_NAME:
		return weir_name_byte(f, c);
	case WEIR_AT_LINE:
		return weir_line_byte(f, c);
	case WEIR_AT_KNOWN_VALUE:
		return weir_known_value_byte(f, c);
	case WEIR_AT_LINE_LF:
		weir_line_end(f);
		return c == '\n' ? WEIR_FRAME_MORE : -WEIR_BARE_CR;
	default:
		return c == '\n' ? WEIR_FRAME_HEAD : -WEIR_BARE_CR;
	}
}

/* Takes the most frequent byte of all, text in a value that does not matter. false: it is another, or one too many. */
WEIR_INLINE bool weir_field_skims(struct weir_framing *f, __u8 c)
{
	if (f->state != WEIR_AT_VALUE || !weir_is_text(c) || f->position >= WEIR_HEAD_MAX)
		return false;
	f->position++;
	return true;
}

#endif
