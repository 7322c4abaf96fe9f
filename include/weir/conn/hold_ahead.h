/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The lines of what is held, read where they stand in a window: as feeding the reader of hold_reader.h each byte of whole words in which no
 * line ends, and nothing that it looks for may go on. It is fed what is left. Words, and tests of all their bytes at once: run.h.
 */
#ifndef WEIR_CONN_HOLD_AHEAD_H
#define WEIR_CONN_HOLD_AHEAD_H

#include "weir/conn/hold_reader.h"
#include "weir/http/run.h"
#include "weir/http/window.h"

/* Is nothing under way but what the byte before may have begun? It may be a line's first, but then not a CR that ends an empty one. */
WEIR_INLINE bool weir_hold_reader_is_idle(const struct weir_hold_reader *r, __u8 first)
{
	return !r->grants && r->by_lines && r->preface >= WEIR_HOLD_PREFACE && r->ending <= 1 &&
	       !(r->line && first == '\r') && (r->begun <= 1 || r->begun == WEIR_HOLD_BEGUN) &&
	       (r->named <= 1 || r->named == WEIR_HOLD_NAMED);
}

/* A byte that leaves an idle reader as the one before has left it. */
WEIR_INLINE __u8 weir_hold_reader_before(const struct weir_hold_reader *r)
{
	if (r->named == 1 || r->ending)
		return ' ';
	return r->begun == 1 ? 'G' : '.';
}

/* May a line end in these bytes, which stand behind `before`, or a "G" or white space be followed by what goes on with it? */
WEIR_INLINE bool weir_hold_word_matters(__u64 word, __u8 before)
{
	__u64 behind = word << 8 | before;

	return weir_run_below(word ^ WEIR_RUN_ONES * '\n', 1) ||
	       (weir_run_below(word ^ WEIR_RUN_ONES * 'E', 1) & weir_run_below(behind ^ WEIR_RUN_ONES * 'G', 1)) ||
	       (weir_run_below(word ^ WEIR_RUN_ONES * 'H', 1) & weir_run_below(behind, ' ' + 1));
}

/* As feeding words of which none matters; `last`: their last byte. */
WEIR_INLINE void weir_hold_reader_pass(struct weir_hold_reader *r, __u8 last)
{
	if (r->begun != WEIR_HOLD_BEGUN)
		r->begun = last == 'G';
	if (r->named != WEIR_HOLD_NAMED)
		r->named = last <= ' ';
	r->ending = last == ' ';
	r->line = 0;
	r->open = 1;
}

/* Passes over whole words from index `from` of the window on. Returns how many bytes they have. */
WEIR_INLINE __u32 weir_hold_reader_ahead(struct weir_hold_reader *r, const struct weir_window *w, __u32 from)
{
	__u8 before = weir_hold_reader_before(r);
	__u32 index = from;
	__u64 word;

	if (index + 8 > w->length || !weir_hold_reader_is_idle(r, weir_run_first(weir_window_word(w, index))))
		return 0;
	WEIR_ROLLED
	for (int n = 0; n < WEIR_WINDOW / 8 && index + 8 <= w->length; n++) {
		word = weir_window_word(w, index);
		if (weir_hold_word_matters(word, before))
			break;
		before = word >> 56;
		index += 8;
	}
	if (index != from)
		weir_hold_reader_pass(r, before);
	return index - from;
}

#endif
