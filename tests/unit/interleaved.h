/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every way in which actors can come between each other: a coroutine each, which hands over where it calls interleaved_turn(),
 * and a scenario that is played once for each order of those turns.
 */
#ifndef WEIR_TESTS_UNIT_INTERLEAVED_H
#define WEIR_TESTS_UNIT_INTERLEAVED_H

#define INTERLEAVED_ACTORS 3

struct interleaved {
	void (*begin)(void);	/* everything as it was */
	void (*act)(int actor); /* from 0 up */
	void (*end)(void);
	int actors;
};

/* In act(): someone else's turn may come here. Elsewhere nothing happens. */
void interleaved_turn(void);

/* One actor after the other, in each order. */
void interleaved_orders(const struct interleaved *scenario);

/* Turn by turn, in each order. Returns how many there were. */
unsigned long interleaved_all(const struct interleaved *scenario);

#endif
