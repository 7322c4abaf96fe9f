/* SPDX-License-Identifier: GPL-2.0 */
/* A part of a stream, in which whole lines of a head can be read where they stand (line.h). */
#ifndef WEIR_HTTP_WINDOW_H
#define WEIR_HTTP_WINDOW_H

#include "weir/base/types.h"

#ifdef __bpf__
#define WEIR_ROLLED _Pragma("clang loop unroll(disable)") /* before a loop: verifiers are shown one round of it */
#else
#define WEIR_ROLLED
#endif

#define WEIR_WINDOW 256 /* bytes of payload looked at at a time; a power of 2 */

/* What stands in `bytes` from `length` on is anything. */
struct weir_window {
	__u8 bytes[WEIR_WINDOW + 8]
		__attribute__((aligned(8))); /* a word may be read from any place of the first ones */
	__u32 at;			     /* payload offset of bytes[0] */
	__u32 length;
};

/* The eight bytes from index `at` on, the first one lowest. */
WEIR_INLINE __u64 weir_window_word(const struct weir_window *w, __u32 at)
{
	const __u8 *bytes = &w->bytes[at & (WEIR_WINDOW - 1)];
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

#endif
