/* SPDX-License-Identifier: GPL-2.0 */
/* Memory for very many small things that go all together: one behind the other in large blocks, which is a pointer's move for each. */
#ifndef WEIR_USER_BASE_POOL_H
#define WEIR_USER_BASE_POOL_H

#include <stddef.h>

struct pool_block;

/* All zero to begin with. */
struct pool {
	struct pool_block *blocks; /* the one in use is the first */
};

void pool_clear(struct pool *pool);
#define CLEANUP_POOL __attribute__((cleanup(pool_clear)))
/* All zero, aligned for anything; NULL without memory. */
void *pool_take(struct pool *pool, size_t size);
/* A copy with a NUL behind it; NULL without memory. */
char *pool_text(struct pool *pool, const char *text, size_t length);

#endif
