/* SPDX-License-Identifier: GPL-2.0 */
/* The table of functions that Go's run time needs for its own stack traces (.gopclntab), in the forms of Go 1.16, 1.18, 1.20. */
#ifndef WEIR_USER_GOLANG_PCLNTAB_H
#define WEIR_USER_GOLANG_PCLNTAB_H

#include "base/error.h"
#include "golang/image.h"

struct pclntab {
	__u64 address;
	__u64 names, steps, functions; /* where these parts are */
	__u64 text;		       /* what entries are relative to; 0: the table does not say (1.26) */
	unsigned int form;	       /* 16, 18, 20: the version of Go that brought it */
	__u32 n;		       /* functions */
	__u8 quantum;		       /* the smallest instruction */
};

struct pclntab_function {
	__u64 address, end;
	const char *name; /* borrowed from the image */
	__u64 entry;	  /* its own entry in the table */
};

/* -ENOEXEC: there is none, or a damaged one. */
int pclntab_find(struct image *image, struct pclntab *out, struct error *err);

/* Number i of them, in the order of their addresses. False: its entry is damaged. */
bool pclntab_function(struct image *image, const struct pclntab *table, __u32 i, struct pclntab_function *out);

/*
 * By how many bytes the stack has grown before the instruction at `address`, and up to which address that holds, as the
 * function's table says. False: it does not.
 */
bool pclntab_stack(struct image *image, const struct pclntab *table, const struct pclntab_function *function,
		   __u64 address, __s32 *out, __u64 *until);

#endif
