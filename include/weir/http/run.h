/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Heads by eight bytes at once, where little can happen: text in a value nobody reads, a line's end, the common bytes of
 * header names and of words. The eight next bytes of the stream stand in a word, the first one lowest; where there
 * are fewer, zeros follow. Tests of all bytes of a word at once: Henry S. Warren, "Hacker's Delight", 6-1.
 */
#ifndef WEIR_HTTP_RUN_H
#define WEIR_HTTP_RUN_H

#include "weir/http/byte.h"
#include "weir/http/framing.h"

#define WEIR_RUN_ONES 0x0101010101010101ULL
#define WEIR_RUN_HIGHS (WEIR_RUN_ONES << 7)
#define WEIR_RUN_LOWER \
	(WEIR_RUN_ONES * 0x20) /* makes lower case of letters, and leaves digits and hyphens as they are */
#define WEIR_RUN_HTTP11 0x312e312f50545448ULL /* "HTTP/1.1" */
#define WEIR_RUN_CRLF ('\r' | '\n' << 8)

/* The word of the n bytes that are there. Whoever can load eight bytes at once need not call this. */
WEIR_INLINE __u64 weir_run_word(const __u8 *bytes, __u64 n)
{
	__u64 word = 0;
	__u32 i;

	for (i = 0; i < 8 && i < n; i++)
		word |= (__u64)bytes[i] << 8 * i;
	return word;
}

/* How many bytes come before the first whose high bit is set; without branches, each of which verifiers would follow. */
WEIR_INLINE __u64 weir_run_length(__u64 marks)
{
	__u64 below;

	marks &= WEIR_RUN_HIGHS;
	below = ((marks & -marks) - 1) & WEIR_RUN_HIGHS;
	return (below >> 7) * WEIR_RUN_ONES >> 56;
}

/* The same where there is such a byte, of marks that are high bits alone: the first one's shifts its number to the highest byte. */
WEIR_INLINE __u64 weir_run_first_mark(__u64 marks)
{
	return ((marks & -marks) >> 7) * 0x0001020304050607ULL >> 56;
}

/* The high bit of each byte that is from `low` to `high`; bytes of 0x80 and above must be masked by the caller. */
WEIR_INLINE __u64 weir_run_range(__u64 word, __u8 low, __u8 high)
{
	__u64 seven = word & ~WEIR_RUN_HIGHS;

	/* A byte that is above `high` is above `low`, too. */
	return (seven + WEIR_RUN_ONES * (0x80 - low)) ^ (seven + WEIR_RUN_ONES * (0x7f - high));
}

/* The high bit of each byte that is below n, which is at most 0x80; above such a byte, of one that is n, too. */
WEIR_INLINE __u64 weir_run_below(__u64 word, __u8 n)
{
	return (word - WEIR_RUN_ONES * n) & ~word & WEIR_RUN_HIGHS;
}

/* The high bit of each byte that is no text (weir_is_text), or a tab. */
WEIR_INLINE __u64 weir_run_not_text(__u64 word)
{
	return ~(word | weir_run_range(word, ' ', 0x7e)) & WEIR_RUN_HIGHS;
}

/* The same, but of these marks the first alone is sure: a byte that is marked may carry over to the next one. */
WEIR_INLINE __u64 weir_run_text_end(__u64 word)
{
	return ((word - WEIR_RUN_ONES * ' ') | (word + WEIR_RUN_ONES) | word) & WEIR_RUN_HIGHS;
}

/* Leading bytes that are such text. */
WEIR_INLINE __u32 weir_run_text(__u64 word)
{
	return weir_run_length(weir_run_not_text(word));
}

/* Are all of its bytes? */
WEIR_INLINE bool weir_run_is_text(__u64 word)
{
	return !weir_run_not_text(word);
}

/* The high bit of each byte that is no letter, digit or hyphen; behind the first one that is 0x80 or above, of any. */
WEIR_INLINE __u64 weir_run_not_name(__u64 word)
{
	__u64 lower = word | WEIR_RUN_LOWER;
	__u64 not_letter = (lower + WEIR_RUN_ONES * (0x80 - 'a')) ^ (WEIR_RUN_ONES * (0x80 + 'z') - lower);
	__u64 not_digit = (word ^ WEIR_RUN_ONES * '0') + WEIR_RUN_ONES * (0x80 - 10);
	__u64 not_hyphen = (word ^ WEIR_RUN_ONES * '-') + WEIR_RUN_ONES * (0x80 - 1);

	return ((not_letter & not_digit & not_hyphen) | word) & WEIR_RUN_HIGHS;
}

/* Leading letters, digits and hyphens; *lower: these in lower case, and behind them anything. */
WEIR_INLINE __u32 weir_run_name(__u64 word, __u64 *lower)
{
	*lower = word | WEIR_RUN_LOWER;
	return weir_run_length(weir_run_not_name(word));
}

/* As weir_token_byte() for each of the first n bytes, 1 to 8. */
WEIR_INLINE void weir_token_bytes(struct weir_framing *f, __u64 word, __u32 n)
{
	__u64 bytes = __builtin_bswap64(word);
	__u32 rest = 64 - 8 * n;

	if (f->gap || f->count + n > WEIR_TOKEN_MAX) {
		weir_token_none(f);
		return;
	}
	f->count += n;
	if (!rest) {
		f->token[2] = f->token[1];
		f->token[1] = f->token[0];
		f->token[0] = bytes;
		return;
	}
	f->token[2] = f->token[2] << (64 - rest) | f->token[1] >> rest;
	f->token[1] = f->token[1] << (64 - rest) | f->token[0] >> rest;
	f->token[0] = f->token[0] << (64 - rest) | bytes >> rest;
}

WEIR_INLINE __u32 weir_take_name(struct weir_framing *f, __u64 word)
{
	__u64 lower;
	__u32 n = weir_run_name(word, &lower);

	if (n)
		weir_token_bytes(f, lower, n);
	return n;
}

/* The rest of a line, and its end. */
WEIR_INLINE __u32 weir_take_text(struct weir_framing *f, __u64 word)
{
	__u32 n = weir_run_text(word);

	if (n > 6 || (word >> 8 * n & 0xffff) != WEIR_RUN_CRLF)
		return n;
	weir_line_end(f);
	return n + 2;
}

WEIR_INLINE __u32 weir_take_line_end(struct weir_framing *f)
{
	weir_line_end(f);
	return 1;
}

/* The word without its first n bytes; n: at most 7. */
WEIR_INLINE __u64 weir_run_behind(__u64 word, __u32 n)
{
	return word >> 8 * n;
}

WEIR_INLINE __u8 weir_run_first(__u64 word)
{
	return word & 0xff;
}

/* The first n bytes of the word, zeros above them; n: 1 to 8. */
WEIR_INLINE __u64 weir_run_only(__u64 word, __u32 n)
{
	return word << (64 - 8 * n) >> (64 - 8 * n);
}

/* A line's first bytes, when it is a field, or the CR of an empty one. */
WEIR_INLINE __u32 weir_take_line(struct weir_framing *f, __u64 word)
{
	__u64 lower;
	__u32 n = weir_run_name(word, &lower);

	if (!n && weir_run_first(word) == '\r') {
		f->state = WEIR_AT_END_LF;
		return 1;
	}
	if (!n)
		return 0;
	weir_token_start(f);
	weir_token_bytes(f, lower, n);
	f->state = WEIR_AT_NAME;
	return n;
}

/* A blank before anything else, or words. */
WEIR_INLINE __u32 weir_take_words(struct weir_framing *f, __u64 word)
{
	if (!f->count && !f->gap && weir_is_blank(weir_run_first(word)))
		return 1;
	return weir_take_name(f, word);
}

/* The same, or a digit. */
WEIR_INLINE __u32 weir_take_length(struct weir_framing *f, __u64 word)
{
	__u8 c = weir_run_first(word);

	if (f->gap || f->left >> 32 || !(weir_is_digit(c) || (weir_is_blank(c) && !f->count)))
		return 0;
	if (weir_is_digit(c)) {
		f->left = f->left * 10 + (c - '0');
		f->count = 1;
	}
	return 1;
}

/* Takes as many of the word's bytes as it can; 0: the next byte is for the machine to judge. */
WEIR_INLINE __u32 weir_framing_take(struct weir_framing *f, __u64 word)
{
	__u32 n = 0;

	if (f->position > WEIR_HEAD_MAX - 8)
		return 0;
	if (f->state == WEIR_AT_LINE)
		n = weir_take_line(f, word);
	else if (f->state == WEIR_AT_NAME)
		n = weir_take_name(f, word);
	else if (f->state == WEIR_AT_VALUE)
		n = weir_take_text(f, word);
	else if (f->state == WEIR_AT_KNOWN_VALUE)
		n = f->field == WEIR_FIELD_CONTENT_LENGTH ? weir_take_length(f, word) : weir_take_words(f, word);
	else if (f->state == WEIR_AT_LINE_LF && weir_run_first(word) == '\n')
		n = weir_take_line_end(f);
	f->position += n;
	return n;
}

#define WEIR_RUN_WORDS 16 /* of text, that are passed over in one go, at most */

/* May words of text be passed over here, one after the other? */
WEIR_INLINE bool weir_framing_in_text(const struct weir_framing *f)
{
	return f->state == WEIR_AT_VALUE && f->position < WEIR_HEAD_MAX - 8 * WEIR_RUN_WORDS;
}

/* As feeding n bytes of them. */
WEIR_INLINE void weir_framing_pass_text(struct weir_framing *f, __u32 n)
{
	f->position += n;
}

#endif
