/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Comma-separated values (RFC 4180), as Go's encoding/csv reads them: lines that are empty are not there, quotes stand
 * around a whole field or nowhere, \r\n is \n. There are no comments.
 */
#ifndef WEIR_USER_BASE_CSV_H
#define WEIR_USER_BASE_CSV_H

#include <stddef.h>

#include "base/error.h"

#define CSV_FIELDS 8 /* that are kept of a record */

/* Where something stands: both from 1; columns are bytes. */
struct csv_place {
	unsigned int line, column;
};

struct csv_record {
	struct csv_place place;
	char *fields[CSV_FIELDS]; /* in the reader's text */
	struct csv_place places[CSV_FIELDS];
	size_t n; /* fields; those from CSV_FIELDS on are not kept */
};

/* Fields are unquoted and ended where they stand: the text is overwritten, one byte behind its end too. */
struct csv {
	char *at, *end;
	struct csv_place place;
};

void csv_start(struct csv *csv, char *text, size_t length);

/* 1: a record; 0: there are no more; -EINVAL: err says what is wrong, csv->place where, and there is no way on. */
int csv_next(struct csv *csv, struct csv_record *record, struct error *err);

#endif
