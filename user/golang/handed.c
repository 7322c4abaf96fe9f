/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/handed.h"

#include <errno.h>
#include <string.h>

#include "golang/functions.h"
#include "golang/reader.h"

#define REGISTERS 9
#define MAX_SLOT 0x7ff8

/* All names of the registers that arguments come in. */
static bool is_of(unsigned int argument, x86_reg reg)
{
	static const x86_reg names[REGISTERS][5] = {
		{ X86_REG_RAX, X86_REG_EAX, X86_REG_AX, X86_REG_AL, X86_REG_AH },
		{ X86_REG_RBX, X86_REG_EBX, X86_REG_BX, X86_REG_BL, X86_REG_BH },
		{ X86_REG_RCX, X86_REG_ECX, X86_REG_CX, X86_REG_CL, X86_REG_CH },
		{ X86_REG_RDI, X86_REG_EDI, X86_REG_DI, X86_REG_DIL },
		{ X86_REG_RSI, X86_REG_ESI, X86_REG_SI, X86_REG_SIL },
		{ X86_REG_R8, X86_REG_R8D, X86_REG_R8W, X86_REG_R8B },
		{ X86_REG_R9, X86_REG_R9D, X86_REG_R9W, X86_REG_R9B },
		{ X86_REG_R10, X86_REG_R10D, X86_REG_R10W, X86_REG_R10B },
		{ X86_REG_R11, X86_REG_R11D, X86_REG_R11W, X86_REG_R11B },
	};

	for (unsigned int i = 0; i < 5; i++)
		if (reg != X86_REG_INVALID && names[argument][i] == reg)
			return true;
	return false;
}

/* What an instruction says of the argument's register. */
enum mention {
	MENTIONS_NOT,
	KEEPS,	  /* MOVQ register, n(SP) */
	REPLACES, /* the register has something else afterwards, which is not made of what it had */
	READS,	  /* in any other way */
};

static enum mention mention_of(const struct reader *reader, unsigned int argument)
{
	const cs_x86 *x86 = &reader->insn->detail->x86;
	const cs_x86_op *to = reader_operand(reader, 0), *from = reader_operand(reader, 1);
	bool moves = reader->insn->id == X86_INS_MOV || reader->insn->id == X86_INS_MOVABS ||
		     reader->insn->id == X86_INS_LEA;
	unsigned int n = 0;

	for (unsigned int i = 0; i < x86->op_count; i++) {
		const cs_x86_op *one = &x86->operands[i];

		n += one->type == X86_OP_REG && is_of(argument, one->reg);
		n += one->type == X86_OP_MEM && (is_of(argument, one->mem.base) || is_of(argument, one->mem.index));
	}
	if (!n)
		return MENTIONS_NOT;
	if (n > 1 || !moves)
		return READS;
	if (to->type == X86_OP_REG && to->size >= 4 && is_of(argument, to->reg))
		return REPLACES;
	return reader->insn->id == X86_INS_MOV && from->type == X86_OP_REG && from->size == 8 &&
			       to->type == X86_OP_MEM && to->mem.base == X86_REG_RSP &&
			       to->mem.index == X86_REG_INVALID && to->mem.segment == X86_REG_INVALID ?
		       KEEPS :
		       READS;
}

/* Its operands are all the registers that it reads or writes, and the next instruction follows it. */
static bool is_followed(const struct reader *reader)
{
	switch (reader->insn->id) {
	case X86_INS_ADD:
	case X86_INS_CMP:
	case X86_INS_LEA:
	case X86_INS_MOV:
	case X86_INS_MOVABS:
	case X86_INS_MOVUPS:
	case X86_INS_MOVZX:
	case X86_INS_NOP:
	case X86_INS_PUSH:
	case X86_INS_SUB:
	case X86_INS_TEST:
	case X86_INS_XOR:
	case X86_INS_XORPS:
		return true;
	default:
		return false;
	}
}

static bool moves_stack(const struct reader *reader)
{
	return reader->insn->id == X86_INS_PUSH || reader_is_register(reader, 0, X86_REG_RSP);
}

/*
 * Every register may have something else behind the call. Some functions of the run time keep them, as those that clear memory and
 * those of write barriers do: it is none of them.
 */
static bool takes_registers(struct golang *go, const struct reader *reader)
{
	const cs_x86_op *to = reader_operand(reader, 0);
	struct pclntab_function callee;

	return to->type != X86_OP_IMM ||
	       (function_at(go, (__u64)to->imm, &callee) && strncmp(callee.name, "runtime.", 8) != 0);
}

/* What is known of the argument, up to an instruction. */
struct argument_place {
	unsigned int reg;
	bool is_kept, is_gone; /* on the stack; not in its register any more */
	__s64 stack;
};

/* NULL: it is one place still; else what is wrong. */
static const char *follow(const struct reader *reader, struct argument_place *argument)
{
	enum mention mention = argument->is_gone ? MENTIONS_NOT : mention_of(reader, argument->reg);

	if (!is_followed(reader) || (argument->is_kept && moves_stack(reader)))
		return "before it calls another function it has an instruction that weir does not know there";
	if (mention == READS || (mention == KEEPS && argument->is_kept) || (mention == REPLACES && !argument->is_kept))
		return "it has what it is to execute in more places than one";
	if (mention == KEEPS) {
		argument->is_kept = true;
		argument->stack = reader_operand(reader, 0)->mem.disp;
	}
	argument->is_gone |= mention == REPLACES;
	return NULL;
}

static int read_to_call(struct golang *go, const struct pclntab_function *function, __u64 jump, struct reader *reader,
			struct argument_place *argument, struct error *err)
{
	while (reader_next(reader)) {
		const char *wrong = NULL;

		if (reader->insn->id == X86_INS_CALL && argument->is_kept && takes_registers(go, reader))
			return 0;
		if (reader->insn->id == X86_INS_CALL)
			return code_error(err, function, "it has what it is to execute in a register where it calls");
		if (reader->insn->address != jump)
			wrong = follow(reader, argument);
		if (wrong)
			return code_error(err, function, wrong);
	}
	return code_error(err, function, "it calls no function");
}

int handed_find(struct golang *go, const struct golang_function *of, const struct golang_word *word,
		struct golang_slot *out, struct error *err)
{
	CLEANUP_READER struct reader reader = { 0 };
	struct argument_place argument = { .reg = word->reg };
	struct golang_slot found = { 0 };
	struct pclntab_function function;
	int ret;

	if (word->on_stack) {
		*out = (struct golang_slot){ .place = of->begin, .stack = word->stack, .at_begin = true };
		return 0;
	}
	if (go->image.machine != IMAGE_AMD64 || word->reg >= REGISTERS || !function_at(go, of->address, &function))
		return error_set(err, -ENOTSUP, "%.150s: weir does not know its registers", of->name);
	ret = reader_open(go, &function, &reader, err) ?:
		      read_to_call(go, &function, of->again ? of->begin.address : 0, &reader, &argument, err);
	if (ret)
		return ret;
	found.place.address = reader.insn->address;
	if (argument.stack < 0 || argument.stack > MAX_SLOT || argument.stack % 8 ||
	    !image_code_offset(&go->image, found.place.address, &found.place.offset))
		return code_error(err, &function, "what it is to execute is in an odd place on its stack");
	found.stack = (__u16)argument.stack;
	*out = found;
	return 0;
}
