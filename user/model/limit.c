/* SPDX-License-Identifier: GPL-2.0 */
#include "model/limit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/shared_text.h"

static const char *const builtin[WEIR_BUILTIN_LIMITS] = {
	[WEIR_BUILTIN_TOTAL] = "total",
	[WEIR_BUILTIN_NAMESPACE] = "namespace",
	[WEIR_BUILTIN_USER] = "user",
	[WEIR_BUILTIN_SOURCE_AND_OBJECT] = "source-and-object",
};

int limit_builtin(const char *name)
{
	for (int slot = 0; slot < WEIR_BUILTIN_LIMITS; slot++)
		if (strcmp(name, builtin[slot]) == 0)
			return slot;
	return -ENOENT;
}

const char *limit_builtin_name(__u32 slot)
{
	return builtin[slot];
}

int limit_builtin_key(const char *name, __u8 *key)
{
	static const __u8 keys[WEIR_BUILTIN_LIMITS] = { 0, WEIR_KEY_NAMESPACE, WEIR_KEY_USER, WEIR_KEY_OBJECT };
	int slot = limit_builtin(name);

	if (slot < 0)
		return slot;
	*key = keys[slot];
	return 0;
}

__u32 limit_slot(const struct limit *limit)
{
	int slot = limit_builtin(limit->name);

	return slot >= 0 ? (__u32)slot : limit_slot_of_number(limit->number);
}

void limit_clear(struct limit *limit)
{
	rule_list_clear(limit->rules, limit->n_rules);
	for (size_t i = 0; i < limit->n_overrides; i++)
		shared_text_free(limit->overrides[i].subject);
	free(limit->overrides);
	free(limit->file);
	*limit = (struct limit){ 0 };
}

struct override *limit_override(const struct limit *limit, const char *subject)
{
	for (size_t i = 0; i < limit->n_overrides; i++)
		if (strcmp(limit->overrides[i].subject, subject) == 0)
			return &limit->overrides[i];
	return NULL;
}

int limit_override_add(struct limit *limit, const char *subject, const struct datapath_amount *amount)
{
	struct override *grown = array_grow(limit->overrides, limit->n_overrides, sizeof(*grown));
	const char *copy = shared_text(subject);

	if (grown)
		limit->overrides = grown;
	if (!grown || !copy) {
		shared_text_free(copy);
		return -ENOMEM;
	}
	grown[limit->n_overrides++] = (struct override){ copy, *amount };
	return 0;
}

void limit_override_remove(struct limit *limit, struct override *override)
{
	shared_text_free(override->subject);
	array_cut(limit->overrides, limit->n_overrides, sizeof(*override), override - limit->overrides);
	limit->n_overrides--;
}

enum weir_reason limit_reason(enum weir_limit_kind kind, __u8 key)
{
	if (weir_limit_is_of_connections(kind))
		return WEIR_REASON_NONE;
	if (kind == WEIR_LIMIT_IN_FLIGHT)
		return WEIR_SHED_IN_FLIGHT;
	switch (key) {
	case 0:
		return WEIR_SHED_TOTAL;
	case WEIR_KEY_NAMESPACE:
		return WEIR_SHED_NAMESPACE;
	case WEIR_KEY_USER:
		return WEIR_SHED_USER;
	case WEIR_KEY_GROUP:
		return WEIR_SHED_GROUP;
	case WEIR_KEY_SOURCE:
		return WEIR_SHED_SOURCE;
	case WEIR_KEY_OBJECT:
		return WEIR_SHED_SOURCE_AND_OBJECT;
	default:
		return WEIR_SHED_COMBINED;
	}
}

/* The narrower a key is, the more. */
static int narrowness(__u8 key)
{
	static const __u8 parts[] = { WEIR_KEY_GROUP, WEIR_KEY_NAMESPACE, WEIR_KEY_SOURCE, WEIR_KEY_USER,
				      WEIR_KEY_OBJECT };
	int rank = __builtin_popcount(key) << WEIR_KEY_PARTS;

	for (int n = 0; n < WEIR_KEY_PARTS; n++)
		rank |= key & parts[n] ? 1 << n : 0;
	return rank;
}

int limit_compare(const struct limit *a, const struct limit *b)
{
	return narrowness(b->key) - narrowness(a->key) ?: strcmp(a->name, b->name);
}
