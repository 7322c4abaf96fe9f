/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/object_id.h"

#include <bpf/bpf.h>

/* What the kernel says of maps and programs: both begin with a type and an id. */
__u32 object_id(int fd)
{
	union {
		struct bpf_map_info map;
		struct bpf_prog_info program;
	} info = {};
	__u32 length = sizeof(info);

	return fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length) ? 0 : info.map.id;
}
