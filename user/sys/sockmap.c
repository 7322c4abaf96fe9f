/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/sockmap.h"

#include <bpf/bpf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "sys/privilege.h"

static bool is_for_sockets(const struct bpf_prog_info *program)
{
	return program->type == BPF_PROG_TYPE_SK_MSG || program->type == BPF_PROG_TYPE_SK_SKB;
}

/* False: the program is gone, or it cannot be asked. */
static bool describe(__u32 id, struct bpf_prog_info *program)
{
	CLEANUP_CLOSE int fd = bpf_prog_get_fd_by_id(id);
	__u32 length = sizeof(*program);

	*program = (struct bpf_prog_info){ 0 };
	return fd >= 0 && !bpf_obj_get_info_by_fd(fd, program, &length);
}

static void list(FILE *out)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_MAP);
	const char *separator = "";
	struct bpf_prog_info program;

	for (__u32 id = 0; !bpf_prog_get_next_id(id, &id);) {
		if (!describe(id, &program) || !is_for_sockets(&program))
			continue;
		fprintf(out, "%s%s (id %u)", separator, program.name, id);
		separator = ", ";
	}
}

char *sockmap_programs(void)
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	if (!out)
		return NULL;
	list(out);
	if (!fclose(out) && length)
		return text;
	free(text);
	return NULL;
}
