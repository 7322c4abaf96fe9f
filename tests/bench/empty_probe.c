/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program that does one thing only, where weir has one. FILE is probed at OFFSET, as weir does it, until the standard input ends:
 *
 *   empty_probe FILE OFFSET [compute|jump|read]
 *
 * Without a word it does nothing: what the probe itself takes. compute: 2,000 multiplications, each of the one before. jump: 200 jumps that are
 * taken, each over as many instructions as a line of the CPU's cache has. read: eight bytes of what the function's second argument, if the first one
 * is an interface, points to: of a Go server's request.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UPROBE_TYPE "/sys/bus/event_source/devices/uprobe/type"

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned int uprobe_type(void)
{
	FILE *file = fopen(UPROBE_TYPE, "r");
	unsigned int type;

	if (!file || fscanf(file, "%u", &type) != 1)
		die(UPROBE_TYPE);
	fclose(file);
	return type;
}

static int open_probe(const char *path, __u64 offset)
{
	struct perf_event_attr attr = {
		.type = uprobe_type(),
		.size = sizeof(attr),
		.uprobe_path = (__u64)(unsigned long)path,
		.probe_offset = offset,
	};
	int fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		die(path);
	return fd;
}

#define MULTIPLICATIONS 2000
#define JUMPS 200
#define JUMPED_OVER 8
#define ADD (BPF_ALU64 | BPF_ADD) /* of a number: BPF_K is 0, as BPF_ADD is */

static struct bpf_insn program[JUMPS * (2 + JUMPED_OVER) + 8];
static size_t length;

static void add(__u8 code, __u8 to, short by, int value)
{
	program[length++] = (struct bpf_insn){ .code = code, .dst_reg = to, .off = by, .imm = value };
}

/* Any number, which no verifier knows. */
static void begin(void)
{
	program[length++] = (struct bpf_insn){ .code = BPF_LDX | BPF_DW | BPF_MEM, .dst_reg = 0, .src_reg = 1 };
}

static void compute(void)
{
	begin();
	add(BPF_ALU64 | BPF_MOV | BPF_K, 6, 0, MULTIPLICATIONS);
	add(BPF_ALU64 | BPF_MUL | BPF_K, 0, 0, 0x1234567);
	add(BPF_ALU64 | BPF_SUB | BPF_K, 6, 0, 1);
	add(BPF_JMP | BPF_JNE | BPF_K, 6, -3, 0);
}

static void jump(void)
{
	begin();
	for (int i = 0; i < JUMPS; i++) {
		add(ADD, 0, 0, 1); /* it may have come to 0, as far as verifiers know */
		add(BPF_JMP | BPF_JNE | BPF_K, 0, JUMPED_OVER, 0);
		for (int n = 0; n < JUMPED_OVER; n++)
			add(ADD, 0, 0, 0x1234567);
	}
}

static void read_request(void)
{
#ifdef __x86_64__
	program[length++] = (struct bpf_insn){
		.code = BPF_LDX | BPF_DW | BPF_MEM, .dst_reg = 3, .src_reg = 1, .off = offsetof(struct pt_regs, rcx)
	};
	program[length++] = (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 10 };
	add(ADD, 1, 0, -8);
	add(BPF_ALU64 | BPF_MOV | BPF_K, 2, 0, 8);
	add(BPF_JMP | BPF_CALL, 0, 0, BPF_FUNC_probe_read_user);
#endif
}

static int load(const char *what)
{
	int fd;

	if (!strcmp(what, "compute"))
		compute();
	else if (!strcmp(what, "jump"))
		jump();
	else if (!strcmp(what, "read"))
		read_request();
	add(BPF_ALU64 | BPF_MOV | BPF_K, 0, 0, 0);
	add(BPF_JMP | BPF_EXIT, 0, 0, 0);
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "control", "GPL", program, length, NULL);
	if (fd < 0)
		die("a program");
	return fd;
}

int main(int argc, char **argv)
{
	char *end;
	__u64 offset = argc >= 3 ? strtoull(argv[2], &end, 0) : 0;

	if (argc < 3 || argc > 4 || *end) {
		fprintf(stderr, "usage: empty_probe FILE OFFSET [compute|jump|read]\n");
		return 2;
	}
	if (bpf_link_create(load(argc == 4 ? argv[3] : ""), open_probe(argv[1], offset), BPF_PERF_EVENT, NULL) < 0)
		die("attaching");
	puts("attached");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
