/* SPDX-License-Identifier: GPL-2.0 */
/* A file system that a test serves (FUSE): one directory with one file, of which it says all but the bytes. */
#ifndef WEIR_TESTS_FUSE_FILE_H
#define WEIR_TESTS_FUSE_FILE_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define FUSE_FILE_NODE 2
#define FUSE_FILE_SIZE 4096
#define FUSE_REQUEST_MAX (1 << 17)

/* Mounts it where no other process sees it. The device; -1: not here. */
static inline int fuse_file_mount(const char *point)
{
	int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[64];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
	if (device >= 0 && !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    !mount("weir", point, "fuse", 0, options))
		return device;
	if (device >= 0)
		close(device);
	return -1;
}

static inline bool fuse_answer(int device, const struct fuse_in_header *in, int error, const void *data, size_t size)
{
	struct fuse_out_header head = { sizeof(head) + size, error, in->unique };
	char bytes[sizeof(head) + 256];

	memcpy(bytes, &head, sizeof(head));
	if (size)
		memcpy(bytes + sizeof(head), data, size);
	return write(device, bytes, head.len) == (ssize_t)head.len;
}

/* All but FUSE_READ. */
static inline bool fuse_file_answer(int device, const struct fuse_in_header *in)
{
	const struct fuse_attr file = {
		.ino = FUSE_FILE_NODE, .size = FUSE_FILE_SIZE, .mode = S_IFREG | 0600, .nlink = 1
	};
	const struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
					    .minor = FUSE_KERNEL_MINOR_VERSION,
					    .max_write = FUSE_FILE_SIZE };
	const struct fuse_entry_out entry = { .nodeid = FUSE_FILE_NODE, .attr = file };
	const struct fuse_attr_out attributes = { .attr = file };
	const struct fuse_open_out opened = { 0 };

	switch (in->opcode) {
	case FUSE_INIT:
		return fuse_answer(device, in, 0, &init, sizeof(init));
	case FUSE_LOOKUP:
		return fuse_answer(device, in, 0, &entry, sizeof(entry));
	case FUSE_GETATTR:
		return fuse_answer(device, in, 0, &attributes, sizeof(attributes));
	case FUSE_OPEN:
		return fuse_answer(device, in, 0, &opened, sizeof(opened));
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET: /* nobody waits for an answer */
		return true;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		return fuse_answer(device, in, 0, NULL, 0);
	default:
		return fuse_answer(device, in, -ENOSYS, NULL, 0);
	}
}

#endif
