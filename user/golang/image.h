/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An ELF file, read piece by piece as its places are asked for, into memory of our own: whoever may write the file can then
 * neither change nor take away what was read. Relocations that only add the load address are applied, so that the words of a
 * PIE are the addresses that its headers speak of (load address 0).
 */
#ifndef WEIR_USER_GOLANG_IMAGE_H
#define WEIR_USER_GOLANG_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "weir/base/types.h"

#include "base/error.h"

/* Larger files are refused. */
#define IMAGE_MAX_SIZE (512ULL << 20)
#define IMAGE_MAX_SEGMENTS 64

enum image_machine {
	IMAGE_AMD64,
	IMAGE_ARM64,
};

struct image_segment {
	__u64 address, offset; /* in memory; in the file */
	__u64 size;	       /* what of it the file has */
	bool writable, executable;
};

struct image {
	enum image_machine machine;
	bool pie;
	struct image_segment segments[IMAGE_MAX_SEGMENTS];
	unsigned int n_segments;
	__u64 in_segments; /* bytes of the file, each as often as a segment has it */
	int fd;		   /* of our own */
	__u64 size;	   /* of the file */
	__u8 *bytes;	   /* `size` of them, the pieces that were read filled in */
	bool *read;	   /* of each piece */
};

/* fd stays the caller's. -ENOEXEC: not an ELF file for amd64 or arm64, or a damaged one; -EFBIG; -ENOMEM; err is filled in. */
int image_open(int fd, struct image *out, struct error *err);
void image_close(struct image *image);

/* `size` bytes at an address, or NULL if the file has not all of them in one segment. Valid until image_close(). */
const void *image_at(struct image *image, __u64 address, __u64 size);
/* How many bytes the segment has from there on; 0: there is none. */
__u64 image_left(const struct image *image, __u64 address);
/* The text there, with its NUL; NULL if none ends within `max` bytes. */
const char *image_text(struct image *image, __u64 address, size_t max);
bool image_u64(struct image *image, __u64 address, __u64 *out);

/* The first address of what is to be executed, as the kernel counts it. */
__u64 image_code(const struct image *image);

/* The largest segment that can neither be written nor executed: [from, to). Both 0: there is none. */
void image_constants(const struct image *image, __u64 *from, __u64 *to);

/* The place in the file of an instruction, as a uprobe wants it. False: no executable segment has it. */
bool image_code_offset(const struct image *image, __u64 address, __u64 *out);

/* The address and size of a section by name. False: there is none, or no section headers. */
bool image_section(struct image *image, const char *name, __u64 *address, __u64 *size);

#endif
