/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/reader.h"

#include <errno.h>

#define MAX_CODE (1U << 20)

int code_error(struct error *err, const struct pclntab_function *function, const char *what)
{
	return error_set(err, -ENOTSUP, "%.200s (%#llx): %s", function->name, function->address, what);
}

int reader_open(struct golang *go, const struct pclntab_function *function, struct reader *out, struct error *err)
{
	bool amd64 = go->image.machine == IMAGE_AMD64;
	struct reader reader = { .next = function->address, .left = function->end - function->address };
	int ret;

	reader.code = reader.left <= MAX_CODE ? image_at(&go->image, function->address, reader.left) : NULL;
	if (!reader.code)
		return code_error(err, function, "its code is not in the file, or is too long");
	ret = capstone_load(&reader.capstone, err);
	if (ret)
		return ret;
	if (reader.capstone->open(amd64 ? CS_ARCH_X86 : CS_ARCH_ARM64, amd64 ? CS_MODE_64 : CS_MODE_ARM,
				  &reader.handle))
		return error_set(err, -ENOMEM, "capstone cannot be opened");
	reader.capstone->option(reader.handle, CS_OPT_DETAIL, CS_OPT_ON);
	reader.insn = reader.capstone->malloc(reader.handle);
	if (!reader.insn) {
		reader.capstone->close(&reader.handle);
		return error_set(err, -ENOMEM, "no memory");
	}
	*out = reader;
	return 0;
}

void reader_close(struct reader *reader)
{
	if (!reader->insn)
		return;
	reader->capstone->free(reader->insn, 1);
	reader->capstone->close(&reader->handle);
}

bool reader_next(struct reader *reader)
{
	return reader->left &&
	       reader->capstone->disasm_iter(reader->handle, &reader->code, &reader->left, &reader->next, reader->insn);
}

const cs_x86_op *reader_operand(const struct reader *reader, unsigned int i)
{
	static const cs_x86_op none = { 0 };
	const cs_x86 *x86 = &reader->insn->detail->x86;

	return i < x86->op_count ? &x86->operands[i] : &none;
}

bool reader_is_register(const struct reader *reader, unsigned int i, x86_reg reg)
{
	return reader_operand(reader, i)->type == X86_OP_REG && reader_operand(reader, i)->reg == reg;
}
