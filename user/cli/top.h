/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of `weir top` share. */
#ifndef WEIR_USER_CLI_TOP_H
#define WEIR_USER_CLI_TOP_H

#include "show/top.h"

#define TOP_SPARE 6 /* columns that can be spared */

/* What can be looked at, with the members that say what a row is of. */
struct top_kind {
	const char *name;
	char key; /* on the screen */
	const char *members[5];
	const char *inside; /* what a row of it is made of; NULL: not known */
};
extern const struct top_kind top_kinds[]; /* ends with a NULL name */
const struct top_kind *top_kind_of(const char *name);

/* What one looks at. */
struct top_look {
	const char *server; /* NULL: all */
	const struct top_kind *by;
	enum top_number sort;
	__u64 interval_ms;
	size_t rows;	 /* at most */
	char *filter;	 /* only what has this text in it; owned; NULL: all */
	size_t left_out; /* columns that there is no room for, at most TOP_SPARE: those that can be spared most easily */
};

/* The head of a column with this member; "" where there is none. */
const char *top_head(const char *member);

/* Asks the agent once. waiting, or NULL: as of control_call(). */
int top_ask(const struct top_look *look, struct top *top, void (*waiting)(void), struct error *err);

/* The rows as a table, the heaviest first, at most look->rows. with_time: a line tells its time, for a stream of them. */
struct table;
struct table *top_table(const struct top_look *look, const struct top *top, bool with_time);
int top_table_fill(struct table *table, const struct top_look *look, struct top *top, bool with_time);
/* The n-th row that is shown; NULL: there are not so many. */
const struct top_subject *top_shown(const struct top_look *look, const struct top *top, size_t n);

/* Why no row is shown, for people; NULL: some are. */
const char *top_why_empty(const struct top_look *look, const struct top *top);

/* Takes the terminal until somebody quits. 0, or a negative errno with err filled in. */
int top_screen(struct top_look *look, struct error *err);

#endif
