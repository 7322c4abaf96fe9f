/* SPDX-License-Identifier: GPL-2.0 */
/* The word that was probably meant. */
#ifndef WEIR_USER_BASE_NEAREST_H
#define WEIR_USER_BASE_NEAREST_H

#include <stddef.h>

struct nearest {
	const char *word;
	size_t best;	   /* letters to change, add or leave out; only fewer are near enough */
	const char *found; /* NULL: none so far */
};

/* The word is borrowed, as are those that are tried. */
struct nearest nearest_to(const char *word);
void nearest_try(struct nearest *nearest, const char *candidate);

#endif
