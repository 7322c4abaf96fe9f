/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/pclntab.h"

#include <errno.h>
#include <string.h>

#define MAGIC_16 0xfffffffaU
#define MAGIC_18 0xfffffff0U
#define MAGIC_20 0xfffffff1U

#define MAX_NAME 1024
#define MAX_FUNCTIONS (1U << 20)
#define MAX_STEPS (1U << 20)
#define ALIGNED 8

/* Words of the header behind its first eight bytes. */
enum {
	N_FUNCTIONS,
	N_FILES,
	TEXT, /* only since 1.18: in 1.16's form the ones behind it come one word earlier */
	NAMES,
	UNITS,
	FILES,
	STEPS,
	FUNCTIONS,
	HEADER_WORDS,
};

static unsigned int form_of(__u32 magic)
{
	switch (magic) {
	case MAGIC_16:
		return 16;
	case MAGIC_18:
		return 18;
	case MAGIC_20:
		return 20;
	default:
		return 0;
	}
}

/* An entry of the table of functions: its address, and where its data is. */
static __u64 pair_size(const struct pclntab *table)
{
	return table->form == 16 ? 16 : 8;
}

static bool read_header(struct image *image, __u64 address, struct pclntab *out)
{
	const __u8 *header = image_at(image, address, 8);
	struct pclntab table = { .address = address };
	__u64 words[HEADER_WORDS] = { 0 };
	const void *at;
	__u32 magic;

	if (!header)
		return false;
	memcpy(&magic, header, sizeof(magic));
	table.form = form_of(magic);
	table.quantum = header[6];
	if (!table.form || header[4] || header[5] || header[7] != 8 || (table.quantum != 1 && table.quantum != 4))
		return false;
	for (unsigned int i = 0, from = 0; i < HEADER_WORDS; i++) {
		if (i == TEXT && table.form == 16)
			continue;
		at = image_at(image, address + 8 + 8ULL * from++, 8);
		if (!at)
			return false;
		memcpy(&words[i], at, 8);
	}
	table.text = words[TEXT];
	table.names = address + words[NAMES];
	table.steps = address + words[STEPS];
	table.functions = address + words[FUNCTIONS];
	if (words[N_FUNCTIONS] > MAX_FUNCTIONS ||
	    words[N_FUNCTIONS] >= image_left(image, table.functions) / pair_size(&table) ||
	    !image_left(image, table.names) || !image_left(image, table.steps))
		return false;
	table.n = (__u32)words[N_FUNCTIONS];
	*out = table;
	return table.n > 0;
}

static bool search_segment(struct image *image, const struct image_segment *segment, struct pclntab *out)
{
	for (__u64 at = -segment->address % ALIGNED; at + 8 <= segment->size; at += ALIGNED) {
		const __u8 *word = image_at(image, segment->address + at, 8);
		__u32 magic;

		if (!word)
			return false;
		memcpy(&magic, word, sizeof(magic));
		if (magic >= MAGIC_18 && form_of(magic) && read_header(image, segment->address + at, out))
			return true;
	}
	return false;
}

int pclntab_find(struct image *image, struct pclntab *out, struct error *err)
{
	static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab" };
	__u64 address, size;

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
		if (image_section(image, sections[i], &address, &size) && read_header(image, address, out))
			return 0;
	/* Another linker has put it among other data, or somebody has taken the sections' names away. */
	for (unsigned int i = 0; i < image->n_segments; i++)
		if (!image->segments[i].executable && search_segment(image, &image->segments[i], out))
			return 0;
	return error_set(err, -ENOEXEC,
			 "its table of functions (.gopclntab) is missing, damaged, or of an unknown form");
}

/* The address in pair i; there is one more than functions, for the end. */
static bool pair_at(struct image *image, const struct pclntab *table, __u32 i, __u64 *address, __u64 *data)
{
	const void *at = image_at(image, table->functions + i * pair_size(table), pair_size(table));
	__u64 wide[2];
	__u32 narrow[2];

	if (!at)
		return false;
	if (table->form == 16) {
		memcpy(wide, at, sizeof(wide));
		*address = wide[0];
		*data = wide[1];
	} else {
		memcpy(narrow, at, sizeof(narrow));
		*address = table->text + narrow[0];
		*data = narrow[1];
	}
	return true;
}

/* A 32-bit member of a function's entry, by its number behind the address. */
static bool member(struct image *image, const struct pclntab *table, __u64 entry, unsigned int i, __u32 *out)
{
	const void *at = image_at(image, entry + (table->form == 16 ? 8 : 4) + 4ULL * i, 4);

	if (at)
		memcpy(out, at, 4);
	return at;
}

bool pclntab_function(struct image *image, const struct pclntab *table, __u32 i, struct pclntab_function *out)
{
	struct pclntab_function function;
	const void *end;
	__u64 data, ignored;
	__u32 name;

	if (i >= table->n || !pair_at(image, table, i, &function.address, &data))
		return false;
	/* The last one has only an address behind it. */
	end = image_at(image, table->functions + (i + 1) * pair_size(table), pair_size(table) / 2);
	if (!end)
		return false;
	if (i + 1 < table->n) {
		if (!pair_at(image, table, i + 1, &function.end, &ignored))
			return false;
	} else {
		__u64 wide = 0;

		memcpy(&wide, end, pair_size(table) / 2);
		function.end = table->form == 16 ? wide : table->text + wide;
	}
	function.entry = table->functions + data;
	if (function.end <= function.address || !member(image, table, function.entry, 0, &name))
		return false;
	function.name = image_text(image, table->names + name, MAX_NAME);
	if (!function.name)
		return false;
	*out = function;
	return true;
}

static bool step_number(struct image *image, __u64 *at, __u32 *out)
{
	*out = 0;
	for (unsigned int shift = 0; shift < 35; shift += 7) {
		const __u8 *byte = image_at(image, (*at)++, 1);

		if (!byte)
			return false;
		*out |= (__u32)(*byte & 0x7f) << shift;
		if (!(*byte & 0x80))
			return true;
	}
	return false;
}

/* Pairs of differences: of the value, and of the address up to which it holds. */
bool pclntab_stack(struct image *image, const struct pclntab *table, const struct pclntab_function *function,
		   __u64 address, __s32 *out, __u64 *until)
{
	__u64 at, pc = function->address;
	__u32 offset, value_step, pc_step;
	__s32 value = -1;

	if (!member(image, table, function->entry, 3, &offset) || !offset)
		return false;
	at = table->steps + offset;
	for (unsigned int i = 0; i < MAX_STEPS; i++) {
		if (!step_number(image, &at, &value_step) || (!value_step && i) || !step_number(image, &at, &pc_step))
			return false;
		value += (__s32)(-(value_step & 1) ^ (value_step >> 1));
		pc += (__u64)pc_step * table->quantum;
		if (address < pc) {
			*out = value;
			*until = pc;
			return true;
		}
	}
	return false;
}
