/* SPDX-License-Identifier: GPL-2.0 */
/* What is read of another process's memory, here of our own: pages of its own, and no other. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sys/process_memory.h"

#define PAGES 4

static size_t page(void)
{
	return sysconf(_SC_PAGESIZE);
}

static char *map(int flags, int fd)
{
	char *at = mmap(NULL, PAGES * page(), PROT_READ | PROT_WRITE, flags, fd, 0);

	assert_ptr_not_equal(at, MAP_FAILED);
	return at;
}

static int read_at(const char *at, char to[static 16])
{
	struct process_memory memory;
	int ret;

	assert_int_equal(process_memory_open(getpid(), &memory), 0);
	ret = process_memory_read(&memory, (__u64)(uintptr_t)at, to, 16);
	process_memory_close(&memory);
	return ret;
}

static void its_own(void **state)
{
	char *at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1), to[16];

	(void)state;
	assert_int_equal(read_at(at, to), -EFAULT); /* nobody has written there */
	memset(at, 7, 2 * page());
	assert_int_equal(read_at(at, to), 0);
	assert_memory_equal(to, at, sizeof(to));
	assert_int_equal(read_at(at + page() - 8, to), 0);
	assert_int_equal(read_at(at + 2 * page() - 8, to), -EFAULT); /* half of it is there */
	munmap(at, PAGES * page());
	assert_int_equal(read_at(at, to), -EFAULT);
}

/* Whether the page is there or not. What was written to a private one is no file any more. */
static void of_a_file(void **state)
{
	FILE *file = tmpfile();
	char to[16], *at, *shared;

	(void)state;
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), (off_t)(PAGES * page())), 0);
	at = map(MAP_PRIVATE, fileno(file));
	assert_int_equal(read_at(at, to), -EFAULT);
	assert_int_equal(((volatile char *)at)[0], 0);
	assert_int_equal(read_at(at, to), -EFAULT);
	at[0] = 1;
	assert_int_equal(read_at(at, to), 0);
	assert_int_equal(read_at(at + page() - 8, to), -EFAULT);
	munmap(at, PAGES * page());
	shared = map(MAP_SHARED, fileno(file));
	memset(shared, 1, page());
	assert_int_equal(read_at(shared, to), -EFAULT);
	munmap(shared, PAGES * page());
	fclose(file);
}

static void nowhere(void **state)
{
	static const __u64 places[] = { 0, 8, 1ULL << 47, 1ULL << 63, -4096ULL, -17ULL, -16ULL, -15ULL, -1ULL };
	char to[16];

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
		assert_int_equal(read_at((char *)(uintptr_t)places[i], to), -EFAULT);
}

/* Each for itself. */
static void many_places(void **state)
{
	char *at = map(MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct process_place places[] = {
		{ .address = (__u64)(uintptr_t)at },
		{ .address = (__u64)(uintptr_t)(at + page()), .there = true },
		{ .address = (__u64)(uintptr_t)(at + 16) },
	};

	(void)state;
	at[0] = 1;
	at[16] = 2;
	assert_int_equal(process_memory_read_places(getpid(), places, 3, 60000), 0);
	assert_true(places[0].there && !places[1].there && places[2].there);
	assert_memory_equal(places[0].bytes, at, sizeof(places->bytes));
	assert_memory_equal(places[2].bytes, at + 16, sizeof(places->bytes));
	munmap(at, PAGES * page());
}

static void a_process_that_is_gone(void **state)
{
	struct process_memory memory;
	char here = 1, to;
	pid_t child = fork();

	(void)state;
	if (!child) {
		pause();
		_exit(0);
	}
	assert_int_equal(process_memory_open(child, &memory), 0);
	assert_int_equal(process_memory_read(&memory, (__u64)(uintptr_t)&here, &to, 1), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(process_memory_read(&memory, (__u64)(uintptr_t)&here, &to, 1), -EFAULT);
	process_memory_close(&memory);
	assert_int_equal(process_memory_open(child, &memory), -ENOENT);
	assert_int_equal(process_memory_read_places(child, NULL, 0, 60000), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_own),
		cmocka_unit_test(of_a_file),
		cmocka_unit_test(nowhere),
		cmocka_unit_test(many_places),
		cmocka_unit_test(a_process_that_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
