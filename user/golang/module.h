/* SPDX-License-Identifier: GPL-2.0 */
/* runtime.moduledata: where the parts of a Go program are. Its layout differs between versions. */
#ifndef WEIR_USER_GOLANG_MODULE_H
#define WEIR_USER_GOLANG_MODULE_H

#include "base/error.h"
#include "golang/image.h"
#include "golang/pclntab.h"

struct module {
	__u64 text, end_text;
	__u64 types, end_types; /* what offsets of types and names are relative to */
	__u64 itabs;		/* pointers to itabs up to 1.26; the itabs themselves from 1.27 on */
	__u64 n_itabs;		/* pointers; or bytes of itabs */
	bool itabs_in_place;
};

/* minor: the version of Go. -ENOEXEC: none that fits the table. */
int module_find(struct image *image, const struct pclntab *table, unsigned int minor, struct module *out,
		struct error *err);

#endif
