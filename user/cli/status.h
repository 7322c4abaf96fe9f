/* SPDX-License-Identifier: GPL-2.0 */
/* The parts of `weir status`: all of them take what the agent has sent. Functions return 0 or a negative errno. */
#ifndef WEIR_USER_CLI_STATUS_H
#define WEIR_USER_CLI_STATUS_H

#include "cli/cli.h"

/*
 * What needs a sentence, each once: [{who: [NAME], text, bad}]. bad: something that was asked for is not in force. in_full: also why
 * nothing was chosen inside servers that need it not. A new reference.
 */
json_t *status_remarks(json_t *result, bool in_full);
/* A line each, below a blank one. */
void status_print_remarks(json_t *remarks);
/* How many are about this name; *bad: whether one of them is bad. */
size_t status_count_remarks(json_t *remarks, const char *who, bool *bad);

/* "80,443" */
void status_cell_ports(struct table *table, json_t *ports);

/* A line for each server. */
int status_print_servers(json_t *servers, json_t *remarks);
/* All counts, and what stands behind them. */
int status_print_counts(json_t *servers);
int status_print_tables(json_t *result);

#endif
