/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The files that say who is who: tokens as in Kubernetes' static token file (token,user,uid,"group1,group2"), addresses as
 * CIDR,user,"group1,group2",namespace. Errors name FILE:LINE:COLUMN, all of them that fit.
 */
#ifndef WEIR_USER_MODEL_IDENTITY_FILE_H
#define WEIR_USER_MODEL_IDENTITY_FILE_H

#include "base/error.h"
#include "model/parse.h"

/* Texts are borrowed until the function that is called with them returns. */
struct token_row {
	const char *token; /* the secret itself */
	const char *user;
	const char *groups; /* separated by commas; "" for none */
};

struct address_row {
	struct datapath_cidr cidr;
	const char *user;
	const char *groups;    /* as above */
	const char *namespace; /* "" for none */
};

/* These call each() for every row that is right, in their order, and fail when any is not, or when each() does. */
typedef int token_each(const struct token_row *row, void *context);
int token_file_read(const char *path, token_each *each, void *context, struct error *err);

typedef int address_each(const struct address_row *row, void *context);
int address_file_read(const char *path, address_each *each, void *context, struct error *err);

/* One row, from the command line. */
int address_text_read(const char *text, address_each *each, void *context, struct error *err);

/* The next name of a list like the ones above, in *name of *length bytes; moves *list behind it. false: no more. */
bool group_next(const char **list, const char **name, size_t *length);

#endif
