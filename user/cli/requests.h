/* SPDX-License-Identifier: GPL-2.0 */
/* How requests are shown, a line each: weir trace and weir events. */
#ifndef WEIR_USER_CLI_REQUESTS_H
#define WEIR_USER_CLI_REQUESTS_H

#include "cli/cli.h"

struct requests_view {
	const char *command;
	const char *what;      /* one of them: "request" */
	const char *following; /* what it does as they come */
	const char *const *heads;
	const size_t *widths;
	size_t columns;
	void (*row)(struct table *table, json_t *request);
};
extern const struct requests_view requests_traced, requests_refused, requests_audited;

/* NULL: no memory */
struct table *requests_table(const struct requests_view *view);
/* In the format that was asked for. 0, or -EIO. */
int requests_print_heads(struct table *table, struct error *err);
int requests_print(const struct requests_view *view, struct table *table, json_t *request, struct error *err);

/* Those of a recording, or of the agent, with the IDs of an audit log. */
struct audited_words {
	const char *log;       /* NULL: none */
	const char *recording; /* NULL: what the agent has kept */
	const char *server;    /* NULL: all */
	__u64 window_ns;
};
/* The log that the words name; "-" is standard input. NULL with err filled in: it cannot be opened. */
FILE *audited_open(const struct audited_words *words, struct error *err);
/*
 * log: open, or NULL if the words name none. requests: those that the agent has kept; a recording's are added to the list. count: how many are
 * printed; 0: all. Returns 0, or a negative errno with err filled in.
 */
int audited_print(const struct audited_words *words, FILE *log, json_t *requests, __u64 count, struct error *err);

#endif
