/* SPDX-License-Identifier: GPL-2.0 */
/* A seeded stream of numbers: splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). */
#ifndef WEIR_TESTS_RANDOM_H
#define WEIR_TESTS_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
	uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* 0 .. n-1; 0 for n = 0 */
static inline uint64_t random_below(struct random *r, uint64_t n)
{
	return n ? random_next(r) % n : 0;
}

/* both ends included */
static inline uint64_t random_between(struct random *r, uint64_t low, uint64_t high)
{
	return low + random_below(r, high - low + 1);
}

static inline bool random_chance(struct random *r, unsigned int per_mille)
{
	return per_mille && random_below(r, 1000) < per_mille;
}

#endif
