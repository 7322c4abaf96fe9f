/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Included before what is tested: each of its reads and swaps is a step, before which others may come (interleaved.h). Whoever includes it says
 * in step() which reads are.
 */
#ifndef WEIR_TESTS_UNIT_INTERLEAVED_STEPS_H
#define WEIR_TESTS_UNIT_INTERLEAVED_STEPS_H

#include "interleaved.h"
#include "weir/base/types.h"

static void step(const void *read);
#undef WEIR_FRESH
#define WEIR_FRESH(x)                                                              \
	({                                                                         \
		step(&(x));                                                        \
		const __typeof__(x) read_ = *(const volatile __typeof__(x) *)&(x); \
		interleaved_saw(read_);                                            \
		read_;                                                             \
	})
#define __sync_val_compare_and_swap(place, before, after)                                        \
	({                                                                                       \
		__typeof__(*(place)) there_is = before;                                          \
		interleaved_turn();                                                              \
		__atomic_compare_exchange_n(place, &there_is, after, false, 5 /* SEQ_CST */, 5); \
		interleaved_saw(there_is);                                                       \
		there_is;                                                                        \
	})

#endif
