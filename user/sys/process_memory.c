/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/process_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sys/aside.h"
#include "sys/privilege.h"

/* Of a page, in /proc/PID/pagemap. */
#define PAGE_OF_FILE (1ULL << 61) /* or shared */
#define PAGE_SWAPPED (1ULL << 62)
#define PAGE_PRESENT (1ULL << 63)

static int open_of(__u32 process, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", process, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int process_memory_open(__u32 process, struct process_memory *out)
{
	CLEANUP_PRIVILEGED struct privileged find = privilege_begin(PRIVILEGE_FIND);
	CLEANUP_CLOSE int memory = open_of(process, "mem");
	int pages;

	if (memory < 0)
		return memory;
	pages = open_of(process, "pagemap");
	if (pages < 0) /* some kernels have none */
		return pages == -ENOENT ? -EOPNOTSUPP : pages;
	*out = (struct process_memory){ cleanup_take(&memory), pages };
	return 0;
}

void process_memory_close(struct process_memory *memory)
{
	cleanup_close(&memory->memory);
	cleanup_close(&memory->pages);
}

static bool is_own(const struct process_memory *memory, __u64 page)
{
	__u64 entry;

	return pread(memory->pages, &entry, sizeof(entry), (off_t)(page * sizeof(entry))) == sizeof(entry) &&
	       (entry & (PAGE_PRESENT | PAGE_SWAPPED)) && !(entry & PAGE_OF_FILE);
}

int process_memory_read(const struct process_memory *memory, __u64 address, void *to, size_t size)
{
	const __u64 page_size = sysconf(_SC_PAGESIZE), last = address + size - 1;

	if (last < address)
		return -EFAULT;
	for (__u64 page = address / page_size; page <= last / page_size; page++)
		if (!is_own(memory, page))
			return -EFAULT;
	return pread(memory->memory, to, size, (off_t)address) == (ssize_t)size ? 0 : -EFAULT;
}

struct reading {
	__u32 process;
	int ret;
	size_t n;
	struct process_place places[];
};

static void read_places(void *arg)
{
	struct reading *reading = arg;
	struct process_memory memory;

	reading->ret = process_memory_open(reading->process, &memory);
	if (reading->ret)
		return;
	for (size_t i = 0; i < reading->n; i++) {
		struct process_place *place = &reading->places[i];

		place->there = !process_memory_read(&memory, place->address, place->bytes, sizeof(place->bytes));
	}
	process_memory_close(&memory);
}

int process_memory_read_places(__u32 process, struct process_place *places, size_t n, __u32 ms)
{
	struct reading *reading = malloc(sizeof(*reading) + n * sizeof(*places));
	int ret;

	if (!reading)
		return -ENOMEM;
	*reading = (struct reading){ .process = process, .n = n };
	for (size_t i = 0; i < n; i++)
		reading->places[i] = places[i];
	ret = aside_run(process, read_places, free, reading, ms);
	if (ret)
		return ret;
	ret = reading->ret;
	for (size_t i = 0; i < n && !ret; i++)
		places[i] = reading->places[i];
	free(reading);
	return ret;
}
