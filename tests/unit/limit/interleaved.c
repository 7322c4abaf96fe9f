/* SPDX-License-Identifier: GPL-2.0 */
#include "interleaved.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define TURNS_MAX 256
#define STACK_BYTES 65536
#define STATES_MAX (1U << 21) /* a power of two */
#define NOBODY (-1)

static struct {
	ucontext_t context;
	bool done;
	uint64_t seen; /* a sum of all that it has seen, in its order */
	char stack[STACK_BYTES];
} actors[INTERLEAVED_ACTORS];

static const struct interleaved *played;
static ucontext_t scheduler;
static int running = NOBODY;

/* Who had its turn, and who else could have had it. */
static struct {
	int actor;
	unsigned int ready;
} turns[TURNS_MAX];
static int n_turns, given; /* the first of them are given */

/* --- states, by sums of 64 bits: two have the same one once in 2^64 */

static uint64_t states[STATES_MAX]; /* 0: none */
static unsigned long n_states;

static uint64_t mixed(uint64_t sum, uint64_t value)
{
	sum = ((sum + 0x9e3779b97f4a7c15ULL) ^ value) * 0xbf58476d1ce4e5b9ULL;
	return sum ^ sum >> 29;
}

static uint64_t state_now(void)
{
	const uint64_t *shared = played->shared;
	uint64_t sum = 1;

	for (size_t i = 0; i < played->shared_bytes / sizeof(*shared); i++)
		sum = mixed(sum, shared[i]);
	for (int i = 0; i < played->actors; i++)
		sum = mixed(mixed(sum, actors[i].seen), actors[i].done);
	return sum ? sum : 1;
}

/* False: it is known. */
static bool state_is_new(void)
{
	uint64_t state = state_now();
	size_t at = state % STATES_MAX;

	for (; states[at]; at = (at + 1) % STATES_MAX)
		if (states[at] == state)
			return false;
	if (++n_states > STATES_MAX / 2)
		abort();
	states[at] = state;
	return true;
}

/* --- turns */

void interleaved_saw(unsigned long value)
{
	if (running != NOBODY)
		actors[running].seen = mixed(actors[running].seen, value);
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
	actors[actor].seen = 0;
}

static unsigned int ready(void)
{
	unsigned int mask = 0;

	for (int i = 0; i < played->actors; i++)
		mask |= actors[i].done ? 0 : 1U << i;
	return mask;
}

/* Whose turn comes next: a given one's, or that of the first who can have it. NOBODY: all are done, or the state is known. */
static int turn_next(void)
{
	unsigned int mask = ready();

	if (!mask || (n_turns >= given && !state_is_new()))
		return NOBODY;
	if (n_turns == TURNS_MAX)
		abort();
	turns[n_turns].ready = mask;
	if (n_turns >= given)
		turns[n_turns].actor = __builtin_ctz(mask);
	return turns[n_turns++].actor;
}

/* A switch of contexts is a system call: who has the next turn, too, goes on without one. */
void interleaved_turn(void)
{
	int before = running;

	if (before == NOBODY)
		return;
	interleaved_saw(0);
	running = turn_next();
	if (running != before)
		swapcontext(&actors[before].context, running == NOBODY ? &scheduler : &actors[running].context);
}

/* The given turns, and then others to the end, or to a state that is known. */
static void play(void)
{
	played->begin();
	for (int i = 0; i < played->actors; i++)
		actor_make(i);
	n_turns = 0;
	while ((running = turn_next()) != NOBODY)
		swapcontext(&scheduler, &actors[running].context);
	if (!ready())
		played->end();
}

/* The last turn that somebody later in the row could have had goes to him. False: none is left. */
static bool turns_give(void)
{
	for (int turn = n_turns - 1; turn >= 0; turn--) {
		unsigned int later = turns[turn].ready & ~0U << (turns[turn].actor + 1);

		if (!later)
			continue;
		turns[turn].actor = __builtin_ctz(later);
		given = turn + 1;
		return true;
	}
	return false;
}

unsigned long interleaved_all(const struct interleaved *scenario)
{
	played = scenario;
	memset(states, 0, sizeof(states));
	n_states = 0;
	given = 0;
	do {
		play();
	} while (turns_give());
	return n_states;
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
