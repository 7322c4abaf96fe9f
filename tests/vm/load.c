/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Does this kernel take the programs of a BPF object, and what does its verifier go through?
 *
 *   load OBJECT [PROGRAM]...      all of its programs, unless some are named
 *
 * A line for each program: its name and the instructions that the verifier processed. Exit 1 with the end of the
 * verifier's log when one is refused.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_BYTES (16 << 20)
#define LOG_SHOWN 2000

static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

static int report(const struct bpf_program *program)
{
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info);
	int ret = bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size);

	if (!ret)
		printf("%s %u\n", bpf_program__name(program), info.verified_insns);
	return ret;
}

static bool is_asked_for(const struct bpf_program *program, char **names)
{
	bool all = !*names, found = false;

	for (; *names; names++)
		found |= strcmp(bpf_program__name(program), *names) == 0;
	return all || found;
}

/* Also those that the agent loads only when it needs them. */
static int load(struct bpf_object *object, char **names)
{
	struct bpf_program *program;

	for (char **name = names; *name; name++)
		if (!bpf_object__find_program_by_name(object, *name))
			return -ESRCH;
	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program, is_asked_for(program, names));
	return bpf_object__load(object);
}

/* Why a program was refused stands at the end of its log; the log is made in a second attempt, for it is slow. */
static void explain(const char *path, char **names)
{
	char *log = calloc(1, LOG_BYTES);
	LIBBPF_OPTS(bpf_object_open_opts, options, .kernel_log_buf = log, .kernel_log_size = LOG_BYTES,
		    .kernel_log_level = 1);
	struct bpf_object *object = log ? bpf_object__open_file(path, &options) : NULL;
	size_t n;

	if (object && load(object, names)) {
		n = strlen(log);
		fprintf(stderr, "%s\n", log + (n > LOG_SHOWN ? n - LOG_SHOWN : 0));
	}
	bpf_object__close(object);
	free(log);
}

int main(int argc, char **argv)
{
	struct bpf_program *program;
	struct bpf_object *object;
	int ret;

	if (argc < 2) {
		fprintf(stderr, "usage: load OBJECT [PROGRAM]...\n");
		return 2;
	}
	libbpf_set_print(print_nothing);
	object = bpf_object__open_file(argv[1], NULL);
	ret = object ? load(object, argv + 2) : -errno;
	if (ret) {
		fprintf(stderr, "%s: refused: %s\n", argv[1], strerror(-ret));
		explain(argv[1], argv + 2);
	} else {
		bpf_object__for_each_program (program, object)
			ret = ret || bpf_program__fd(program) < 0 ? ret : report(program);
	}
	bpf_object__close(object);
	return ret ? 1 : 0;
}
