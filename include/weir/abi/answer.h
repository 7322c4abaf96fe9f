/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The 429 answer, ready but for its Retry-After: a text with two holes of as many digits as that number has, one in the
 * header and one in the body. Content-Length depends on the digits, so each count of digits has a text of its own. The
 * agent makes them (user/datapath/answer_text.h); whoever answers copies one and stamps the number in.
 *
 * And the 400 that rejects a request: one text for each ambiguity (ambiguity.h), without holes. It always closes.
 */
#ifndef WEIR_ABI_ANSWER_H
#define WEIR_ABI_ANSWER_H

#include "weir/base/reason.h"
#include "weir/base/types.h"

#define WEIR_RETRY_DIGITS 4 /* of WEIR_RETRY_MAX_S */
#define WEIR_ANSWER_TEXT 496

enum weir_answer_kind {
	WEIR_ANSWER_KEEP,  /* the connection goes on */
	WEIR_ANSWER_CLOSE, /* says Connection: close */
	WEIR_ANSWER_KINDS,
};

struct weir_answer {
	__u16 length;	   /* bytes of text */
	__u16 head_length; /* bytes up to the body: the whole answer to a HEAD request */
	__u16 digits;	   /* of the Retry-After this text is for, 1 to WEIR_RETRY_DIGITS; 0: it has none */
	__u16 header_at;   /* offset of the header's digits */
	__u16 body_at;	   /* offset of the body's digits */
	__u16 pad[3];
	char text[WEIR_ANSWER_TEXT] __attribute__((aligned(8))); /* zeros after length; copied by words */
};
WEIR_ASSERT_SIZE(struct weir_answer, 512);

/* The places in the map `answers`: of a 429, and behind those of a 400. */
WEIR_INLINE __u32 weir_answer_index(enum weir_answer_kind kind, __u32 digits)
{
	return kind * WEIR_RETRY_DIGITS + digits - 1;
}

WEIR_INLINE __u32 weir_rejection_index(enum weir_reason why)
{
	return WEIR_ANSWER_KINDS * WEIR_RETRY_DIGITS + why;
}

#define WEIR_ANSWERS (WEIR_ANSWER_KINDS * WEIR_RETRY_DIGITS + WEIR_REASON_COUNT)

/* The decimal digits of n, which is below 10^WEIR_RETRY_DIGITS. */
WEIR_INLINE __u32 weir_decimal_digits(__u32 n)
{
	return 1 + (n >= 10) + (n >= 100) + (n >= 1000);
}

/* Writes the first `digits` bytes of `decimal`, the highest byte first. The bounds hold whatever the map says. */
WEIR_INLINE void weir_answer_stamp_at(char *text, __u32 at, __u32 digits, __u32 decimal)
{
	if (at > WEIR_ANSWER_TEXT - WEIR_RETRY_DIGITS)
		return;
	for (__u32 i = 0; i < WEIR_RETRY_DIGITS; i++) {
		if (i < digits)
			text[at + i] = decimal >> (24 - 8 * i);
	}
}

/* Writes `seconds`, a number of a->digits digits, into both holes of `text`: a copy of a->text, WEIR_ANSWER_TEXT bytes. */
WEIR_INLINE void weir_answer_stamp(char *text, const struct weir_answer *a, __u32 seconds)
{
	__u32 digits = a->digits;
	__u32 decimal = seconds / 1000 % 10 << 24 | seconds / 100 % 10 << 16 | seconds / 10 % 10 << 8 | seconds % 10;

	decimal |= 0x30303030; /* '0' in each byte */
	decimal <<= 8 * (WEIR_RETRY_DIGITS - digits) & 31;
	weir_answer_stamp_at(text, a->header_at, digits, decimal);
	weir_answer_stamp_at(text, a->body_at, digits, decimal);
}

#endif
