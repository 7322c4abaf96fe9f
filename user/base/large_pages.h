/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory in large pages, where the kernel has them for who asks: one page fault for 2 MiB instead of 512. For a process that reads
 * something large and ends soon; an agent, which lives on, is better off with small ones.
 */
#ifndef WEIR_USER_BASE_LARGE_PAGES_H
#define WEIR_USER_BASE_LARGE_PAGES_H

#include <stddef.h>

/* What malloc() gives next, about so many bytes, will be needed until the end. */
void large_pages_expect(size_t bytes);

#endif
