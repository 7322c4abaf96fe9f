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

#define WEIR_LINES_MAX 6 /* that are read in one go */

/* A literal of at most eight bytes as it stands in a word. */
#define WEIR_RUN_TEXT(text) __builtin_bswap64(WEIR_TEXT_WORD(text, 0) << (64 - 8 * (sizeof(text) - 1)))

#define WEIR_LINE_LENGTH(name) (1U << (sizeof(name) - 1))
/* Bit n: a name of n bytes may be one that weir_name_end() knows. */
#define WEIR_LINE_LENGTHS                                                                                   \
	(WEIR_LINE_LENGTH("content-length") | WEIR_LINE_LENGTH("connection") | WEIR_LINE_LENGTH("expect") | \
	 WEIR_LINE_LENGTH("transfer-encoding") | WEIR_LINE_LENGTH("upgrade"))

/* The same of one that begins with this letter. */
WEIR_INLINE __u32 weir_line_lengths(__u8 first)
{
	switch (first | 0x20) {
	case 'c':
		return WEIR_LINE_LENGTH("content-length") | WEIR_LINE_LENGTH("connection");
	case 't':
		return WEIR_LINE_LENGTH("transfer-encoding");
	case 'e':
		return WEIR_LINE_LENGTH("expect");
	case 'u':
		return WEIR_LINE_LENGTH("upgrade");
	default:
		return 0;
	}
}

#define WEIR_LINE_NAME_WORDS 5 /* of a name and its colon: one that is longer than a token means nothing */
_Static_assert(WEIR_LINE_NAME_WORDS <= WEIR_WINDOW_WORDS, "a window has room for them");

/* Finds where text ends that stands from index `from` on. Behind what the window has: it does not end there. */
WEIR_INLINE void weir_line_find_end(struct weir_window *w, __u64 from)
{
	const __u8 *bytes;
	__u64 others = 0;

	WEIR_ROLLED
	for (int i = 0; i < WEIR_WINDOW / (8 * WEIR_WINDOW_WORDS) && !others; i++) {
		bytes = weir_window_from(w, from);
		WEIR_UNROLLED
		for (int k = 0; k < WEIR_WINDOW_WORDS; k++) {
			others = weir_run_text_end(weir_window_word_of(bytes + 8 * k));
			if (others)
				break;
			from += 8;
		}
	}
	w->line.end = from + weir_run_first_mark(others);
	WEIR_FRESH_ALL();
}

/* Does a line end at index `end`, its CRLF included? */
WEIR_INLINE bool weir_line_ends(const struct weir_window *w, __u64 end)
{
	return (weir_window_word(w, end) & 0xffff) == WEIR_RUN_CRLF && end + 2 <= w->length;
}

/*
 * Finds the field line that begins where the reading stands. false: that is for the machine to do. What its end hangs on is only how its
 * words are: where its name ends is found out beside.
 */
WEIR_INLINE bool weir_line_find(struct weir_window *w)
{
	__u64 at = w->line.at, n = 0;
	const __u8 *bytes = weir_window_from(w, at);
	__u64 others = 0;

	WEIR_ROLLED
	for (int k = 0; k < WEIR_LINE_NAME_WORDS; k++) {
		n = 8 * k;
		others = weir_run_not_name(weir_window_word_of(bytes + n));
		if (others)
			break;
	}
	if (!others)
		return false;
	n = (at + n) & (2 * WEIR_WINDOW - 1);
	w->line.colon = n + weir_run_first_mark(others);
	weir_line_find_end(w, n);
	return w->line.colon != w->line.at && weir_run_first(weir_window_word(w, w->line.colon)) == ':' &&
	       weir_line_ends(w, w->line.end);
}

/* Goes on with the next line. */
WEIR_INLINE void weir_line_next(struct weir_window *w)
{
	w->line.at = w->line.end + 2;
}

/* May all that the window has belong to the head? */
WEIR_INLINE bool weir_framing_has_room(const struct weir_framing *f)
{
	return f->position < WEIR_HEAD_MAX - WEIR_WINDOW;
}

/* May lines be read here? */
WEIR_INLINE bool weir_framing_at_line(const struct weir_framing *f)
{
	return f->state == WEIR_AT_LINE && weir_framing_has_room(f);
}

/* n bytes of lines have been read. */
WEIR_INLINE __u32 weir_framing_ahead(struct weir_framing *f, __u32 n)
{
	f->position += n;
	return n;
}

/* Is it the empty line that ends a head? Then it is read up to its last byte, with which the machine ends the head. */
WEIR_INLINE void weir_line_last_ahead(struct weir_framing *f, struct weir_window *w)
{
	if (!weir_line_ends(w, w->line.at))
		return;
	f->state = WEIR_AT_END_LF;
	w->line.at++;
}

/* The number that the word's first n bytes are, digits; n: 1 to 8. */
WEIR_INLINE __u64 weir_run_number(__u64 word, __u32 n)
{
	__u64 digits = word << (64 - 8 * n) & WEIR_RUN_ONES * 0x0f;

	digits = (digits * 10 + (digits >> 8)) & 0x00ff00ff00ff00ffULL;
	digits = (digits * 100 + (digits >> 16)) & 0x0000ffff0000ffffULL;
	return (digits * 10000 + (digits >> 32)) & 0xffffffffULL;
}

/* Where its value begins: behind one space. */
WEIR_INLINE __u64 weir_line_value(const struct weir_window *w)
{
	return w->line.colon + 1 + (weir_run_first(weir_window_word(w, w->line.colon + 1)) == ' ');
}

/* The eight bytes from index `at` on in lower case, where they are of a name. */
WEIR_INLINE __u64 weir_line_lower(const struct weir_window *w, __u32 at)
{
	return weir_window_word(w, at) | WEIR_RUN_LOWER;
}

/* Reads a length of few digits that stands from `at` to `end`. false: it is something else. */
WEIR_INLINE bool weir_length_ahead(struct weir_framing *f, const struct weir_window *w, __u64 at, __u64 end)
{
	__u64 word = weir_window_word(w, at);
	__u64 n = weir_run_length(~(weir_run_range(word, '0', '9') & ~word));

	if (!n || at + n != end || f->seen & (WEIR_SEEN_LENGTH | WEIR_SEEN_CHUNKED))
		return false;
	f->seen |= WEIR_SEEN_LENGTH;
	f->field = WEIR_FIELD_CONTENT_LENGTH;
	f->left = weir_run_number(word, n);
	return true;
}

/* Reads "keep-alive" or "close" that stands from `at` to `end`; no other text becomes one of them in lower case. Returns as above. */
WEIR_INLINE bool weir_connection_ahead(struct weir_framing *f, const struct weir_window *w, __u64 at, __u64 end)
{
	__u64 lower = weir_line_lower(w, at);
	__u64 n = end - at;
	__u32 seen = 0;

	if (n == 5 && weir_run_only(lower, 5) == WEIR_RUN_TEXT("close"))
		seen = WEIR_SEEN_CLOSE;
	if (n == 10 && lower == WEIR_RUN_TEXT("keep-ali") &&
	    weir_run_only(weir_line_lower(w, at + 8), 2) == WEIR_RUN_TEXT("ve"))
		seen = WEIR_SEEN_KEEP_ALIVE;
	f->seen |= seen;
	if (seen)
		f->field = WEIR_FIELD_CONNECTION;
	return seen;
}

/* Reads the line, if it is a length or a connection's fate. false: it is something else. */
WEIR_INLINE bool weir_field_ahead(struct weir_framing *f, const struct weir_window *w)
{
	__u64 lower = weir_line_lower(w, w->line.at), rest = weir_line_lower(w, w->line.at + 8);
	__u64 n = w->line.colon - w->line.at;

	if (f->seen & WEIR_SEEN_LAST_CHUNK)
		return false;
	if (n == 14 && lower == WEIR_RUN_TEXT("content-") && weir_run_only(rest, 6) == WEIR_RUN_TEXT("length"))
		return weir_length_ahead(f, w, weir_line_value(w), w->line.end);
	return n == 10 && lower == WEIR_RUN_TEXT("connecti") && weir_run_only(rest, 2) == WEIR_RUN_TEXT("on") &&
	       weir_connection_ahead(f, w, weir_line_value(w), w->line.end);
}

/* What a line is to who reads a head. */
enum weir_line_is {
	WEIR_LINE_OTHERS,  /* it is for others to read */
	WEIR_LINE_READ,	   /* it means something, and has been read */
	WEIR_LINE_NOTHING, /* nobody reads it */
};

/* Reads the line, if a message's framing hangs on it. lengths: those of further names that mean something (struct weir_reading) */
WEIR_INLINE enum weir_line_is weir_line_ahead(struct weir_framing *f, const struct weir_window *w, __u64 lengths)
{
	__u64 n = w->line.colon - w->line.at;
	__u64 means;

	if (!((lengths | WEIR_LINE_LENGTHS) >> n & 1))
		return WEIR_LINE_NOTHING;
	means = weir_line_lengths(w->bytes[w->line.at & (WEIR_WINDOW - 1)]);
	if (means >> n & 1)
		return weir_field_ahead(f, w) ? WEIR_LINE_READ : WEIR_LINE_OTHERS;
	return lengths >> n & 1 ? WEIR_LINE_OTHERS : WEIR_LINE_NOTHING;
}

#endif
