/* SPDX-License-Identifier: GPL-2.0 */
/* Which memory programs inside servers wait for: what the kernel brings, and nobody else (bpf/inside_bring.h). */
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fuse_file.h"
#include "tests/prog/bpf/waiter.skel.h"

#define SIZE 4096

static struct waiter_bpf *waiter;
static struct bpf_link *link_of_it;

__attribute__((noinline, noclone)) static void waiter_asks(const void *at)
{
	__asm__ volatile("" ::"r"(at) : "memory");
}

static bool waits(const void *at)
{
	waiter->bss->waits = false;
	waiter_asks(at);
	return waiter->bss->waits;
}

static int setup(void **state)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .func_name = "waiter_asks");

	(void)state;
	waiter = waiter_bpf__open_and_load();
	assert_non_null(waiter);
	link_of_it = bpf_program__attach_uprobe_opts(waiter->progs.asked, 0, "/proc/self/exe", 0, &options);
	assert_non_null(link_of_it);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	bpf_link__destroy(link_of_it);
	waiter_bpf__destroy(waiter);
	return 0;
}

static char *mapped(int fd, int how)
{
	char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, how, fd, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

static void test_what_the_kernel_brings(void **state)
{
	int file = memfd_create("file", MFD_CLOEXEC);
	char *alone = mapped(-1, MAP_PRIVATE | MAP_ANONYMOUS);
	char *shared = mapped(-1, MAP_SHARED | MAP_ANONYMOUS);
	char *of_file = mapped(file, MAP_PRIVATE);

	(void)state;
	assert_int_equal(ftruncate(file, SIZE), 0);
	assert_true(waits(alone));
	assert_true(waits(shared + SIZE - 1));
	assert_true(waits(of_file));
	assert_int_equal(munmap(of_file, SIZE) | munmap(shared, SIZE) | munmap(alone, SIZE) | close(file), 0);
}

static void test_what_is_nowhere(void **state)
{
	(void)state;
	assert_false(waits(NULL));
	assert_false(waits((const void *)-1));
}

/* The process has said that it brings it by itself. */
static void test_what_a_process_brings(void **state)
{
	char *memory = mapped(-1, MAP_PRIVATE | MAP_ANONYMOUS);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register all = { .range = { (uintptr_t)memory, SIZE }, .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(ioctl(fd, UFFDIO_API, &api), 0);
	assert_true(waits(memory));
	assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &all), 0);
	assert_false(waits(memory));
	assert_int_equal(ioctl(fd, UFFDIO_UNREGISTER, &all.range), 0);
	assert_true(waits(memory));
	assert_int_equal(close(fd) | munmap(memory, SIZE), 0);
}

/* --- a file system of this process, of which the other processes know nothing */

#define POINT "/tmp" /* in a namespace of its own */

/* Ends with the test, and answers as long as that lives: who ends waits for the answer that his file is closed. */
static void serve(int fd)
{
	static _Alignas(struct fuse_in_header) char asked[FUSE_REQUEST_MAX];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, asked, sizeof(asked)) > 0)
		fuse_file_answer(fd, (const struct fuse_in_header *)asked);
	_exit(0);
}

static void test_what_a_file_system_of_a_process_brings(void **state)
{
	int fuse = fuse_file_mount(POINT), file;
	pid_t server;
	char *memory;

	(void)state;
	if (fuse < 0)
		skip();
	server = fork();
	if (!server)
		serve(fuse);
	assert_return_code(server, errno);
	assert_int_equal(close(fuse), 0);
	file = open(POINT "/file", O_RDONLY | O_CLOEXEC);
	assert_return_code(file, errno);
	memory = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, file, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_false(waits(memory));
	assert_int_equal(munmap(memory, SIZE) | close(file) | umount2(POINT, MNT_DETACH), 0);
	assert_int_equal(kill(server, SIGKILL), 0);
	assert_int_equal(waitpid(server, NULL, 0), server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_the_kernel_brings),
		cmocka_unit_test(test_what_is_nowhere),
		cmocka_unit_test(test_what_a_process_brings),
		cmocka_unit_test(test_what_a_file_system_of_a_process_brings),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
