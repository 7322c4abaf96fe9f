/* SPDX-License-Identifier: GPL-2.0 */
/* A text that is there twice, among very many. */
#ifndef WEIR_USER_BASE_TWICE_H
#define WEIR_USER_BASE_TWICE_H

#include <stddef.h>

/* *out: the first of n texts that is like one before it, NULL if none is. -ENOMEM. */
int twice_find(const char *const *texts, size_t n, const char **out);

#endif
