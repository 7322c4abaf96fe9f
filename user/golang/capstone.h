/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The capstone library, loaded when a binary is first to be read: its tables have some 77,000 addresses, which the loader would
 * otherwise fill in at the start of every command.
 */
#ifndef WEIR_USER_GOLANG_CAPSTONE_H
#define WEIR_USER_GOLANG_CAPSTONE_H

#include <capstone/capstone.h>

#include "base/error.h"

struct capstone {
	__typeof__(cs_open) *open;
	__typeof__(cs_option) *option;
	__typeof__(cs_malloc) *malloc;
	__typeof__(cs_disasm_iter) *disasm_iter;
	__typeof__(cs_free) *free;
	__typeof__(cs_close) *close;
};

/* -ENOENT: the library is not there. *out stays loaded. Any thread may ask. */
int capstone_load(const struct capstone **out, struct error *err);

#endif
