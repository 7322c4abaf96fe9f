/* SPDX-License-Identifier: GPL-2.0 */
/* Limits compared and copied. Settings are few: they are compared as JSON. Overrides may be many. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/shared_text.h"
#include "model/limit.h"

bool amount_equal(const struct datapath_amount *a, const struct datapath_amount *b)
{
	return a->set == b->set && a->deny == b->deny && a->per_ns == b->per_ns && a->burst == b->burst &&
	       a->seats == b->seats;
}

bool limit_overrides_equal(const struct limit *a, const struct limit *b)
{
	if (a->n_overrides != b->n_overrides)
		return false;
	for (size_t i = 0; i < a->n_overrides; i++)
		if (!amount_equal(&a->overrides[i].amount, &b->overrides[i].amount) ||
		    (a->overrides[i].subject != b->overrides[i].subject &&
		     strcmp(a->overrides[i].subject, b->overrides[i].subject) != 0))
			return false;
	return true;
}

bool limit_equal(const struct limit *a, const struct limit *b)
{
	CLEANUP_JSON json_t *settings_a = limit_settings_to_json(a), *settings_b = limit_settings_to_json(b);

	json_object_del(settings_a, "file");
	json_object_del(settings_b, "file");
	return json_equal(settings_a, settings_b) && limit_overrides_equal(a, b);
}

/* Overrides may be many: their subjects are shared. */
static int copy_overrides(const struct limit *limit, struct limit *out)
{
	out->overrides = array_copy(limit->overrides, limit->n_overrides, sizeof(*out->overrides));
	if (!out->overrides)
		return limit->n_overrides ? -ENOMEM : 0;
	for (; out->n_overrides < limit->n_overrides; out->n_overrides++)
		shared_text_again(out->overrides[out->n_overrides].subject);
	return 0;
}

int limit_copy(const struct limit *limit, struct limit *out)
{
	CLEANUP_JSON json_t *rules = rule_list_to_json(limit->rules, limit->n_rules);
	int ret;

	*out = *limit;
	out->rules = NULL;
	out->overrides = NULL;
	out->n_rules = out->n_overrides = 0;
	out->file = limit->file ? strdup(limit->file) : NULL;
	ret = limit->file && !out->file ? -ENOMEM : 0;
	ret = ret ?: rule_list_from_json(rules, "rules", &out->rules, &out->n_rules, NULL);
	return ret ?: copy_overrides(limit, out);
}
