/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the tracers have in common: random traces of several kinds, and whether an oracle has answered them alike.
 *
 *   TRACER kinds                          their names
 *   TRACER make KIND SEED TRACES          traces to standard output
 *   TRACER check KIND TRACE ANSWERS       compares; one line to standard output, exit status 1: not equal
 */
#ifndef WEIR_TESTS_TRACER_H
#define WEIR_TESTS_TRACER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdio.h>

struct tracer {
	const char *name;
	const char *(*kind_name)(size_t kind); /* NULL: there are no more */
	/* Prints one trace. */
	void (*make)(size_t kind);
	/* Takes a line of the trace, and the oracle's answer if there is one to it; false: not equal. */
	bool (*check_line)(char *line, FILE *answers);
	/* Prints what was compared; false: not enough, or too much that is not exact. */
	bool (*sum_up)(const char *kind_name);
};

int tracer_main(const struct tracer *tracer, int argc, char **argv);

/* 0 .. n-1, at random; 0 for n = 0. */
__u64 below(__u64 n);
__u64 random_u64(void);

#endif
