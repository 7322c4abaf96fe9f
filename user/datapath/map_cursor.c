/* SPDX-License-Identifier: GPL-2.0 */
#include "datapath/map_cursor.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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

int map_drop_keys(int fd, const void *keys, size_t n, __u32 key_size)
{
	const char *key = keys;

	while (n) {
		__u32 dropped = n;
		int ret = bpf_map_delete_batch(fd, key, &dropped, NULL);

		if (ret != -ENOENT)
			return ret;
		dropped++; /* the one at which it stopped is not there */
		key += (size_t)dropped * key_size;
		n -= dropped;
	}
	return 0;
}

/* Moves the keys that go to the front. Returns how many. */
static __u32 pick(struct map_cursor *c, map_test *goes, const void *arg)
{
	char *keys = c->keys;
	__u32 n = 0;

	for (__u32 i = 0; i < c->n; i++) {
		const char *key = keys + (size_t)i * c->key_size;

		if (goes(key, (char *)c->values + (size_t)i * c->value_size, arg))
			memmove(keys + (size_t)n++ * c->key_size, key, c->key_size);
	}
	return n;
}

int map_drop_if(int fd, __u32 key_size, __u32 value_size, map_test *goes, const void *arg)
{
	CLEANUP_CURSOR struct map_cursor c = {};
	int ret = map_cursor_open(&c, fd, key_size, value_size);

	while (!ret && (ret = map_cursor_next(&c)) > 0)
		ret = map_drop_keys(fd, c.keys, pick(&c, goes, arg), key_size);
	return ret;
}

/* All are read before any is deleted: a trie cannot be read on from a key that is gone. */
int map_drop_of_trie_if(int fd, __u32 key_size, __u32 value_size, map_test *goes, const void *arg)
{
	CLEANUP_CURSOR struct map_cursor c = {};
	CLEANUP_FREE char *gone = NULL;
	size_t n = 0;
	int ret = map_cursor_open(&c, fd, key_size, value_size);

	while (!ret && (ret = map_cursor_next(&c)) > 0) {
		__u32 picked = pick(&c, goes, arg);
		char *grown = reallocarray(gone, n + picked + 1, key_size);

		if (!grown)
			return -ENOMEM;
		gone = grown;
		memcpy(gone + n * key_size, c.keys, (size_t)picked * key_size);
		n += picked;
		ret = 0;
	}
	return ret ?: map_drop_keys(fd, gone, n, key_size);
}
