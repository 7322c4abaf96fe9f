/* SPDX-License-Identifier: GPL-2.0 */
#include "base/large_pages.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LARGE_PAGE ((uintptr_t)2 << 20)
#define MAPPED_FROM (32 << 20) /* the most that mallopt() takes; what is smaller comes out of the heap */

/* The heap grows by the room at once, and keeps it when the room is given back. */
void large_pages_expect(size_t bytes)
{
	size_t size = bytes < MAPPED_FROM / 2 ? bytes : MAPPED_FROM / 2;
	uintptr_t begin, end;
	void *room;

	if (!mallopt(M_MMAP_THRESHOLD, MAPPED_FROM) || !mallopt(M_TRIM_THRESHOLD, 2 * MAPPED_FROM))
		return;
	room = malloc(size);
	if (!room)
		return;
	begin = ((uintptr_t)room + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
	end = ((uintptr_t)room + size) & ~(LARGE_PAGE - 1);
	if (begin < end)
		madvise((void *)begin, end - begin, MADV_HUGEPAGE);
	free(room);
}
