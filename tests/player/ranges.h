/* SPDX-License-Identifier: GPL-2.0 */
/* A small sorted set of disjoint half-open ranges of stream offsets. */
#ifndef PLAYER_RANGES_H
#define PLAYER_RANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RANGES_MAX 32

struct range {
	uint64_t start, end;
};

struct ranges {
	unsigned int n;
	struct range at[RANGES_MAX];
};

/* Joins what overlaps or touches. When the set is full the range is left out: false. */
static inline bool ranges_add(struct ranges *s, uint64_t start, uint64_t end)
{
	unsigned int first = 0, last;

	while (first < s->n && s->at[first].end < start)
		first++;
	for (last = first; last < s->n && s->at[last].start <= end; last++) {
		start = s->at[last].start < start ? s->at[last].start : start;
		end = s->at[last].end > end ? s->at[last].end : end;
	}
	if (first == last && s->n == RANGES_MAX)
		return false;
	memmove(&s->at[first + 1], &s->at[last], (s->n - last) * sizeof(s->at[0]));
	s->n -= last - first;
	s->n++;
	s->at[first] = (struct range){ start, end };
	return true;
}

static inline void ranges_drop_below(struct ranges *s, uint64_t limit)
{
	unsigned int gone = 0;

	while (gone < s->n && s->at[gone].end <= limit)
		gone++;
	memmove(s->at, &s->at[gone], (s->n - gone) * sizeof(s->at[0]));
	s->n -= gone;
	if (s->n && s->at[0].start < limit)
		s->at[0].start = limit;
}

/* Is all of [start, end) in the set? */
static inline bool ranges_hold(const struct ranges *s, uint64_t start, uint64_t end)
{
	for (unsigned int i = 0; i < s->n; i++) {
		if (s->at[i].start <= start && end <= s->at[i].end)
			return true;
	}
	return false;
}

#endif
