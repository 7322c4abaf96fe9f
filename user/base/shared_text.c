/* SPDX-License-Identifier: GPL-2.0 */
#include "base/shared_text.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct shared {
	atomic_uint references;
	char text[];
};

static struct shared *whole(const char *shared)
{
	return (struct shared *)(shared - offsetof(struct shared, text));
}

const char *shared_text(const char *text)
{
	size_t size = strlen(text) + 1;
	struct shared *made = malloc(sizeof(*made) + size);

	if (!made)
		return NULL;
	atomic_init(&made->references, 1);
	return memcpy(made->text, text, size);
}

const char *shared_text_again(const char *shared)
{
	atomic_fetch_add_explicit(&whole(shared)->references, 1, memory_order_relaxed);
	return shared;
}

void shared_text_free(const char *shared)
{
	if (shared && atomic_fetch_sub_explicit(&whole(shared)->references, 1, memory_order_acq_rel) == 1)
		free(whole(shared));
}
