/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A process that holds its own memory's lock. It waits for a page of a file, and an accomplice serves that file's file system (FUSE). The first
 * read fails, and the kernel tries again without letting the lock go. Meanwhile a thread wants to map something, and all readers wait behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../fuse_file.h"
#include "sys/process_memory.h"

#define HELD_S 60 /* at most: then the file system's server ends, and with it all waiting */

struct scene {
	char directory[sizeof(P_tmpdir "/weir-held-XXXXXX")];
	int device;
	int held[2], map[2]; /* a byte when the second read has come, and for the thread that maps */
	pid_t server, process;
};

/* --- the file system */

static bool answer_read(const struct scene *s, const struct fuse_in_header *in, bool first)
{
	if (first)
		return fuse_answer(s->device, in, -EIO, NULL, 0);
	return write(s->map[1], "", 1) == 1 && write(s->held[1], "", 1) == 1;
}

static void serve(const struct scene *s)
{
	static _Alignas(struct fuse_in_header) char request[FUSE_REQUEST_MAX];
	const struct fuse_in_header *in = (const struct fuse_in_header *)request;
	unsigned int reads = 0;
	bool answered = true;

	while (answered && read(s->device, request, sizeof(request)) > 0)
		answered = in->opcode == FUSE_READ ? answer_read(s, in, !reads++) : fuse_file_answer(s->device, in);
}

/* --- the process */

static void *map_something(void *arg)
{
	const struct scene *s = arg;
	char byte;

	if (read(s->map[0], &byte, 1) != 1)
		return NULL;
	return mmap(NULL, FUSE_FILE_SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* The page never came. */
static void leave(int signal)
{
	_exit(signal);
}

static _Noreturn void hold(struct scene *s)
{
	char path[sizeof(s->directory) + 2];
	volatile char *at;
	pthread_t thread;
	int fd;

	signal(SIGBUS, leave);
	close(s->device); /* of which the server's is the last then */
	pthread_create(&thread, NULL, map_something, s);
	snprintf(path, sizeof(path), "%s/f", s->directory);
	fd = open(path, O_RDONLY);
	at = mmap(NULL, FUSE_FILE_SIZE, PROT_READ, MAP_SHARED, fd, 0);
	_exit(fd < 0 || at == MAP_FAILED || *at);
}

static _Noreturn void be_server(struct scene *s, int process)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(HELD_S);
	s->device = fuse_file_mount(s->directory);
	if (s->device < 0)
		_exit(1);
	s->process = fork();
	if (!s->process)
		hold(s);
	if (write(process, &s->process, sizeof(s->process)) == sizeof(s->process))
		serve(s);
	_exit(0);
}

/* False: nobody may mount a FUSE here. */
static bool begin(struct scene *s)
{
	int process[2];
	bool there;
	char byte;

	*s = (struct scene){ .directory = P_tmpdir "/weir-held-XXXXXX" };
	assert_non_null(mkdtemp(s->directory));
	assert_int_equal(pipe(s->held) | pipe(s->map) | pipe(process), 0);
	s->server = fork();
	if (!s->server)
		be_server(s, process[1]);
	close(process[1]);
	close(s->held[1]);
	there = read(process[0], &s->process, sizeof(s->process)) == sizeof(s->process);
	close(process[0]);
	return there && read(s->held[0], &byte, 1) == 1;
}

/* Nobody serves the file system any more, so nobody waits for it. */
static void end(struct scene *s)
{
	kill(s->server, SIGKILL);
	waitpid(s->server, NULL, 0);
	rmdir(s->directory);
	close(s->held[0]);
	close(s->map[0]);
	close(s->map[1]);
}

static int read_of(pid_t process, char *at, __u32 ms)
{
	struct process_place place = { .address = (__u64)(uintptr_t)at };

	return process_memory_read_places(process, &place, 1, ms);
}

static void is_given_up(void **state)
{
	static char here[PROCESS_PLACE_SIZE] = { 1 };
	struct scene s;
	int ret;

	(void)state;
	if (!begin(&s)) {
		end(&s);
		skip();
	}
	/* All is read until the thread that maps waits. A reader may also be given up because this machine is slow: then it comes back. */
	while ((ret = read_of(s.process, here, 1000)) != -EBUSY)
		assert_true(ret == 0 || ret == -ETIMEDOUT);
	end(&s);
	while ((ret = read_of(s.process, here, 1000)) == -EBUSY || ret == -ETIMEDOUT)
		usleep(1000);
	assert_true(ret == 0 || ret == -ENOENT || ret == -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(is_given_up) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
