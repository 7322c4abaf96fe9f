/* SPDX-License-Identifier: GPL-2.0 */
/* How the fixture's file is put together: its parts, and its functions. */
#ifndef WEIR_TESTS_GOLANG_FIXTURE_PRIVATE_H
#define WEIR_TESTS_GOLANG_FIXTURE_PRIVATE_H

#include "golang_fixture.h"

#define MAX_FUNCTIONS 32

/* A part of the file and of memory that is filled from its beginning. */
struct part {
	__u64 address, offset, size;
	__u64 used;
};

struct builder {
	const struct golang_fixture_want *want;
	struct golang_fixture *out;
	struct part code, types, tables, data;
	struct {
		__u64 address, name, stack;
	} functions[MAX_FUNCTIONS];
	unsigned int n_functions;
	__u64 names, steps; /* beginnings inside `tables` */
	__u64 itabs[16];
	unsigned int n_itabs;
};

struct wanted_function {
	const char *name;
	__u64 calls, refers;  /* addresses; 0: none */
	__u64 key, key_value; /* of a context's value that it asks for */
	const char *code;     /* before it calls */
	size_t code_size;
};

/* The bytes at an address of a part. */
void *fixture_at(struct builder *b, const struct part *part, __u64 address);
/* Appends to a part; the address. */
__u64 fixture_add(struct builder *b, struct part *part, const void *bytes, size_t size);
void fixture_align(struct part *part, __u64 to);
__u64 fixture_word(struct builder *b, struct part *part, __u64 word);
void fixture_half(struct builder *b, struct part *part, __u64 half);
/* The check of the stack, the frame, a call, the address of something, and a RET; the address. */
__u64 fixture_function(struct builder *b, struct wanted_function want);
/* A func value that does nothing, if one is wanted. */
void fixture_nothing(struct builder *b);
/* The table of functions in the form of the version; its address. */
__u64 fixture_table(struct builder *b);

#endif
