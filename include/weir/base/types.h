/* SPDX-License-Identifier: GPL-2.0 */
/* Fixed-width names and small helpers that mean the same in BPF programs and on the host. */
#ifndef WEIR_BASE_TYPES_H
#define WEIR_BASE_TYPES_H

#ifdef __bpf__
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
typedef _Bool weir_bool;
#define WEIR_BARRIER(n) barrier_var(n) /* what is compared is what is used: the compiler may not take an older copy */
#else
#define WEIR_BARRIER(n) ((void)0)
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#endif

/*
 * Read from memory each time. What a compiler keeps in a register of an earlier test is a different state to a verifier
 * for each way that test went, and it follows all that comes after once for each of them.
 */
#define WEIR_FRESH(x) (*(const volatile __typeof__(x) *)&(x))
/*
 * What mostly is so. Compilers put what is not behind everything else: of a program that runs seldom no cache has the instructions, and
 * each 64 bytes of them that are run take as long to come as ten of them to execute.
 */
#define WEIR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WEIR_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* A function that most requests do not need: what they do would be spread over more memory if it were a part of its caller. */
#define WEIR_SELDOM static __attribute__((noinline))
/* The same for all of memory: between two steps, so that what the first one found out is not followed through the second. */
#define WEIR_FRESH_ALL() asm volatile("" ::: "memory")

/*
 * Everything that decides is inlined in BPF: it runs under a spin lock, where calls are not allowed on every kernel. On the
 * host the compiler does as it likes: it takes ten times as long to compile some tests when it must inline all of it.
 */
#ifdef __bpf__
#define WEIR_INLINE static inline __attribute__((always_inline))
#else
#define WEIR_INLINE static inline
#endif

/* A layout that both sides rely on is asserted on both sides: this header is compiled for each. */
#define WEIR_ASSERT_SIZE(type, bytes) \
	_Static_assert(sizeof(type) == (bytes), #type " changed its size: raise WEIR_ABI_VERSION")
#define WEIR_ASSERT_OFFSET(type, member, bytes) \
	_Static_assert(__builtin_offsetof(type, member) == (bytes), #type "." #member " moved: raise WEIR_ABI_VERSION")

#define WEIR_NS_PER_S 1000000000ULL

#endif
