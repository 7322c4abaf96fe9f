/* SPDX-License-Identifier: GPL-2.0 */
/* Where an argument that a function was handed lies in memory, so that all that the function does with it is read from there. */
#ifndef WEIR_USER_GOLANG_HANDED_H
#define WEIR_USER_GOLANG_HANDED_H

#include "golang/find.h"
#include "golang/private.h"

/*
 * One that is on the stack is there when the function begins. One that is in a register is on the stack where the function first calls
 * another: before that, one instruction puts it there, and no other one reads the register. -ENOTSUP: it cannot be seen to be so.
 */
int handed_find(struct golang *go, const struct golang_function *of, const struct golang_word *word,
		struct golang_slot *out, struct error *err);

#endif
