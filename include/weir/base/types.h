/* SPDX-License-Identifier: GPL-2.0 */
/* Fixed-width names and small helpers that mean the same in BPF programs and on the host. */
#ifndef WEIR_BASE_TYPES_H
#define WEIR_BASE_TYPES_H

#ifdef __bpf__
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
typedef _Bool weir_bool;
#define WEIR_BARRIER(n) \
	barrier_var(n) /* what was checked is what is used: the compiler may not go back to an older copy */
#else
#define WEIR_BARRIER(n) ((void)0)
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#endif

/*
 * Reads x from memory each time. A compiler would keep the result of an earlier test in a register. To the verifier that register is
 * another state for each way the test went, and it would follow all later code once for each of these states.
 */
#define WEIR_FRESH(x) (*(const volatile __typeof__(x) *)&(x))
/* The same for all of memory. Put between two steps, it keeps the verifier from following what the first found out through the second. */
#define WEIR_FRESH_ALL() asm volatile("" ::: "memory")

/*
 * What is mostly so. In BPF programs the other case stands behind everything else (bpf/layout.awk). That matters in programs that run
 * seldom: no cache has their instructions, and the CPU does not remember which jumps are taken.
 */
#define WEIR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEIR_UNLIKELY(x) __builtin_expect(!!(x), 0)
/*
 * x; seldom y: there the choice is a branch to code that stands aside. A compiler would make a jump of it over the other choice, which is
 * taken where x is chosen.
 */
#define WEIR_MOSTLY(x, seldom, y)                 \
	({                                        \
		__typeof__((x) + 0) chosen = (x); \
		if (WEIR_UNLIKELY(seldom)) {      \
			chosen = (y);             \
			WEIR_BARRIER(chosen);     \
		}                                 \
		chosen;                           \
	})
/* A function that few requests need. As a part of its caller it would spread the code that all of them need over more memory. */
#define WEIR_SELDOM static __attribute__((noinline))

/*
 * Everything that decides is inlined in BPF: it runs under a spin lock, where calls are not allowed on every kernel. On the
 * host the compiler does as it likes: it takes ten times as long to compile some tests when it must inline all of it.
 */
#ifdef __bpf__
#define WEIR_INLINE static inline __attribute__((always_inline))
#else
#define WEIR_INLINE static inline
#endif

/* 0: they are the same; else 1. Without a jump, which BPF has for each comparison. */
WEIR_INLINE __u64 weir_differ(__u64 a, __u64 b)
{
	__u64 difference = a ^ b, negative = -difference;

	WEIR_BARRIER(negative);
	return (difference | negative) >> 63;
}

/* A layout that both sides rely on is asserted on both sides: this header is compiled for each. */
#define WEIR_ASSERT_SIZE(type, bytes) \
	_Static_assert(sizeof(type) == (bytes), #type " changed its size: raise WEIR_ABI_VERSION")
#define WEIR_ASSERT_OFFSET(type, member, bytes) \
	_Static_assert(__builtin_offsetof(type, member) == (bytes), #type "." #member " moved: raise WEIR_ABI_VERSION")

#define WEIR_NS_PER_S 1000000000ULL

#endif
