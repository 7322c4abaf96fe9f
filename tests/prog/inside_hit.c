/* SPDX-License-Identifier: GPL-2.0 */
#include "inside_hit.h"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include "attached.h"
#include "inside/process.h"

extern const char inside_probed[];

__attribute__((noinline, noclone)) void inside_hit_with(const void *ax, const void *bx, const void *goroutine)
{
	asm volatile("movq %2, %%r14\n\t"
		     ".globl inside_probed\n"
		     "inside_probed:\n\t"
		     "nop"
		     :
		     : "a"(ax), "b"(bx), "r"(goroutine)
		     : "r14", "memory");
}

void inside_hit(const void *request, const void *goroutine)
{
	inside_hit_with(request, NULL, goroutine);
}

static int find_offset(struct dl_phdr_info *info, size_t size, void *out)
{
	const __u64 at = (__u64)inside_probed - info->dlpi_addr;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];

		if (header->p_type == PT_LOAD && at >= header->p_vaddr && at < header->p_vaddr + header->p_memsz)
			*(__u64 *)out = at - header->p_vaddr + header->p_offset;
	}
	return 1; /* the program comes first */
}

struct datapath_binary inside_hit_binary(enum weir_inside_point point)
{
	struct datapath_binary binary = {
		.device = 1,
		.inode = 1 + point,
		.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
		.probes = { { .point = point } },
		.n_probes = 1,
	};

	assert_true(binary.fd >= 0);
	dl_iterate_phdr(find_offset, &binary.probes[0].offset);
	return binary;
}

struct datapath_process inside_hit_process(const struct datapath_binary *binary,
					   const struct weir_inside_layout *layout)
{
	struct inside_process this = { .id = getpid() };

	done(inside_process_read(&this, &error));
	return (struct datapath_process){
		.id = (__u32)this.id,
		.process = { .start = this.start, .layout = *layout },
		.binary = binary,
	};
}

__u64 inside_hits_counted(void)
{
	static const enum weir_reason outcomes[] = {
		WEIR_INSIDE_SEEN,     WEIR_INSIDE_UNREADABLE, WEIR_INSIDE_OTHER_USER,
		WEIR_INSIDE_NOT_TEXT, WEIR_INSIDE_NO_ROOM,    WEIR_INSIDE_ON_WIRE,
	};
	__u64 all = 0;

	for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++)
		all += counter(outcomes[i]);
	return all;
}
