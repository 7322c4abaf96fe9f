/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The answer to a refused request, ready but for its Retry-After: a text with holes of as many digits as that number has, one
 * in the header and others in the body. Content-Length depends on the digits, so each count of digits has a text of its own.
 * Without digits it is the 403 of what a limit never lets pass. The agent makes them (user/datapath/answer_text.h); whoever
 * answers copies one and stamps the number in. Each limit has its own, which name it (map `refusals`); those in the map
 * `answers` name none.
 *
 * And the 400 that rejects a request: one text for each ambiguity (ambiguity.h), without holes. It always closes.
 */
#ifndef WEIR_ABI_ANSWER_H
#define WEIR_ABI_ANSWER_H

#include "weir/base/reason.h"
#include "weir/base/types.h"

#define WEIR_RETRY_DIGITS 4 /* of WEIR_RETRY_MAX_S */
#define WEIR_ANSWER_TEXT 624
#define WEIR_ANSWER_HOLES 3

enum weir_answer_kind {
	WEIR_ANSWER_KEEP,  /* the connection goes on */
	WEIR_ANSWER_CLOSE, /* says Connection: close */
	WEIR_ANSWER_KINDS,
};

struct weir_answer {
	__u16 length;		     /* bytes of text */
	__u16 head_length;	     /* bytes up to the body: the whole answer to a HEAD request */
	__u16 digits;		     /* of the Retry-After this text is for, 1 to WEIR_RETRY_DIGITS; 0: it has none */
	__u16 at[WEIR_ANSWER_HOLES]; /* offsets of the holes; 0: there is none */
	__u16 pad[2];
	char text[WEIR_ANSWER_TEXT] __attribute__((aligned(8))); /* zeros after length; copied by words */
};
WEIR_ASSERT_SIZE(struct weir_answer, 640);

/* Answers to a refused request. */
#define WEIR_REFUSALS (WEIR_ANSWER_KINDS * (WEIR_RETRY_DIGITS + 1))

/* Those that name a limit. */
struct weir_refusal {
	struct weir_answer answers[WEIR_REFUSALS]; /* weir_answer_index() */
};

/* The places in the map `answers`: of a 429 or, without digits, a 403, and behind those of a 400. */
WEIR_INLINE __u32 weir_answer_index(enum weir_answer_kind kind, __u32 digits)
{
	return kind * (WEIR_RETRY_DIGITS + 1) + digits;
}

WEIR_INLINE __u32 weir_rejection_index(enum weir_reason why)
{
	return WEIR_REFUSALS + why;
}

#define WEIR_ANSWERS (WEIR_REFUSALS + WEIR_REASON_COUNT)

/* The decimal digits of a Retry-After, which is below 10^WEIR_RETRY_DIGITS; 0: never, which has none. */
WEIR_INLINE __u32 weir_retry_digits(__u32 seconds)
{
	return (seconds > 0) + (seconds >= 10) + (seconds >= 100) + (seconds >= 1000);
}

/* Writes the first `digits` bytes of `decimal`, the highest byte first. The bounds hold whatever the map says. */
WEIR_INLINE void weir_answer_stamp_at(char *text, __u32 at, __u32 digits, __u32 decimal)
{
	if (!at || at > WEIR_ANSWER_TEXT - WEIR_RETRY_DIGITS)
		return;
	for (__u32 i = 0; i < WEIR_RETRY_DIGITS; i++) {
		if (i < digits)
			text[at + i] = decimal >> (24 - 8 * i);
	}
}

/* Writes `seconds`, a number of a->digits digits, into the holes of `text`: a copy of a->text, WEIR_ANSWER_TEXT bytes. */
WEIR_INLINE void weir_answer_stamp(char *text, const struct weir_answer *a, __u32 seconds)
{
	__u32 digits = a->digits;
	__u32 decimal = seconds / 1000 % 10 << 24 | seconds / 100 % 10 << 16 | seconds / 10 % 10 << 8 | seconds % 10;

	decimal |= 0x30303030; /* '0' in each byte */
	decimal <<= 8 * (WEIR_RETRY_DIGITS - digits) & 31;
	for (__u32 i = 0; i < WEIR_ANSWER_HOLES; i++)
		weir_answer_stamp_at(text, a->at[i], digits, decimal);
}

#endif
