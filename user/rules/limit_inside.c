/* SPDX-License-Identifier: GPL-2.0 */
#include "rules/limit_inside.h"

#include "rules/rules.h"

static bool has_paths(const struct limit *limit)
{
	for (size_t i = 0; i < limit->n_rules; i++)
		if (limit->rules[i].paths.n && !texts_have(&limit->rules[i].paths, RULE_ANY))
			return true;
	return false;
}

void limit_inside(const struct limit *limit, json_t *texts)
{
	if (has_paths(limit))
		json_array_append_new(texts,
				      json_string("inside the server it is for no request: paths are not read there"));
	if (limit->key & WEIR_KEY_OBJECT)
		json_array_append_new(texts,
				      json_string("inside the server it is for no request: Events are not read there"));
}
