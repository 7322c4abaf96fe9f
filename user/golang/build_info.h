/* SPDX-License-Identifier: GPL-2.0 */
/* What the go command leaves in a program (.go.buildinfo): the version of Go, and the modules. */
#ifndef WEIR_USER_GOLANG_BUILD_INFO_H
#define WEIR_USER_GOLANG_BUILD_INFO_H

#include "base/error.h"
#include "golang/image.h"

struct build_info {
	char *version;	    /* "go1.19.8" */
	unsigned int minor; /* 19 */
	char *modules;	    /* lines of words with tabs between them: "mod\tPATH\tVERSION\tSUM"; may be empty */
};

/* -ENOEXEC: there is none, or a damaged one; -ENOMEM. */
int build_info_read(struct image *image, struct build_info *out, struct error *err);
void build_info_clear(struct build_info *info);

/* Word `n` of the first line that begins with these words ("dep\tk8s.io/apiserver"), for the caller to free; NULL: none. */
char *build_info_word(const struct build_info *info, const char *words, unsigned int n);

#endif
