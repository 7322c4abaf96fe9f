/* SPDX-License-Identifier: GPL-2.0 */
/* A setting that is one word of a few. */
#ifndef WEIR_USER_BASE_CHOICE_H
#define WEIR_USER_BASE_CHOICE_H

#include "base/error.h"

struct choice {
	const char *what;	  /* with its article */
	const char *const *words; /* by the values of the setting's enum */
	unsigned int n;
};

/* The value whose word this is. -EINVAL: err says which words there are. */
int choice_parse(const struct choice *choice, const char *text, struct error *err);

#endif
