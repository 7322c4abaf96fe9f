/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/code.h"

#include <errno.h>

#include "golang/reader.h"

/* Takes stack by the frame's size. (ADDQ $-128 is SUBQ $128 in fewer bytes.) */
static bool makes_frame(const struct golang *go, const struct reader *reader)
{
	if (go->image.machine != IMAGE_AMD64)
		return true;
	switch (reader->insn->id) {
	case X86_INS_PUSH:
		return reader_is_register(reader, 0, X86_REG_RBP);
	case X86_INS_SUB:
	case X86_INS_ADD:
		return reader_is_register(reader, 0, X86_REG_RSP) && reader_operand(reader, 1)->type == X86_OP_IMM;
	default:
		return false;
	}
}

/* Belongs to the check of the stack, which leaves all registers of arguments and the stack pointer alone. */
static bool checks_stack(const struct golang *go, const struct reader *reader)
{
	if (go->image.machine != IMAGE_AMD64)
		return true;
	switch (reader->insn->id) {
	case X86_INS_NOP:
	case X86_INS_CMP:
	case X86_INS_JB:
	case X86_INS_JBE:
		return true;
	case X86_INS_LEA:
	case X86_INS_MOV:
	case X86_INS_SUB:
		return reader_is_register(reader, 0, X86_REG_R12) || reader_is_register(reader, 0, X86_REG_R13);
	default:
		return false;
	}
}

static int set_place(struct golang *go, const struct pclntab_function *function, __u64 address,
		     struct golang_place *out, struct error *err)
{
	struct golang_place place = { .address = address };

	if (!image_code_offset(&go->image, address, &place.offset))
		return code_error(err, function, "it is in no executable part of the file");
	*out = place;
	return 0;
}

#define FLAG_CARRY 0x1U
#define FLAG_ZERO 0x40U

/* The flags with which the jump is taken that has been read; 0: it is another instruction. */
static __u32 jump_flags(const struct golang *go, const struct reader *reader)
{
	if (go->image.machine != IMAGE_AMD64)
		return 0;
	return reader->insn->id == X86_INS_JBE ? FLAG_CARRY | FLAG_ZERO :
	       reader->insn->id == X86_INS_JB  ? FLAG_CARRY :
						 0;
}

/* The check of a stack: the jump, the flags with which it is taken, and where it leads. */
struct check {
	__u64 jump;
	__u64 to;
	__u32 again;
};

static struct check check_of(const struct golang *go, const struct reader *reader)
{
	struct check check = { .jump = reader->insn->address, .again = jump_flags(go, reader) };

	if (check.again && reader_operand(reader, 0)->type == X86_OP_IMM)
		check.to = (__u64)reader_operand(reader, 0)->imm;
	return check;
}

/* Where it is behind the frame, in the function. */
static void set_grows(struct golang *go, const struct pclntab_function *function, const struct check *check,
		      struct golang_place *out)
{
	if (check->again == (FLAG_CARRY | FLAG_ZERO) && check->to > check->jump && check->to < function->end)
		set_place(go, function, check->to, out, NULL);
}

static int set_begin(struct golang *go, const struct pclntab_function *function, __u64 address,
		     const struct check *check, struct golang_function *out, struct error *err)
{
	int ret = set_place(go, function, check->again ? check->jump : address, &out->begin, err);

	if (ret)
		return ret;
	out->again = check->again;
	set_grows(go, function, check, &out->grows);
	return 0;
}

/* The table says where the stack has first grown: the instruction before makes the frame. Before that stands the jump. */
int code_begin(struct golang *go, const struct pclntab_function *function, struct golang_function *out,
	       struct error *err)
{
	CLEANUP_READER struct reader reader = { 0 };
	struct check check = { 0 };
	__u64 grown;
	__s32 size;
	int ret;

	if (!pclntab_stack(&go->image, &go->table, function, function->address, &size, &grown) || size)
		return code_error(err, function, "the table of functions does not say where it makes its frame");
	if (grown >= function->end)
		return set_begin(go, function, function->address, &check, out, err);
	ret = reader_open(go, function, &reader, err);
	if (ret)
		return ret;
	while (reader_next(&reader)) {
		if (reader.next == grown)
			return makes_frame(go, &reader) ?
				       set_begin(go, function, reader.insn->address, &check, out, err) :
				       code_error(err, function,
						  "its frame is made by another instruction than weir knows");
		if (reader.next > grown || !checks_stack(go, &reader))
			break;
		check = check_of(go, &reader);
	}
	return code_error(err, function, "it does not begin with the check of its stack that weir knows");
}

static bool is_return(const struct golang *go, const struct reader *reader)
{
	return go->image.machine == IMAGE_AMD64 ? reader->insn->id == X86_INS_RET : reader->insn->id == ARM64_INS_RET;
}

/* A jump to another function, which then returns in the place of this one. */
static bool leaves(const struct golang *go, const struct reader *reader, const struct pclntab_function *function)
{
	const cs_x86_op *to = reader_operand(reader, 0);

	if (go->image.machine != IMAGE_AMD64 || reader->insn->id != X86_INS_JMP || to->type != X86_OP_IMM)
		return false;
	return (__u64)to->imm < function->address || (__u64)to->imm >= function->end;
}

static int add_return(struct golang *go, const struct pclntab_function *function, __u64 address,
		      struct golang_returns *returns, struct error *err)
{
	__u64 until;
	__s32 size;

	if (!pclntab_stack(&go->image, &go->table, function, address, &size, &until) || size)
		return code_error(err, function, "it returns where the table of functions says that it has a frame");
	if (returns->n == GOLANG_MAX_RETURNS)
		return code_error(err, function, "it returns in more places than weir can probe");
	return set_place(go, function, address, &returns->places[returns->n++], err);
}

/* Is there nothing left but what fills up to the next function? */
static bool only_padding(const struct reader *reader)
{
	for (size_t i = 0; i < reader->left; i++)
		if (reader->code[i])
			return false;
	return true;
}

int code_returns(struct golang *go, const struct pclntab_function *function, struct golang_returns *out,
		 struct error *err)
{
	CLEANUP_READER struct reader reader = { 0 };
	struct golang_returns returns = { 0 };
	int ret;

	ret = reader_open(go, function, &reader, err);
	while (!ret && reader_next(&reader)) {
		if (leaves(go, &reader, function))
			return code_error(err, function, "it ends with a jump to another function");
		if (is_return(go, &reader))
			ret = add_return(go, function, reader.insn->address, &returns, err);
	}
	if (ret)
		return ret;
	if (!only_padding(&reader))
		return code_error(err, function, "it has instructions that capstone does not know");
	if (!returns.n)
		return code_error(err, function, "it never returns");
	*out = returns;
	return 0;
}

static bool calls(const struct golang *go, const struct reader *reader, __u64 callee)
{
	const cs_arm64_op *to = &reader->insn->detail->arm64.operands[0];

	if (go->image.machine == IMAGE_AMD64)
		return reader->insn->id == X86_INS_CALL && reader_operand(reader, 0)->type == X86_OP_IMM &&
		       (__u64)reader_operand(reader, 0)->imm == callee;
	return reader->insn->id == ARM64_INS_BL && to->type == ARM64_OP_IMM && (__u64)to->imm == callee;
}

int code_call(struct golang *go, const struct pclntab_function *function, __u64 callee, const char *name,
	      struct golang_call *out, struct error *err)
{
	CLEANUP_READER struct reader reader = { 0 };
	struct golang_call call = { 0 };
	unsigned int found = 0;
	int ret;

	ret = reader_open(go, function, &reader, err);
	if (ret)
		return ret;
	while (reader_next(&reader)) {
		if (!calls(go, &reader, callee))
			continue;
		if (found++)
			return error_set(err, -ENOTUNIQ, "%.200s calls %.100s more than once", function->name, name);
		call.next = reader.next;
		ret = set_place(go, function, reader.insn->address, &call.place, err);
		if (ret)
			return ret;
	}
	if (!found)
		return error_set(err, -ENOENT, "%.200s does not call %.100s", function->name, name);
	*out = call;
	return 0;
}

int code_addresses(struct golang *go, const struct pclntab_function *function, __u64 *out, unsigned int max,
		   struct error *err)
{
	CLEANUP_READER struct reader reader = { 0 };
	unsigned int n = 0;
	int ret;

	if (go->image.machine != IMAGE_AMD64)
		return code_error(err, function, "weir reads addresses from instructions of amd64 only");
	ret = reader_open(go, function, &reader, err);
	if (ret)
		return ret;
	while (reader_next(&reader))
		for (unsigned int i = 0; i < reader.insn->detail->x86.op_count && n < max; i++)
			if (reader_operand(&reader, i)->type == X86_OP_MEM &&
			    reader_operand(&reader, i)->mem.base == X86_REG_RIP)
				out[n++] = reader.next + (__u64)reader_operand(&reader, i)->mem.disp;
	return (int)n;
}

/* The address that the instruction puts into a register; 0: it puts something else there. `before`: what it had, and keeps otherwise. */
static __u64 constant_in(const struct reader *reader, x86_reg reg, x86_reg half, __u64 before)
{
	const cs_x86_op *from = reader_operand(reader, 1);

	if (!reader_is_register(reader, 0, reg) && !reader_is_register(reader, 0, half))
		return before;
	if (reader->insn->id != X86_INS_LEA || from->type != X86_OP_MEM || from->mem.base != X86_REG_RIP)
		return 0;
	return reader->next + (__u64)from->mem.disp;
}

/* Go's internal ABI has the words of arguments in AX, BX, CX. */
int code_pairs(struct golang *go, const struct pclntab_function *function, struct code_pair *out, unsigned int max,
	       struct error *err)
{
	CLEANUP_READER struct reader reader = { 0 };
	struct code_pair pair = { 0 };
	unsigned int n = 0;
	int ret;

	if (go->image.machine != IMAGE_AMD64)
		return code_error(err, function, "weir reads arguments from instructions of amd64 only");
	ret = reader_open(go, function, &reader, err);
	if (ret)
		return ret;
	while (reader_next(&reader) && n < max) {
		pair.second = constant_in(&reader, X86_REG_RBX, X86_REG_EBX, pair.second);
		pair.third = constant_in(&reader, X86_REG_RCX, X86_REG_ECX, pair.third);
		if (reader.insn->id != X86_INS_CALL)
			continue;
		if (pair.second && pair.third)
			out[n++] = pair;
		pair = (struct code_pair){ 0 };
	}
	return (int)n;
}

/* LOCK CMPXCHGL, at a positive distance from a register */
static bool swaps(const struct reader *reader)
{
	const cs_x86_op *at = reader_operand(reader, 0);

	return reader->insn->id == X86_INS_CMPXCHG && at->type == X86_OP_MEM && at->size == 4 &&
	       at->mem.base != X86_REG_RIP && at->mem.index == X86_REG_INVALID && at->mem.disp > 0 &&
	       at->mem.disp <= UINT16_MAX;
}

int code_swapped(struct golang *go, const struct pclntab_function *function, __u16 *out, struct error *err)
{
	CLEANUP_READER struct reader reader = { 0 };
	__u16 found = 0;
	int ret;

	if (go->image.machine != IMAGE_AMD64)
		return code_error(err, function, "weir reads its instructions on amd64 only");
	ret = reader_open(go, function, &reader, err);
	if (ret)
		return ret;
	while (reader_next(&reader)) {
		if (!swaps(&reader))
			continue;
		if (found)
			return error_set(err, -ENOTUNIQ, "%.200s has several compare-and-swaps", function->name);
		found = (__u16)reader_operand(&reader, 0)->mem.disp;
	}
	if (!found)
		return error_set(err, -ENOENT, "%.200s has no compare-and-swap", function->name);
	*out = found;
	return 0;
}
