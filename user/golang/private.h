/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_GOLANG_PRIVATE_H
#define WEIR_USER_GOLANG_PRIVATE_H

#include "golang/build_info.h"
#include "golang/golang.h"
#include "golang/image.h"
#include "golang/module.h"
#include "golang/pclntab.h"

struct golang {
	struct image image;
	struct build_info info;
	struct pclntab table;
	struct module module;
	struct golang_build build;
	char *path, *module_path, *module_version; /* what build borrows */
	__u64 *itabs;				   /* their addresses; build.itabs of them */
};

#endif
