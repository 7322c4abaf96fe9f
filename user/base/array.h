/* SPDX-License-Identifier: GPL-2.0 */
/* Arrays that grow one by one: they double when they are full, which they are at every power of two. */
#ifndef WEIR_USER_BASE_ARRAY_H
#define WEIR_USER_BASE_ARRAY_H

#include <stdlib.h>
#include <string.h>

/* Items of `size` bytes, n of them in use: room for one more, all zero. NULL without memory; the array is then as before. */
static inline void *array_grow(void *items, size_t n, size_t size)
{
	if ((n & (n - 1)) == 0)
		items = reallocarray(items, n ? n * 2 : 1, size);
	if (items)
		memset((char *)items + n * size, 0, size);
	return items;
}

/* A copy of n items, to which array_grow() may add. NULL without memory, or of none. */
static inline void *array_copy(const void *items, size_t n, size_t size)
{
	size_t room = 1;
	void *copy;

	while (room < n)
		room *= 2;
	copy = n ? reallocarray(NULL, room, size) : NULL;
	return copy ? memcpy(copy, items, n * size) : NULL;
}

/* Takes item i out of n; those behind it move up. */
static inline void array_cut(void *items, size_t n, size_t size, size_t i)
{
	char *at = (char *)items + i * size;

	memmove(at, at + size, (n - i - 1) * size);
}

/* Puts an item back that was taken out of n + 1, where it was. */
static inline void array_uncut(void *items, size_t n, size_t size, size_t i, const void *item)
{
	char *at = (char *)items + i * size;

	memmove(at + size, at, (n - i) * size);
	memcpy(at, item, size);
}

#endif
