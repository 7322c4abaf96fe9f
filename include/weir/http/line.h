/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Field lines read whole where they stand in a window: those that nobody reads are passed over, those that a message's length
 * hangs on are read in their plainest form. The framing machine comes to the same, with more work: what is cut, or is said in
 * another way, is left to it.
 */
#ifndef WEIR_HTTP_LINE_H
#define WEIR_HTTP_LINE_H

#include "weir/http/field.h"
#include "weir/http/run.h"
#include "weir/http/window.h"

#define WEIR_LINES_MAX 8 /* that are read in one go */

/* A literal of at most eight bytes as it stands in a word. */
#define WEIR_RUN_TEXT(text) __builtin_bswap64(WEIR_TEXT_WORD(text, 0) << (64 - 8 * (sizeof(text) - 1)))

/* Bit n: a name of n bytes that begins with this letter may be one that weir_name_end() knows. */
WEIR_INLINE __u32 weir_line_lengths(__u8 first)
{
	switch (first | 0x20) {
	case 'c':
		return 1U << (sizeof("content-length") - 1) | 1U << (sizeof("connection") - 1);
	case 't':
		return 1U << (sizeof("transfer-encoding") - 1);
	case 'e':
		return 1U << (sizeof("expect") - 1);
	case 'u':
		return 1U << (sizeof("upgrade") - 1);
	default:
		return 0;
	}
}

/* A name of up to 24 bytes in lower case, the first byte lowest. What stands behind it is anything. */
struct weir_line_name {
	__u64 lower[WEIR_TOKEN_MAX / 8];
};

/*
 * The same number, but the verifier forgets what it knows of it. So all paths that lead to it are one state. n: below twice the window; word:
 * any value that the verifier does not know
 */
WEIR_INLINE __u32 weir_line_any(__u32 n, __u64 word)
{
	__u64 others = ~word;

	WEIR_BARRIER(others);
	return (n + (word & others)) & (2 * WEIR_WINDOW - 1);
}

#define WEIR_LINE_NAME_MAX 40 /* bytes of a name: one that is longer than a token means nothing */

/* How long the name is that begins at `at`, with a colon behind it; 0: that is for the machine to judge. */
WEIR_INLINE __u32 weir_line_name(const struct weir_window *w, __u32 at, struct weir_line_name *name)
{
	__u32 n = weir_run_name(weir_window_word(w, at), &name->lower[0]);
	__u64 other;

	if (n == 8)
		n += weir_run_name(weir_window_word(w, at + 8), &name->lower[1]);
	if (n == 16)
		n += weir_run_name(weir_window_word(w, at + 16), &name->lower[2]);
	for (__u32 i = WEIR_TOKEN_MAX; i < WEIR_LINE_NAME_MAX; i += 8)
		if (n == i)
			n += weir_run_name(weir_window_word(w, at + i), &other);
	n = weir_line_any(n, name->lower[0]);
	return weir_run_first(weir_window_word(w, at + n)) == ':' ? n : 0;
}

/* How many bytes of whole words of text there are from `at` on. */
WEIR_INLINE __u32 weir_line_text(const struct weir_window *w, __u32 at)
{
	__u32 n = 0;

	WEIR_ROLLED
	for (int i = 0; i < WEIR_WINDOW / 8; i++) {
		if (!weir_run_is_text(weir_window_word(w, at + n)))
			break;
		n += 8;
	}
	return weir_line_any(n, weir_window_word(w, at));
}

/* May lines be read here? */
WEIR_INLINE bool weir_framing_at_line(const struct weir_framing *f)
{
	return f->state == WEIR_AT_LINE && f->position < WEIR_HEAD_MAX - WEIR_WINDOW;
}

/* n bytes of lines have been read. */
WEIR_INLINE __u32 weir_framing_ahead(struct weir_framing *f, __u32 n)
{
	f->position += n;
	return n;
}

/* Is it the empty line that ends a head? */
WEIR_INLINE bool weir_line_is_last(const struct weir_window *w, __u32 at)
{
	return (weir_window_word(w, at) & 0xffff) == WEIR_RUN_CRLF && at + 2 <= w->length;
}

/* Reads such a line up to its last byte, with which the machine ends the head. */
WEIR_INLINE __u32 weir_head_ahead(struct weir_framing *f)
{
	f->state = WEIR_AT_END_LF;
	return weir_framing_ahead(f, 1);
}

/* The number that the word's first n bytes are, digits; n: 1 to 8. */
WEIR_INLINE __u64 weir_run_number(__u64 word, __u32 n)
{
	__u64 digits = word << (64 - 8 * n) & WEIR_RUN_ONES * 0x0f;

	digits = (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ffULL;
	digits = (digits * 100 + (digits >> 16)) & 0x0000ffff0000ffffULL;
	return (digits * 10000 + (digits >> 32)) & 0xffffffffULL;
}

/* Where the value begins whose name's colon is at `at`: behind one space. */
WEIR_INLINE __u32 weir_line_value(const struct weir_window *w, __u32 at)
{
	return at + 1 + (weir_run_first(weir_window_word(w, at + 1)) == ' ');
}

/* Reads a length of few digits that stands from `at` to the line's end. Returns where the line ends; 0: it is something else. */
WEIR_INLINE __u32 weir_length_ahead(struct weir_framing *f, const struct weir_window *w, __u32 at)
{
	__u64 word = weir_window_word(w, at);
	__u32 n = weir_run_length(~(weir_run_range(word, '0', '9') & ~word));

	if (!n || n > 6 || (weir_run_behind(word, n) & 0xffff) != WEIR_RUN_CRLF || at + n + 2 > w->length ||
	    f->seen & (WEIR_SEEN_LENGTH | WEIR_SEEN_CHUNKED))
		return 0;
	f->seen |= WEIR_SEEN_LENGTH;
	f->field = WEIR_FIELD_CONTENT_LENGTH;
	f->left = weir_run_number(word, n);
	return at + n + 2;
}

/* Reads "keep-alive" or "close" that stands from `at` to the line's end; returns as above. */
WEIR_INLINE __u32 weir_connection_ahead(struct weir_framing *f, const struct weir_window *w, __u32 at)
{
	__u64 lower, rest;
	__u32 n = weir_run_name(weir_window_word(w, at), &lower), seen = 0;

	if (n == 5 && weir_run_only(lower, 5) == WEIR_RUN_TEXT("close"))
		seen = WEIR_SEEN_CLOSE;
	if (n == 8 && lower == WEIR_RUN_TEXT("keep-ali")) {
		n += weir_run_name(weir_window_word(w, at + 8), &rest);
		seen = n == 10 && weir_run_only(rest, 2) == WEIR_RUN_TEXT("ve") ? WEIR_SEEN_KEEP_ALIVE : 0;
	}
	if (!seen || (weir_window_word(w, at + n) & 0xffff) != WEIR_RUN_CRLF || at + n + 2 > w->length)
		return 0;
	f->seen |= seen;
	f->field = WEIR_FIELD_CONNECTION;
	return at + n + 2;
}

/* Reads the field line at index `at`, whose name has n bytes, if it is one of these: how long it is; 0: it is something else. */
WEIR_INLINE __u32 weir_field_ahead(struct weir_framing *f, const struct weir_window *w, __u32 at,
				   const struct weir_line_name *name, __u32 n)
{
	__u32 end = 0;

	if (f->seen & WEIR_SEEN_LAST_CHUNK)
		return 0;
	if (n == 14 && name->lower[0] == WEIR_RUN_TEXT("content-") &&
	    weir_run_only(name->lower[1], 6) == WEIR_RUN_TEXT("length"))
		end = weir_length_ahead(f, w, weir_line_value(w, at + n));
	else if (n == 10 && name->lower[0] == WEIR_RUN_TEXT("connecti") &&
		 weir_run_only(name->lower[1], 2) == WEIR_RUN_TEXT("on"))
		end = weir_connection_ahead(f, w, weir_line_value(w, at + n));
	return end ? end - at : 0;
}

/*
 * Reads the field line that begins at index `at`, or passes over it if it means nothing. Returns its length, its end included; 0: the line is
 * not whole here, or is for others to read. lengths: those of further names that mean something (struct weir_reading). n: weir_line_name()
 */
WEIR_INLINE __u32 weir_line_ahead(struct weir_framing *f, const struct weir_window *w, __u32 at, __u32 lengths,
				  const struct weir_line_name *name, __u32 n)
{
	__u64 means = weir_line_lengths(w->bytes[at & (WEIR_WINDOW - 1)]), asked = lengths;

	if (n && means >> n & 1)
		return weir_field_ahead(f, w, at, name, n);
	if (!n || asked >> n & 1)
		return 0;
	n += weir_line_text(w, at + n);
	n += weir_run_text(weir_window_word(w, at + n));
	if ((weir_window_word(w, at + n) & 0xffff) != WEIR_RUN_CRLF || at + n + 2 > w->length)
		return 0;
	return n + 2;
}

#endif
