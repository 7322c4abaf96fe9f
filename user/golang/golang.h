/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program that was made by Go (1.17 to 1.27), as its own tables describe it: they survive -s -w. Addresses are those of
 * the ELF file; where the program is a PIE, the process adds what it was loaded at.
 */
#ifndef WEIR_USER_GOLANG_GOLANG_H
#define WEIR_USER_GOLANG_GOLANG_H

#include <stdbool.h>

#include "weir/base/types.h"

#include "base/error.h"

#define GOLANG_OLDEST 17
#define GOLANG_NEWEST 27

struct golang;

/* What the program says of its making. Texts are borrowed from the struct golang; "" is what it does not say. */
struct golang_build {
	const char *version; /* "go1.19.8" */
	unsigned int minor;  /* 19 */
	const char *path;    /* of the main package */
	const char *module, *module_version;
	const char *machine; /* "amd64", "arm64" */
	bool pie;
	__u64 code;			    /* where its code begins */
	__u64 constants_from, constants_to; /* image_constants() */
	unsigned int functions, itabs;	    /* how many there are */
};

/*
 * fd: an ELF file; it stays the caller's, who may close it at once. -ENOEXEC: none that Go has made, or one that is
 * damaged, of another machine or another version; -EFBIG, -ENOMEM. err is filled in.
 */
int golang_open(int fd, struct golang **out, struct error *err);
void golang_close(struct golang *go);

static inline void cleanup_golang(struct golang **go)
{
	golang_close(*go);
}
#define CLEANUP_GOLANG __attribute__((cleanup(cleanup_golang)))

const struct golang_build *golang_build(const struct golang *go);

#endif
