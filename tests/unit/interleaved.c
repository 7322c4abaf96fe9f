/* SPDX-License-Identifier: GPL-2.0 */
#include "interleaved.h"

#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>

#define TURNS_MAX 256
#define STACK_BYTES 65536

static struct {
	ucontext_t context;
	bool done;
	char stack[STACK_BYTES];
} actors[INTERLEAVED_ACTORS];

static const struct interleaved *played;
static ucontext_t scheduler;
static int running = -1;

/* Who had its turn, and who else could have had it. */
static struct {
	int actor;
	unsigned int ready;
} turns[TURNS_MAX];

void interleaved_turn(void)
{
	if (running >= 0)
		swapcontext(&actors[running].context, &scheduler);
}

static void act(void)
{
	played->act(running);
	actors[running].done = true;
}

static void actor_make(int actor)
{
	ucontext_t *context = &actors[actor].context;

	getcontext(context);
	context->uc_stack.ss_sp = actors[actor].stack;
	context->uc_stack.ss_size = STACK_BYTES;
	context->uc_link = &scheduler;
	makecontext(context, act, 0);
	actors[actor].done = false;
}

static unsigned int ready(void)
{
	unsigned int mask = 0;

	for (int i = 0; i < played->actors; i++)
		mask |= actors[i].done ? 0 : 1U << i;
	return mask;
}

/* The first `given` turns as they are, the others to the first who can have them. Returns how many there were. */
static int play(int given)
{
	int turn = 0;

	played->begin();
	for (int i = 0; i < played->actors; i++)
		actor_make(i);
	for (unsigned int mask; (mask = ready()); turn++) {
		if (turn == TURNS_MAX)
			abort();
		turns[turn].ready = mask;
		if (turn >= given)
			turns[turn].actor = __builtin_ctz(mask);
		running = turns[turn].actor;
		swapcontext(&scheduler, &actors[running].context);
		running = -1;
	}
	played->end();
	return turn;
}

/* The last turn that somebody later in the row could have had goes to him. Returns how many turns are given then; 0: none is left. */
static int turns_next(int count)
{
	for (int turn = count - 1; turn >= 0; turn--) {
		unsigned int later = turns[turn].ready & ~0U << (turns[turn].actor + 1);

		if (!later)
			continue;
		turns[turn].actor = __builtin_ctz(later);
		return turn + 1;
	}
	return 0;
}

unsigned long interleaved_all(const struct interleaved *scenario)
{
	unsigned long count = 0;
	int given = 0;

	played = scenario;
	do {
		given = turns_next(play(given));
		count++;
	} while (given);
	return count;
}

static void orders_from(const struct interleaved *scenario, int *order, int placed)
{
	if (placed == scenario->actors) {
		scenario->begin();
		for (int i = 0; i < placed; i++)
			scenario->act(order[i]);
		scenario->end();
		return;
	}
	for (int actor = 0; actor < scenario->actors; actor++) {
		bool is_placed = false;

		for (int i = 0; i < placed; i++)
			is_placed |= order[i] == actor;
		if (is_placed)
			continue;
		order[placed] = actor;
		orders_from(scenario, order, placed + 1);
	}
}

void interleaved_orders(const struct interleaved *scenario)
{
	int order[INTERLEAVED_ACTORS];

	orders_from(scenario, order, 0);
}
