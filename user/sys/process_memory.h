/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of a process that may be hostile. What it has mapped of files is not read: a read waits until the file system has the
 * page, and that may be one of the process's own, which never answers (FUSE). Not even SIGKILL would end the reader then.
 */
#ifndef WEIR_USER_SYS_PROCESS_MEMORY_H
#define WEIR_USER_SYS_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

#include "weir/base/types.h"

struct process_memory {
	int memory, pages;
};

/* 0, -ENOENT when there is no such process, or another negative errno. */
int process_memory_open(__u32 process, struct process_memory *out);
void process_memory_close(struct process_memory *memory);

/* 0, or -EFAULT: nothing is there, or a file. */
int process_memory_read(const struct process_memory *memory, __u64 address, void *to, size_t size);

#define PROCESS_PLACE_SIZE 16

struct process_place {
	__u64 address;
	bool there; /* else its bytes are not set */
	__u8 bytes[PROCESS_PLACE_SIZE];
};

/*
 * Reads many places at once, and waits for at most so many milliseconds: a process locks its own memory while it maps something, and its
 * readers wait. -ETIMEDOUT, or -EBUSY as long as an earlier reader waits (aside.h); -ENOENT: there is no such process; or another negative
 * errno.
 */
int process_memory_read_places(__u32 process, struct process_place *places, size_t n, __u32 ms);

#endif
