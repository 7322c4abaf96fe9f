/* SPDX-License-Identifier: GPL-2.0 */
/* A part of a stream, in which whole lines of a head can be read where they stand (line.h). */
#ifndef WEIR_HTTP_WINDOW_H
#define WEIR_HTTP_WINDOW_H

#include "weir/base/types.h"

#ifdef __bpf__
#define WEIR_ROLLED _Pragma("clang loop unroll(disable)") /* before a loop: verifiers are shown one round of it */
#define WEIR_UNROLLED \
	_Pragma("clang loop unroll(full)") /* before one of few rounds, whose numbers are constants then */
#else
#define WEIR_ROLLED
#define WEIR_UNROLLED
#endif

#define WEIR_WINDOW 256	    /* bytes of payload looked at at a time; a power of 2 */
#define WEIR_WINDOW_WORDS 8 /* that may be read one after the other from any place of it */

/*
 * Where the reading stands: a field line that is whole in a window has a name of common bytes, then text to its CRLF. It is kept in memory:
 * what verifiers know of a variable keeps apart the ways that lead to a place; of memory they know nothing, and go on from there once.
 */
struct weir_line {
	__u64 at;    /* index of its first byte, or of the next one to read, */
	__u64 colon; /* of the colon behind its name, */
	__u64 end;   /* and of its CR */
};

/* What stands in `bytes` from `length` on is anything. */
struct weir_window {
	__u8 bytes[WEIR_WINDOW + 8 * WEIR_WINDOW_WORDS] __attribute__((aligned(8)));
	__u32 at; /* payload offset of bytes[0] */
	__u32 length;
	struct weir_line line; /* that is being read */
};

/* What stands from index `at` on: words up to WEIR_WINDOW_WORDS. */
WEIR_INLINE const __u8 *weir_window_from(const struct weir_window *w, __u32 at)
{
	return &w->bytes[at & (WEIR_WINDOW - 1)];
}

/* Eight bytes, the first one lowest. */
WEIR_INLINE __u64 weir_window_word_of(const __u8 *bytes)
{
	__u64 word;

#ifdef __bpf__
	word = *(const __u64 *)bytes; /* memcpy() would be eight loads */
#else
	__builtin_memcpy(&word, bytes, sizeof(word));
#endif
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	return word;
}

/* The same from index `at` on. */
WEIR_INLINE __u64 weir_window_word(const struct weir_window *w, __u32 at)
{
	return weir_window_word_of(weir_window_from(w, at));
}

#endif
