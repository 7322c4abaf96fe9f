/* SPDX-License-Identifier: GPL-2.0 */
#include "rules/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/parse.h"

/* Two generations are in the kernel while rules change. */
#define SOURCES_MAX (WEIR_MAX_SOURCES / 2)

int rules_sources_add(struct rules_sources *sources, const char *text, __u32 rule, struct error *err)
{
	struct rules_named_source *grown;
	struct datapath_cidr cidr = { 0 };
	int ret = parse_cidr(text, &cidr, err);

	if (ret)
		return ret;
	grown = array_grow(sources->items, sources->n, sizeof(*grown));
	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	sources->items = grown;
	grown[sources->n++] = (struct rules_named_source){ .cidr = cidr, .rule = rule };
	return 0;
}

void rules_sources_clear(struct rules_sources *sources)
{
	free(sources->items);
	*sources = (struct rules_sources){ 0 };
}

/* A network comes before those within it. */
static int compare_cidrs(const struct datapath_cidr *a, const struct datapath_cidr *b)
{
	return memcmp(a->address, b->address, sizeof(a->address)) ?: a->bits - b->bits;
}

static int compare(const void *a, const void *b)
{
	const struct rules_named_source *x = a, *y = b;
	return compare_cidrs(&x->cidr, &y->cidr);
}

/* The one around sources[i], searched from the one before it outwards; -1: there is none. */
static ssize_t around(const struct datapath_source *sources, const ssize_t *outer, size_t i)
{
	ssize_t at = (ssize_t)i - 1;

	while (at >= 0 && !cidr_covers(&sources[at].cidr, sources[i].cidr.address))
		at = outer[at];
	return at;
}

static void fill(const struct rules_sources *named, const struct weir_vector *any, struct rules *rules, ssize_t *outer)
{
	for (size_t i = 0; i < named->n; i++) {
		const struct rules_named_source *item = &named->items[i];

		if (i == 0 || compare(item, item - 1)) {
			size_t n = rules->n_sources++;

			rules->sources[n].cidr = item->cidr;
			outer[n] = around(rules->sources, outer, n);
			rules->sources[n].vector = outer[n] < 0 ? *any : rules->sources[outer[n]].vector;
		}
		weir_vector_add(&rules->sources[rules->n_sources - 1].vector, item->rule);
	}
}

int rules_sources_make(struct rules_sources *sources, const struct weir_vector *any, struct rules *rules,
		       struct error *err)
{
	ssize_t *outer;

	if (!sources->n)
		return 0;
	qsort(sources->items, sources->n, sizeof(*sources->items), compare);
	rules->sources = calloc(sources->n, sizeof(*rules->sources));
	outer = calloc(sources->n, sizeof(*outer));
	if (rules->sources && outer)
		fill(sources, any, rules, outer);
	free(outer);
	if (!rules->n_sources)
		return error_set(err, -ENOMEM, "out of memory");
	if (rules->n_sources > SOURCES_MAX)
		return error_set(err, -E2BIG, "the rules of a server name %zu networks: at most %d can be kept",
				 rules->n_sources, SOURCES_MAX);
	return 0;
}

static int compare_networks(const void *a, const void *b)
{
	const struct datapath_source *x = a, *y = b;

	return compare_cidrs(&x->cidr, &y->cidr);
}

const struct weir_vector *rules_source_vector(const struct rules *rules, const char *text)
{
	struct datapath_source key = { 0 };
	const struct datapath_source *found;

	parse_cidr(text, &key.cidr, NULL);
	found = bsearch(&key, rules->sources, rules->n_sources, sizeof(key), compare_networks);
	return &found->vector;
}

const struct weir_vector *rules_source_find(const struct rules *rules, const __u8 address[static 16])
{
	const struct datapath_source *found = NULL;

	for (size_t i = 0; i < rules->n_sources; i++) {
		const struct datapath_source *source = &rules->sources[i];

		if (cidr_covers(&source->cidr, address) && (!found || source->cidr.bits > found->cidr.bits))
			found = source;
	}
	return found ? &found->vector : NULL;
}
