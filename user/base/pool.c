/* SPDX-License-Identifier: GPL-2.0 */
#include "base/pool.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)64 << 10)
#define ALIGNMENT alignof(max_align_t)

struct pool_block {
	struct pool_block *next;
	size_t used, room;
	alignas(max_align_t) char bytes[];
};

void pool_clear(struct pool *pool)
{
	while (pool->blocks) {
		struct pool_block *block = pool->blocks;

		pool->blocks = block->next;
		free(block);
	}
}

static struct pool_block *add_block(struct pool *pool, size_t least)
{
	size_t room = least > BLOCK_BYTES ? least : BLOCK_BYTES;
	struct pool_block *block = malloc(sizeof(*block) + room);

	if (!block)
		return NULL;
	*block = (struct pool_block){ .next = pool->blocks, .room = room };
	pool->blocks = block;
	return block;
}

static void *take(struct pool *pool, size_t size, size_t alignment)
{
	struct pool_block *block = pool->blocks;
	size_t at = block ? (block->used + alignment - 1) & ~(alignment - 1) : 0;

	if (!block || at > block->room || size > block->room - at) {
		block = add_block(pool, size);
		at = 0;
	}
	if (!block)
		return NULL;
	block->used = at + size;
	return block->bytes + at;
}

void *pool_take(struct pool *pool, size_t size)
{
	void *taken = take(pool, size, ALIGNMENT);

	return taken ? memset(taken, 0, size) : NULL;
}

char *pool_text(struct pool *pool, const char *text, size_t length)
{
	char *copy = take(pool, length + 1, 1);

	if (!copy)
		return NULL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return copy;
}
