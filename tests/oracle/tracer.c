/* SPDX-License-Identifier: GPL-2.0 */
#include "tracer.h"

#include <stdlib.h>
#include <string.h>

#include "../random.h"

static struct random numbers;

__u64 random_u64(void)
{
	return random_next(&numbers);
}

__u64 below(__u64 n)
{
	return random_below(&numbers, n);
}

static int check(const struct tracer *tracer, const char *kind_name, FILE *trace, FILE *answers)
{
	__u64 number = 0;
	char line[256];

	while (fgets(line, sizeof(line), trace)) {
		number++;
		if (!tracer->check_line(line, answers)) {
			printf("%s: line %llu of the trace differs\n", kind_name, number);
			return 1;
		}
	}
	if (!tracer->sum_up(kind_name))
		return 1;
	return fgetc(answers) == '\n' && fgetc(answers) != EOF;
}

/* The kind with this name; -1: there is none. */
static int kind_find(const struct tracer *tracer, const char *name)
{
	const char *kind_name;

	for (int kind = 0; (kind_name = tracer->kind_name(kind)); kind++)
		if (!strcmp(kind_name, name))
			return kind;
	return -1;
}

int tracer_main(const struct tracer *tracer, int argc, char **argv)
{
	int kind = argc == 5 ? kind_find(tracer, argv[2]) : -1;

	if (argc == 2 && !strcmp(argv[1], "kinds")) {
		for (kind = 0; tracer->kind_name(kind); kind++)
			puts(tracer->kind_name(kind));
		return 0;
	}
	if (kind >= 0 && !strcmp(argv[1], "make")) {
		numbers.state = strtoull(argv[3], NULL, 10);
		for (__u64 traces = strtoull(argv[4], NULL, 10); traces; traces--)
			tracer->make(kind);
		return 0;
	}
	if (kind >= 0 && !strcmp(argv[1], "check")) {
		FILE *trace = fopen(argv[3], "r"), *answers = fopen(argv[4], "r");

		if (trace && answers)
			return check(tracer, argv[2], trace, answers);
		perror(tracer->name);
		return 2;
	}
	fprintf(stderr, "usage: %s kinds | make KIND SEED TRACES | check KIND TRACE ANSWERS\n", tracer->name);
	return 2;
}
