/* SPDX-License-Identifier: GPL-2.0 */
/* The instructions of functions, as capstone reads them, held against what the table of functions says of the stack. */
#ifndef WEIR_USER_GOLANG_CODE_H
#define WEIR_USER_GOLANG_CODE_H

#include "golang/find.h"
#include "golang/private.h"

/* -ENOTSUP: not as Go's compiler makes them. */
/* Fills in `begin` and `again`. */
int code_begin(struct golang *go, const struct pclntab_function *function, struct golang_function *out,
	       struct error *err);
int code_returns(struct golang *go, const struct pclntab_function *function, struct golang_returns *out,
		 struct error *err);

/* The only call of `callee` in a function; -ENOENT, -ENOTUNIQ. name: the callee's, for errors. */
int code_call(struct golang *go, const struct pclntab_function *function, __u64 callee, const char *name,
	      struct golang_call *out, struct error *err);

/*
 * The addresses that a function's instructions load from or speak of relative to themselves (amd64), at most `max` of them;
 * returns how many, or -ENOTSUP.
 */
int code_addresses(struct golang *go, const struct pclntab_function *function, __u64 *out, unsigned int max,
		   struct error *err);

/* Of a call, arguments that are constants: in the registers of the second word of its arguments and of the third. */
struct code_pair {
	__u64 second, third; /* addresses */
};

/* Those of a function's calls that have both; at most `max`. Returns how many, or -ENOTSUP. */
int code_pairs(struct golang *go, const struct pclntab_function *function, struct code_pair *out, unsigned int max,
	       struct error *err);

/*
 * Where the only compare-and-swap of 32 bits in a function is, as bytes behind the beginning of a struct; -ENOENT, -ENOTUNIQ, -ENOTSUP
 * (amd64 only).
 */
int code_swapped(struct golang *go, const struct pclntab_function *function, __u16 *out, struct error *err);

#endif
