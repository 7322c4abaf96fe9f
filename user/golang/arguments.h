/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a call's arguments are (Go's internal ABI, src/cmd/compile/abi-internal.md): word by word in registers as long as all
 * of an argument's words fit, else on the stack.
 */
#ifndef WEIR_USER_GOLANG_ARGUMENTS_H
#define WEIR_USER_GOLANG_ARGUMENTS_H

#include "golang/find.h"
#include "golang/types.h"

#define ARGUMENTS_MAX_WORDS 16

struct arguments {
	struct golang *go;
	unsigned int registers, floats; /* taken */
	unsigned int steps;		/* types looked at: damaged ones may hold each other */
	__u64 stack;			/* where the next one on the stack goes, above the stack pointer */
};

/* The words of one argument, those in floating-point registers left out. */
struct argument {
	struct golang_word words[ARGUMENTS_MAX_WORDS];
	unsigned int n;
};

/* Before the first argument, at a function's first instruction. */
void arguments_begin(struct arguments *arguments, struct golang *go);
/* A pointer: a method's receiver. */
void arguments_pointer(struct arguments *arguments, struct argument *out);
/* False: a type that weir cannot place. */
bool arguments_next(struct arguments *arguments, const struct type *type, struct argument *out);

#endif
