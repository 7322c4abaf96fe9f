/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random rules and random requests, over a few words so that they often meet (rule_random.c), and two ways to match them: the
 * rules as they are written against the words that a request was made of (rule_written.c), and the compiled ones against what the
 * request machine and the kernel's look-ups make of its bytes (rule_compiled.c).
 */
#ifndef WEIR_TESTS_RULE_FIXTURE_H
#define WEIR_TESTS_RULE_FIXTURE_H

#include "rules/rules.h"

/* The same sequence for each seed. */
void random_start(unsigned int seed);
unsigned int random_below(unsigned int n);

#define RULE_GROUPS 4
extern const char *const rule_groups[RULE_GROUPS]; /* those that rules and requests may have */

struct rule_request {
	char target[256];
	const char *method, *verb, *api_group, *resource, *subresource, *namespace; /* "": none */
	char path[256];
	bool of_resource, runs_long;
	const char *user; /* as rules write it: of an anonymous one the address */
	bool anonymous;
	const char *groups[4]; /* NULL: no more */
	const char *source;
};

struct rule_request rule_request_random(void);

/* Conditions that a random rule may have. */
enum rule_conditions {
	RULE_SUBJECTS = 1 << 0,
	RULE_CALLS = 1 << 1,
	RULE_RESOURCES = 1 << 2,
	RULE_NAMESPACES = 1 << 3,
	RULE_PATHS = 1 << 4,
	RULE_SOURCES = 1 << 5,
	RULE_ALL = (1 << 6) - 1,
};

/* 1 of `sparse` conditions is there. Caller clears it. */
struct rule rule_random(unsigned int conditions, unsigned int sparse);
struct rule rule_of(const char *text);

/* Hashes as request_subject() does; knows the groups of the fixture. */
extern const struct rules_names rule_names;

bool rule_matches(const struct rule *rule, const struct rule_request *request);

/* The slots of the limits that are for a request, in order; returns how many, or -1: it is exempt. */
#define LIMITS_MAX 512
int rules_match_written(const struct rules_entry *entries, size_t n, const struct rule_request *request,
			__u16 limits[static LIMITS_MAX]);
int rules_match_compiled(const struct rules *rules, const struct rule_request *from, __u16 limits[static LIMITS_MAX]);

#endif
