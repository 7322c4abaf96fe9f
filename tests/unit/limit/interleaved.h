/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every way in which actors can come between each other: a coroutine each, which hands over where it calls interleaved_turn(),
 * and a scenario that is played for each order of those turns. What comes of two orders that lead to the same state is the same:
 * from there on only the first of them is played. A state is what is shared, and what each actor has seen of it so far.
 */
#ifndef WEIR_TESTS_UNIT_INTERLEAVED_H
#define WEIR_TESTS_UNIT_INTERLEAVED_H

#include <stddef.h>

#define INTERLEAVED_ACTORS 3

struct interleaved {
	void (*begin)(void);	/* everything as it was */
	void (*act)(int actor); /* from 0 up */
	void (*end)(void);	/* what came of it is as it should be */
	int actors;
	const void *shared; /* whatever one of them writes and another one reads, in words of 8 bytes */
	size_t shared_bytes;
};

/* In act(): someone else's turn may come here. Elsewhere nothing happens. */
void interleaved_turn(void);

/* In act(), whenever something shared has been read: what it was. All that the actor does next depends on nothing else. */
void interleaved_saw(unsigned long value);

/* One actor after the other, in each order. */
void interleaved_orders(const struct interleaved *scenario);

/* Turn by turn, in each order. Returns how many states there were. */
unsigned long interleaved_all(const struct interleaved *scenario);

#endif
