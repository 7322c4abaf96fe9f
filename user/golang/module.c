/* SPDX-License-Identifier: GPL-2.0 */
#include "golang/module.h"

#include <errno.h>
#include <string.h>

#define MAX_WORDS 64

/* The places of words in runtime.moduledata (src/runtime/symtab.go of each version), which all versions have alike ... */
enum {
	PC_HEADER = 0,
	NAMES = 1,
	FUNCTIONS = 16,
	N_FUNCTIONS = 17,
	TEXT = 22,
	END_TEXT = 23,
};

/* ... and those which differ. */
struct layout {
	unsigned int until; /* the last version of Go that has it */
	unsigned int types, end_types, itabs, n_itabs;
};

static const struct layout layouts[] = {
	{ 17, 35, 36, 43, 44 }, { 19, 35, 36, 45, 46 }, { 25, 37, 38, 47, 48 },
	{ 26, 37, 38, 48, 49 }, { 27, 37, 39, 40, 41 },
};

static const struct layout *layout_of(unsigned int minor)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++)
		if (minor <= layouts[i].until)
			return &layouts[i];
	return NULL;
}

/* Is it the module that the table belongs to, and do its parts exist? */
static bool fits(struct image *image, const struct pclntab *table, unsigned int minor, const __u64 *words,
		 struct module *out)
{
	const struct layout *layout = layout_of(minor);
	struct module module = {
		.text = words[TEXT],
		.end_text = words[END_TEXT],
		.types = words[layout->types],
		.end_types = words[layout->end_types],
		.itabs = words[layout->itabs],
		.n_itabs = words[layout->n_itabs],
		.itabs_in_place = minor >= 27,
	};
	__u64 size;

	if (words[NAMES] != table->names || words[FUNCTIONS] != table->functions ||
	    words[N_FUNCTIONS] != (__u64)table->n + 1)
		return false;
	if (module.itabs_in_place)
		module.itabs += module.types;
	size = module.itabs_in_place ? module.n_itabs : module.n_itabs * 8;
	if (module.end_text < module.text || image_left(image, module.text) < module.end_text - module.text ||
	    module.end_types < module.types || image_left(image, module.types) < module.end_types - module.types ||
	    module.n_itabs >= image->size || (size && image_left(image, module.itabs) < size))
		return false;
	*out = module;
	return true;
}

static bool search_segment(struct image *image, const struct pclntab *table, unsigned int minor,
			   const struct image_segment *segment, struct module *out)
{
	for (__u64 at = -segment->address % 8; at + 8 <= segment->size; at += 8) {
		__u64 words[MAX_WORDS];
		const void *all;

		if (!image_u64(image, segment->address + at, words))
			return false;
		if (words[PC_HEADER] != table->address)
			continue;
		all = image_at(image, segment->address + at, sizeof(words));
		if (!all)
			continue;
		memcpy(words, all, sizeof(words));
		if (fits(image, table, minor, words, out))
			return true;
	}
	return false;
}

int module_find(struct image *image, const struct pclntab *table, unsigned int minor, struct module *out,
		struct error *err)
{
	for (int writable = 1; writable >= 0; writable--)
		for (unsigned int i = 0; i < image->n_segments; i++) {
			const struct image_segment *segment = &image->segments[i];

			if (segment->writable == writable && !segment->executable &&
			    search_segment(image, table, minor, segment, out))
				return 0;
		}
	return error_set(err, -ENOEXEC, "its table of functions was read, but no runtime.moduledata belongs to it");
}
