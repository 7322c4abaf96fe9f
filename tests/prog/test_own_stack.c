/* SPDX-License-Identifier: GPL-2.0 */
/* What bpf/own_stack.h is for: no program on a uprobe has a stack of the CPU's, as the code says that the kernel has made. */
#include "attached.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "datapath/inside_private.h"
#include "inside.skel.h"

/* add %gs:..., %r9: such a stack is found for the CPU that runs (Linux 6.13 to 7.3, x86). */
static const __u8 finds_stack[] = { 0x65, 0x4c, 0x03, 0x0c, 0x25 };

static bool has_stack_of_cpu(int program)
{
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info);
	CLEANUP_FREE __u8 *code = NULL;

	assert_int_equal(bpf_obj_get_info_by_fd(program, &info, &size), 0);
	code = malloc(info.jited_prog_len);
	assert_non_null(code);
	info = (struct bpf_prog_info){ .jited_prog_len = info.jited_prog_len, .jited_prog_insns = (__u64)code };
	size = sizeof(info);
	assert_int_equal(bpf_obj_get_info_by_fd(program, &info, &size), 0);
	assert_true(info.jited_prog_len && info.jited_prog_insns);
	return memmem(code, info.jited_prog_len, finds_stack, sizeof(finds_stack));
}

/* One that has variables, with a call in front of them or none. */
static bool plain_has_stack_of_cpu(enum bpf_prog_type type, const struct bpf_insn *first, size_t n)
{
	const struct bpf_insn last[] = {
		{ .code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_10, .off = -256 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bpf_insn insns[8];
	int fd;
	bool has;

	memcpy(insns, first, n * sizeof(*insns));
	memcpy(insns + n, last, sizeof(last));
	fd = bpf_prog_load(type, "plain", "GPL", insns, n + sizeof(last) / sizeof(*last), NULL);
	assert_true(fd >= 0);
	has = has_stack_of_cpu(fd);
	close(fd);
	return has;
}

static bool gives_stacks_of_cpus(void)
{
	struct utsname kernel;
	int version, minor;

	assert_int_equal(uname(&kernel), 0);
	assert_int_equal(sscanf(kernel.release, "%d.%d", &version, &minor), 2);
	return version > 6 || (version == 6 && minor >= 13);
}

/* As own_stack() has it. */
static void test_a_call_that_is_never_made(void **state)
{
	const struct bpf_insn never_made[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 1 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call },
	};

	(void)state;
#ifndef __x86_64__
	skip();
#endif
	assert_int_equal(plain_has_stack_of_cpu(BPF_PROG_TYPE_KPROBE, never_made, 0), gives_stacks_of_cpus());
	assert_false(plain_has_stack_of_cpu(BPF_PROG_TYPE_KPROBE, never_made, 3));
}

static int no_program_has_one(const struct datapath_inside *inside)
{
	struct bpf_program *program;
	int probes = 0;

	bpf_object__for_each_program (program, inside->skeleton->obj) {
		if (bpf_program__type(program) != BPF_PROG_TYPE_KPROBE || bpf_program__fd(program) < 0)
			continue;
		probes++;
		if (has_stack_of_cpu(bpf_program__fd(program)))
			fail_msg("%s has a stack of the CPU's", bpf_program__name(program));
	}
	return probes;
}

/* Also those that may write memory, where it is asked for: by a probe where nothing is executed. */
static void test_no_program_on_a_uprobe(void **state)
{
	CLEANUP_CLOSE int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct datapath_binary binary = {
		.device = 1, .inode = 1, .fd = fd, .probes = { { .point = WEIR_INSIDE_HANDLE_WRITE } }
	};
	const struct datapath_process own = { .id = (__u32)getpid(), .binary = &binary };
	int probes;

	(void)state;
	assert_true(fd >= 0);
	done(datapath_inside_sync(dp, &own, 1, &error));
	probes = no_program_has_one(dp->inside);
	assert_true(probes > 0);
	if (datapath_inside_writes()) {
		binary.n_probes = 1;
		done(datapath_inside_sync(dp, &own, 1, &error));
		assert_int_equal(no_program_has_one(dp->inside), probes + 2);
	}
	done(datapath_inside_sync(dp, NULL, 0, &error));
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_that_is_never_made),
		TEST(no_program_on_a_uprobe),
	};

	return cmocka_run_group_tests(tests, attached_open, attached_close);
}
