/* SPDX-License-Identifier: GPL-2.0 */
/* One function, instruction by instruction, as capstone reads it. */
#ifndef WEIR_USER_GOLANG_READER_H
#define WEIR_USER_GOLANG_READER_H

#include "golang/capstone.h"
#include "golang/private.h"

struct reader {
	const struct capstone *capstone;
	csh handle;
	cs_insn *insn;
	const __u8 *code;
	size_t left;
	uint64_t next; /* the address behind the instruction */
};

int reader_open(struct golang *go, const struct pclntab_function *function, struct reader *out, struct error *err);
void reader_close(struct reader *reader);
#define CLEANUP_READER __attribute__((cleanup(reader_close)))

/* False: there is no further instruction, or none that capstone knows. */
bool reader_next(struct reader *reader);

/* Of amd64. */
const cs_x86_op *reader_operand(const struct reader *reader, unsigned int i);
bool reader_is_register(const struct reader *reader, unsigned int i, x86_reg reg);

/* -ENOTSUP, with the function's name and `what` of it weir does not know. */
int code_error(struct error *err, const struct pclntab_function *function, const char *what);

#endif
