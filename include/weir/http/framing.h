/* SPDX-License-Identifier: GPL-2.0 */
/* How far a message has been read: where its next byte belongs, and the token that is being read. */
#ifndef WEIR_HTTP_FRAMING_H
#define WEIR_HTTP_FRAMING_H

#include "weir/base/frame.h"
#include "weir/base/reading.h"
#include "weir/base/types.h"
#include "weir/http/byte.h"

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
WEIR_INLINE void weir_token_start(struct weir_framing *f)
{
	f->token[0] = f->token[1] = f->token[2] = 0;
	f->count = 0;
	f->gap = 0;
}

/* Nothing of the line is kept: a line that is passed over (line.h) leaves the same state as one that was read. */
WEIR_INLINE void weir_line_end(struct weir_framing *f)
{
	f->state = WEIR_AT_LINE;
	weir_token_start(f);
}

/* What is being read is no token, whatever follows. */
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

#endif
