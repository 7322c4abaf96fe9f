/* SPDX-License-Identifier: GPL-2.0 */
/* The fixture's functions, and the table of them. */
#include "golang_fixture_private.h"

#include <stdlib.h>
#include <string.h>

void *fixture_at(struct builder *b, const struct part *part, __u64 address)
{
	return b->out->file + part->offset + (address - part->address);
}

__u64 fixture_add(struct builder *b, struct part *part, const void *bytes, size_t size)
{
	__u64 address = part->address + part->used;

	if (part->used + size > part->size)
		abort();
	memcpy(fixture_at(b, part, address), bytes, size);
	part->used += size;
	return address;
}

void fixture_align(struct part *part, __u64 to)
{
	part->used = (part->used + to - 1) & -to;
}

__u64 fixture_word(struct builder *b, struct part *part, __u64 word)
{
	return fixture_add(b, part, &word, sizeof(word));
}

void fixture_half(struct builder *b, struct part *part, __u64 half)
{
	__u32 value = (__u32)half;

	fixture_add(b, part, &value, sizeof(value));
}

/* One step of the table of stack sizes: the difference of the size, and of the address. */
static void add_step(struct builder *b, int size, unsigned int code)
{
	__u8 bytes[2] = { (__u8)(size < 0 ? -2 * size - 1 : 2 * size), (__u8)code };

	fixture_add(b, &b->tables, bytes, sizeof(bytes));
}

static void add_code(struct builder *b, const char *bytes, size_t size)
{
	fixture_add(b, &b->code, bytes, size);
}
#define CODE(b, bytes) add_code(b, bytes, sizeof(bytes) - 1)

/* An instruction whose last four bytes say how far away `to` is. */
static void add_relative(struct builder *b, const char *bytes, size_t size, __u64 to)
{
	add_code(b, bytes, size);
	fixture_half(b, &b->code, to - (b->code.address + b->code.used + 4));
}

__u64 fixture_function(struct builder *b, struct wanted_function want)
{
	bool pushes = b->want->minor >= 21;
	__u64 start, begin = 0, frame, made, before_end, end;

	fixture_align(&b->code, 32);
	start = b->code.address + b->code.used;
	if (!b->want->unchecked) {
		CODE(b, "\x49\x3b\x66\x10"); /* CMPQ SP, 16(R14) */
		begin = b->code.address + b->code.used;
		CODE(b, "\x76\x30"); /* JLS */
	}
	frame = b->code.address + b->code.used;
	if (b->want->odd_frame)
		CODE(b, "\x48\x8d\x64\x24\xe8"); /* LEAQ -24(SP), SP */
	else if (pushes)
		CODE(b, "\x55"); /* PUSHQ BP */
	else
		CODE(b, "\x48\x83\xec\x18"); /* SUBQ $24, SP */
	made = b->code.address + b->code.used;
	if (want.refers)
		add_relative(b, "\x48\x8d\x05", 3, want.refers); /* LEAQ refers(SB), AX */
	if (want.key) {
		add_relative(b, "\x48\x8d\x1d", 3, want.key);	    /* LEAQ key(SB), BX */
		add_relative(b, "\x48\x8d\x0d", 3, want.key_value); /* LEAQ key_value(SB), CX */
		CODE(b, "\xff\xd2");				    /* CALL DX */
	}
	if (want.code)
		add_code(b, want.code, want.code_size);
	if (want.calls) {
		b->out->send = b->code.address + b->code.used;
		add_relative(b, "\xe8", 1, want.calls);
		b->out->behind_send = b->code.address + b->code.used;
	}
	if (pushes)
		CODE(b, "\x5d"); /* POPQ BP */
	else
		CODE(b, "\x48\x83\xc4\x18"); /* ADDQ $24, SP */
	before_end = b->code.address + b->code.used;
	CODE(b, "\xc3");
	end = b->code.address + ((b->code.used + 31) & -32ULL);
	for (b->code.used = before_end + 1 - b->code.address; b->code.address + b->code.used < end;)
		CODE(b, "\xcc");
	b->functions[b->n_functions].address = start;
	b->functions[b->n_functions].name = fixture_add(b, &b->tables, want.name, strlen(want.name) + 1);
	b->functions[b->n_functions++].stack = frame - start + ((made - start) << 16) + ((before_end - start) << 32) +
					       ((end - start) << 48);
	b->out->serve_begin = b->out->serve_begin ?: begin ?: frame;
	b->out->serve_return = b->out->serve_return ?: before_end;
	return start;
}

/* A function of one instruction, RET. */
static __u64 add_nothing(struct builder *b, const char *name)
{
	__u64 start;

	fixture_align(&b->code, 32);
	start = b->code.address + b->code.used;
	CODE(b, "\xc3");
	b->functions[b->n_functions].address = start;
	b->functions[b->n_functions].name = fixture_add(b, &b->tables, name, strlen(name) + 1);
	b->functions[b->n_functions++].stack = 1ULL << 16 | 2ULL << 32 | 32ULL << 48;
	return start;
}

void fixture_nothing(struct builder *b)
{
	struct part *part = b->want->nothing == FIXTURE_NOTHING ? &b->types : &b->data;
	__u64 function;

	if (b->want->nothing == FIXTURE_NO_NOTHING)
		return;
	function = add_nothing(b, "net.glob..func2");
	fixture_align(part, 8);
	b->out->nothing = fixture_word(b, part, function);
}

__u64 fixture_table(struct builder *b)
{
	unsigned int minor = b->want->minor, form = minor >= 20 ? 20 : minor >= 18 ? 18 : 16;
	__u32 magic = form == 20 ? 0xfffffff1 : form == 18 ? 0xfffffff0 : 0xfffffffa;
	__u64 header[9], entries[MAX_FUNCTIONS], steps[MAX_FUNCTIONS], base, functions;
	unsigned int n = 0;

	b->steps = b->tables.address + b->tables.used;
	add_step(b, 0, 0); /* an offset of 0 means none */
	for (unsigned int i = 0; i < b->n_functions; i++) {
		__u64 places = b->functions[i].stack, made = places >> 16 & 0xffff, end = places >> 32 & 0xffff;
		int size = minor >= 21 && !b->want->odd_frame ? 8 : 24;

		steps[i] = b->tables.address + b->tables.used - b->steps;
		add_step(b, 1, (unsigned int)made);
		add_step(b, size, (unsigned int)(end - made));
		add_step(b, -size, (unsigned int)((places >> 48) - end));
		add_step(b, 0, 0);
	}
	fixture_align(&b->tables, 8);
	functions = b->tables.address + b->tables.used;
	/* Pairs, the end, then what they point to. */
	base = functions + (form == 16 ? 16 : 8) * (b->n_functions + 1ULL);
	for (unsigned int i = 0; i < b->n_functions; i++)
		entries[i] = base + 48ULL * i - functions;
	for (unsigned int i = 0; i <= b->n_functions; i++) {
		bool last = i == b->n_functions;
		__u64 address = last ? b->code.address + ((b->code.used + 31) & -32ULL) : b->functions[i].address;

		if (form == 16) {
			fixture_word(b, &b->tables, address);
			fixture_word(b, &b->tables, last ? 0 : entries[i]);
		} else {
			fixture_half(b, &b->tables, address - b->code.address);
			fixture_half(b, &b->tables, last ? 0 : entries[i]);
		}
	}
	for (unsigned int i = 0; i < b->n_functions; i++) {
		__u64 start = b->tables.used;

		if (form == 16)
			fixture_word(b, &b->tables, b->functions[i].address);
		else
			fixture_half(b, &b->tables, b->functions[i].address - b->code.address);
		fixture_half(b, &b->tables, b->functions[i].name - b->names);
		fixture_half(b, &b->tables, 0);
		fixture_half(b, &b->tables, 0);
		fixture_half(b, &b->tables, steps[i]);
		b->tables.used = start + 48;
	}
	fixture_align(&b->tables, 32);
	base = b->tables.address + b->tables.used;
	header[n++] = magic | 1ULL << 48 | 8ULL << 56;
	header[n++] = b->n_functions;
	header[n++] = 0;
	if (form != 16)
		header[n++] = minor >= 26 ? 0 : b->code.address;
	header[n++] = b->names - base;
	header[n++] = 0;
	header[n++] = 0;
	header[n++] = b->steps - base;
	header[n++] = functions - base;
	for (unsigned int i = 0; i < n; i++)
		fixture_word(b, &b->tables, header[i]);
	return base;
}
