/* SPDX-License-Identifier: GPL-2.0 */
/* Times in ns, counted in steps of at most 1/64 of their size: exact below HISTOGRAM_EXACT, with room for hours. */
#ifndef WEIR_TESTS_BENCH_HISTOGRAM_H
#define WEIR_TESTS_BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_EXACT 128UL
#define HISTOGRAM_HALF (HISTOGRAM_EXACT / 2) /* steps of each power of two above */
#define HISTOGRAM_PLACES (HISTOGRAM_HALF * 40)

struct histogram {
	uint64_t n;
	uint64_t places[HISTOGRAM_PLACES];
};

static inline void histogram_add(struct histogram *h, uint64_t ns)
{
	unsigned int shift = ns < HISTOGRAM_EXACT ? 0 : 57 - __builtin_clzll(ns);
	uint64_t place = shift * HISTOGRAM_HALF + (ns >> shift);

	h->places[place < HISTOGRAM_PLACES ? place : HISTOGRAM_PLACES - 1]++;
	h->n++;
}

/* The time that a share (0 to 1) of them did not exceed, to a step; 0 when there are none. */
static inline uint64_t histogram_at(const struct histogram *h, double share)
{
	uint64_t wanted = h->n * share, seen = 0, place, shift;

	for (place = 0; place < HISTOGRAM_PLACES - 1; place++) {
		seen += h->places[place];
		if (seen && seen >= wanted)
			break;
	}
	if (!h->n)
		return 0;
	shift = place < HISTOGRAM_EXACT ? 0 : place / HISTOGRAM_HALF - 1;
	return (place - shift * HISTOGRAM_HALF) << shift;
}

#endif
