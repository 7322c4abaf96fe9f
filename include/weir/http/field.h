/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What requests and responses have in common up to the end of their heads: tokens, and header fields one byte at a time
 * (RFC 9112, 5). body.h follows with what comes after the head.
 *
 * The rules are stricter than the RFC's wherever two readers could differ about where a message ends: a line ends with
 * CRLF and nothing else, a field is one line, a length is told once and in one way.
 *
 * Functions here return an enum weir_frame_event, or the negative of an enum weir_reason when the message is lost.
 */
#ifndef WEIR_HTTP_FIELD_H
#define WEIR_HTTP_FIELD_H

#include "weir/base/frame.h"
#include "weir/base/reading.h"
#include "weir/base/types.h"

#define WEIR_TOKEN_NONE 255 /* `count` of what is longer, or can not be a token */

/* Where in a message the next byte belongs. A machine's states of its own come after these. */
enum weir_framing_state {
	WEIR_AT_LINE,	     /* first byte of a header line, or of the empty line */
	WEIR_AT_NAME,	     /* header name */
	WEIR_AT_VALUE,	     /* value that does not matter */
	WEIR_AT_KNOWN_VALUE, /* value of the header in `field` */
	WEIR_AT_LINE_LF,     /* a line's CR was there */
	WEIR_AT_END_LF,	     /* the empty line's CR was there */
	WEIR_AT_BODY,	     /* `left` bytes to come */
	WEIR_AT_BODY_TO_CLOSE,
	WEIR_AT_CHUNK_SIZE,
	WEIR_AT_CHUNK_EXTENSION,
	WEIR_AT_CHUNK_LF,     /* a size line's CR was there */
	WEIR_AT_CHUNK,	      /* `left` bytes to come */
	WEIR_AT_CHUNK_END_CR, /* behind a chunk's data */
	WEIR_AT_CHUNK_END_LF,
	WEIR_AT_ENDED, /* the message is complete; a new start is due */
	WEIR_AT_LOST,
	WEIR_AT_OWN,
};

/* Headers whose values are read. */
enum weir_field {
	WEIR_FIELD_CONTENT_LENGTH,
	WEIR_FIELD_TRANSFER_ENCODING,
	WEIR_FIELD_CONNECTION,
	WEIR_FIELD_EXPECT,
};

/* What a message was seen to say. */
enum weir_seen {
	WEIR_SEEN_HTTP10 = 1 << 0,
	WEIR_SEEN_LENGTH = 1 << 1,
	WEIR_SEEN_CHUNKED = 1 << 2,
	WEIR_SEEN_CLOSE = 1 << 3,	   /* Connection: close */
	WEIR_SEEN_KEEP_ALIVE = 1 << 4,	   /* Connection: keep-alive */
	WEIR_SEEN_UPGRADE_OPTION = 1 << 5, /* Connection: upgrade */
	WEIR_SEEN_UPGRADE = 1 << 6,	   /* Upgrade: ... */
	WEIR_SEEN_EXPECT = 1 << 7,	   /* Expect: 100-continue */
	WEIR_SEEN_LAST_CHUNK = 1 << 9,	   /* header lines are trailers now */
};

/*
 * token: the latest `count` bytes of a name, a list element or a word of the start line, the last one lowest. Tokens
 * are compared whole, never by a hash: nothing else than the name itself can be taken for it.
 */
struct weir_framing {
	__u64 token[3];
	__u64 left; /* Content-Length while the head is read; bytes of the body or the chunk that are still to come */
	__u32 position; /* bytes so far of the head, of a chunk's size line, of the trailers */
	__u16 seen;	/* enum weir_seen */
	__u8 state;	/* enum weir_framing_state, or the machine's own */
	__u8 field;	/* enum weir_field, in WEIR_AT_KNOWN_VALUE; or as the machine's own state has it */
	__u8 count;	/* bytes in token, or digits of a number; stays at WEIR_TOKEN_NONE */
	__u8 gap;	/* white space came after the token or number: another byte would not belong to it */
	__u8 pad[6];
};
WEIR_ASSERT_SIZE(struct weir_framing, 48);

/* RFC 9110, 5.6.2: one bit for each of the 128 ASCII bytes. */
WEIR_INLINE bool weir_is_tchar(__u8 c)
{
	__u64 set = c & 64 ? 0x57ffffffc7fffffeULL : 0x03ff6cfa00000000ULL;

	return c < 128 && set >> (c & 63) & 1;
}

/* What a header's value may hold. */
WEIR_INLINE bool weir_is_text(__u8 c)
{
	return (c >= ' ' && c != 0x7f) || c == '\t';
}

/* What a word of the start line may hold. */
WEIR_INLINE bool weir_is_visible(__u8 c)
{
	return c > ' ' && c != 0x7f;
}

WEIR_INLINE bool weir_is_blank(__u8 c)
{
	return c == ' ' || c == '\t';
}

WEIR_INLINE bool weir_is_digit(__u8 c)
{
	return c >= '0' && c <= '9';
}

WEIR_INLINE __u8 weir_lower(__u8 c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* -1: not a hexadecimal digit */
WEIR_INLINE int weir_hex_digit(__u8 c)
{
	__u8 lower = weir_lower(c);

	if (weir_is_digit(c))
		return c - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The reason of a byte that may not stand where it does: those that split readers have names of their own. */
WEIR_INLINE int weir_bad_byte(__u8 c, int otherwise)
{
	if (c == '\n')
		return -WEIR_BARE_LF;
	return c ? -otherwise : -WEIR_NUL_BYTE;
}

WEIR_INLINE void weir_token_start(struct weir_framing *f)
{
	f->token[0] = f->token[1] = f->token[2] = 0;
	f->count = 0;
	f->gap = 0;
}

/* It is none, whatever follows. */
WEIR_INLINE void weir_token_none(struct weir_framing *f)
{
	f->token[0] = f->token[1] = f->token[2] = 0;
	f->count = WEIR_TOKEN_NONE;
}

WEIR_INLINE void weir_token_byte(struct weir_framing *f, __u8 c)
{
	if (f->gap || f->count >= WEIR_TOKEN_MAX) {
		weir_token_none(f);
		return;
	}
	f->token[2] = f->token[2] << 8 | f->token[1] >> 56;
	f->token[1] = f->token[1] << 8 | f->token[0] >> 56;
	f->token[0] = f->token[0] << 8 | c;
	f->count++;
}

/* A literal's byte, counted from its last one, and its bytes packed as in a token: constants, made by the compiler. */
#define WEIR_TEXT_BYTE(text, n) \
	((__u64)((n) < sizeof(text) - 1 ? (text)[(n) < sizeof(text) - 1 ? sizeof(text) - 2 - (n) : 0] : 0))
#define WEIR_TEXT_HALF(text, n)                                                                               \
	(WEIR_TEXT_BYTE(text, n) | WEIR_TEXT_BYTE(text, (n) + 1) << 8 | WEIR_TEXT_BYTE(text, (n) + 2) << 16 | \
	 WEIR_TEXT_BYTE(text, (n) + 3) << 24)
#define WEIR_TEXT_WORD(text, n) (WEIR_TEXT_HALF(text, 8 * (n)) | WEIR_TEXT_HALF(text, 8 * (n) + 4) << 32)

WEIR_INLINE bool weir_token_equals(const struct weir_framing *f, __u32 length, __u64 low, __u64 middle, __u64 high)
{
	return f->token[0] == low && f->count == length && f->token[1] == middle && f->token[2] == high;
}

#define WEIR_TOKEN_IS(framing, text)                                                                   \
	weir_token_equals(framing, sizeof(text) - 1, WEIR_TEXT_WORD(text, 0), WEIR_TEXT_WORD(text, 1), \
			  WEIR_TEXT_WORD(text, 2))

/* Does the token equal a name that is known only when the server is attached? */
WEIR_INLINE bool weir_token_is_word(const struct weir_framing *f, const struct weir_word *word)
{
	return word->length && weir_token_equals(f, word->length, word->bytes[0], word->bytes[1], word->bytes[2]);
}

/* The version that the token holds: an event, or the loss when it is none that is followed. */
WEIR_INLINE int weir_version_end(struct weir_framing *f)
{
	if (WEIR_TOKEN_IS(f, "HTTP/1.1"))
		return WEIR_FRAME_MORE;
	if (!WEIR_TOKEN_IS(f, "HTTP/1.0"))
		return -WEIR_BAD_VERSION;
	f->seen |= WEIR_SEEN_HTTP10;
	return WEIR_FRAME_MORE;
}

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
		f->state = WEIR_AT_LINE;
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
