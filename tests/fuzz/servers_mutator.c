/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How libFuzzer makes inputs for fuzz_servers: half of them by its own means, and half as commands that are near a bound: as
 * many Throttles as an agent has servers, one less, one more, of servers that are new, attached, or both. Flipped bytes alone
 * do not come to a full table and a certain name behind it.
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../random.h"
#include "weir/abi/abi.h"

#define COMMANDS 3
#define RUNS 4
#define INPUT_MAX (1 + COMMANDS * (3 + RUNS * 3))

/* As fuzz_servers.c reads them. */
#define THROTTLE 0
#define WITH_LISTEN 4

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed);

struct output {
	uint8_t bytes[INPUT_MAX];
	size_t size;
};

static void put(struct output *out, unsigned int byte)
{
	out->bytes[out->size++] = byte;
}

/* A run of Throttles mostly, as long as the servers there is room for, or one. */
static void put_run(struct output *out, struct random *r, unsigned int attached, unsigned int *fresh)
{
	static const unsigned int spare[] = { 0, 1, WEIR_MAX_SERVERS };
	bool known = random_chance(r, 300);
	unsigned int kind = random_chance(r, 700) ? THROTTLE | WITH_LISTEN : random_below(r, 256);
	unsigned int n = random_chance(r, 400) ?
				 1 :
				 WEIR_MAX_SERVERS + spare[random_below(r, 3)] - (random_chance(r, 300) ? attached : 0);

	put(out, kind);
	put(out, known ? random_below(r, attached + 1) : *fresh);
	put(out, n);
	*fresh += known ? 0 : n;
}

/* attached: servers from s0 on, so that the names behind them are new. */
static void put_command(struct output *out, struct random *r, unsigned int attached)
{
	unsigned int runs = random_between(r, 1, RUNS), fresh = attached;

	put(out, random_below(r, random_chance(r, 700) ? 8 : 256) & ~8U);
	put(out, runs);
	for (unsigned int i = 0; i < runs; i++)
		put_run(out, r, attached, &fresh);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned int seed)
{
	struct random r = { seed };
	unsigned int attached, commands;
	struct output out = { .size = 0 };

	if (max < INPUT_MAX || random_chance(&r, 500))
		return LLVMFuzzerMutate(data, size, max);
	attached = random_below(&r, 4);
	commands = random_between(&r, 1, COMMANDS);
	put(&out, attached);
	for (unsigned int i = 0; i < commands; i++)
		put_command(&out, &r, attached);
	memcpy(data, out.bytes, out.size);
	return out.size;
}
