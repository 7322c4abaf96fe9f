/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An empty program where weir has one: what the probe itself takes. FILE is probed at OFFSET, as weir does it, until the standard input
 * ends:
 *
 *   empty_probe FILE OFFSET
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
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

static int empty_program(void)
{
	static const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "nothing", "GPL", nothing, 2, NULL);

	if (fd < 0)
		die("an empty program");
	return fd;
}

int main(int argc, char **argv)
{
	char *end;
	__u64 offset = argc == 3 ? strtoull(argv[2], &end, 0) : 0;

	if (argc != 3 || *end) {
		fprintf(stderr, "usage: empty_probe FILE OFFSET\n");
		return 2;
	}
	if (bpf_link_create(empty_program(), open_probe(argv[1], offset), BPF_PERF_EVENT, NULL) < 0)
		die("attaching");
	puts("attached");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
