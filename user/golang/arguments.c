/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/arguments.h"

#define FLOATS 15
#define MAX_DEPTH 16
#define MAX_STEPS 1024
#define MAX_STACK 4096

/* AX BX CX DI SI R8 R9 R10 R11; R0 to R15 */
static unsigned int registers_of(const struct golang *go)
{
	return go->image.machine == IMAGE_AMD64 ? 9 : 16;
}

void arguments_begin(struct arguments *arguments, struct golang *go)
{
	/* The return address is on the stack, or a place for the link register. */
	*arguments = (struct arguments){ .go = go, .stack = 8 };
}

static bool take_registers(struct arguments *arguments, unsigned int n, struct argument *out)
{
	if (arguments->registers + n > registers_of(arguments->go) || out->n + n > ARGUMENTS_MAX_WORDS)
		return false;
	for (; n; n--)
		out->words[out->n++] = (struct golang_word){ .reg = (__u8)arguments->registers++ };
	return true;
}

static bool take_floats(struct arguments *arguments, unsigned int n)
{
	arguments->floats += n;
	return arguments->floats <= FLOATS;
}

void arguments_pointer(struct arguments *arguments, struct argument *out)
{
	out->n = 0;
	take_registers(arguments, 1, out);
}

static bool in_registers(struct arguments *arguments, const struct type *type, unsigned int depth, struct argument *out)
{
	struct type_field field;
	struct type element;
	__u64 n;

	if (!depth || ++arguments->steps > MAX_STEPS)
		return false;
	switch (type->kind) {
	case TYPE_FLOAT32:
	case TYPE_FLOAT64:
		return take_floats(arguments, 1);
	case TYPE_COMPLEX64:
	case TYPE_COMPLEX128:
		return take_floats(arguments, 2);
	case TYPE_STRING:
	case TYPE_INTERFACE:
		return take_registers(arguments, 2, out);
	case TYPE_SLICE:
		return take_registers(arguments, 3, out);
	case TYPE_ARRAY:
		if (!type_array(arguments->go, type, &n, &element))
			return false;
		return !n || (n == 1 && in_registers(arguments, &element, depth - 1, out));
	case TYPE_STRUCT:
		for (n = 0; type_field(arguments->go, type, n, &field); n++)
			if (!in_registers(arguments, &field.type, depth - 1, out))
				return false;
		return true;
	default:
		return take_registers(arguments, 1, out);
	}
}

static bool on_stack(struct arguments *arguments, const struct type *type, struct argument *out)
{
	__u64 at = (arguments->stack + type->align - 1) & -(__u64)type->align;

	out->n = 0;
	if (type->size > MAX_STACK || at > MAX_STACK)
		return false;
	for (__u64 word = 0; word < type->size && out->n < ARGUMENTS_MAX_WORDS; word += 8)
		out->words[out->n++] = (struct golang_word){ .on_stack = true, .stack = (__u16)(at + word) };
	arguments->stack = at + type->size;
	return true;
}

bool arguments_next(struct arguments *arguments, const struct type *type, struct argument *out)
{
	struct arguments before = *arguments;

	out->n = 0;
	if (type->size && in_registers(arguments, type, MAX_DEPTH, out))
		return true;
	before.steps = arguments->steps;
	*arguments = before;
	return arguments->steps <= MAX_STEPS && on_stack(arguments, type, out);
}
