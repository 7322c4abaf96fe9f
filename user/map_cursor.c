/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>

#include "datapath_private.h"

#define CURSOR_ROOM 1024 /* entries in a batch, to begin with */

static int cursor_reserve(struct map_cursor *c, __u32 room)
{
	void *keys = reallocarray(c->keys, room, c->key_size), *values;

	if (!keys)
		return -ENOMEM;
	c->keys = keys;
	values = reallocarray(c->values, room, c->value_size);
	if (!values)
		return -ENOMEM;
	c->values = values;
	c->room = room;
	return 0;
}

int map_cursor_open(struct map_cursor *c, int fd, __u32 key_size, __u32 value_size)
{
	*c = (struct map_cursor){ .fd = fd, .key_size = key_size, .value_size = value_size };
	/* A hash leaves a bucket's number in it, a trie a key. */
	c->token = calloc(1, key_size + sizeof(__u32));
	return c->token ? cursor_reserve(c, CURSOR_ROOM) : -ENOMEM;
}

int map_cursor_next(struct map_cursor *c)
{
	int ret;

	if (c->ended)
		return 0;
	do {
		c->n = c->room;
		ret = bpf_map_lookup_batch(c->fd, c->begun ? c->token : NULL, c->token, c->keys, c->values, &c->n,
					   NULL);
		/* One bucket of the hash holds more than fits. */
		if (ret == -ENOSPC)
			ret = cursor_reserve(c, c->room * 2) ?: -EAGAIN;
	} while (ret == -EAGAIN);
	c->begun = true;
	if (ret == -ENOENT) {
		c->ended = true;
		ret = 0;
	}
	return ret ?: 1;
}

void map_cursor_close(struct map_cursor *c)
{
	free(c->keys);
	free(c->values);
	free(c->token);
}
