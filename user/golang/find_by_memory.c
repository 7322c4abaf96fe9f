/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "golang/find.h"
#include "golang/handed.h"

#define RET 0xc3
#define CANDIDATES 64 /* the first ones: of the packages that all programs have */
#define PIECE 65536ULL

/* Functions that do nothing, in the order of their addresses. */
struct nothings {
	struct pclntab_function functions[CANDIDATES];
	unsigned int n;
};

static bool does_nothing(struct golang *go, const struct pclntab_function *function)
{
	const __u8 *code = image_at(&go->image, function->address, 1);
	__u64 offset;

	return code && *code == RET && image_code_offset(&go->image, function->address, &offset);
}

static void find_nothings(struct golang *go, struct nothings *out)
{
	struct pclntab_function function;

	out->n = 0;
	for (__u32 i = 0; i < go->table.n && out->n < CANDIDATES; i++)
		if (pclntab_function(&go->image, &go->table, i, &function) && does_nothing(go, &function))
			out->functions[out->n++] = function;
}

static const struct pclntab_function *nothing_at(const struct nothings *nothings, __u64 address)
{
	for (unsigned int i = 0; i < nothings->n; i++)
		if (nothings->functions[i].address == address)
			return &nothings->functions[i];
	return NULL;
}

/* The first word that has the address of one; NULL: there is none. */
static const struct pclntab_function *find_value(struct golang *go, const struct nothings *nothings, __u64 from,
						 __u64 to, __u64 *value)
{
	const __u64 first = nothings->functions[0].address, last = nothings->functions[nothings->n - 1].address;

	for (; from + 8 <= to; from += PIECE) {
		__u64 size = (to - from < PIECE ? to - from : PIECE) & -8ULL;
		const __u8 *bytes = image_at(&go->image, from, size);

		for (__u64 at = 0; bytes && at < size; at += 8) {
			const struct pclntab_function *found;
			__u64 word;

			memcpy(&word, bytes + at, sizeof(word));
			found = word >= first && word <= last ? nothing_at(nothings, word) : NULL;
			if (!found)
				continue;
			*value = from + at;
			return found;
		}
	}
	return NULL;
}

/* In data that nobody may write to. */
static int find_nothing(struct golang *go, struct golang_by_memory *found, struct error *err)
{
	struct nothings nothings;

	find_nothings(go, &nothings);
	if (!nothings.n)
		return error_set(err, -ENOENT, "none of its functions is of one instruction, RET");
	for (unsigned int i = 0; i < go->image.n_segments; i++) {
		const struct image_segment *segment = &go->image.segments[i];
		const struct pclntab_function *function;

		if (segment->writable || segment->executable)
			continue;
		function = find_value(go, &nothings, (segment->address + 7) & -8ULL, segment->address + segment->size,
				      &found->value);
		if (!function)
			continue;
		snprintf(found->name, sizeof(found->name), "%s", function->name);
		return 0;
	}
	return error_set(err, -ENOENT, "its read-only data has no func() that does nothing");
}

int golang_find_by_memory(struct golang *go, const struct golang_apf *apf, struct golang_by_memory *out,
			  struct error *err)
{
	struct golang_by_memory found = { 0 };
	int ret;

	/* What stands in its read-only data may look like an address, but none is: those its loader writes. */
	if (go->image.pie)
		return error_set(err, -ENOTSUP, "it is position-independent (PIE)");
	ret = handed_find(go, &apf->handle, &apf->execute_value, &found.execute, err) ?: find_nothing(go, &found, err);

	if (!ret)
		*out = found;
	return ret;
}
