/* SPDX-License-Identifier: GPL-2.0 */
#include "many_rules.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "rules/rules.h"

#define LAST                                                                                       \
	"{\"groups\": [\"system:authenticated\"], \"verbs\": [\"get\"], \"cluster_scope\": true, " \
	"\"paths\": [\"/\"], \"sources\": [\"127.0.0.0/8\"]}"

static __u64 name_subject(void *context, enum weir_name_kind kind, const void *bytes, size_t length)
{
	return datapath_subject(context, kind, bytes, length);
}

static int name_group(void *context, const char *name)
{
	(void)context;
	(void)name;
	return MANY_RULES_GROUP;
}

/* One that is for somebody else. */
static json_t *other_rule(__u32 i)
{
	return json_pack("{s:[o], s:[s], s:[o], s:[o], s:[o]}", "users", json_sprintf("other%u", i), "verbs", "list",
			 "namespaces", json_sprintf("namespace%u", i), "paths", json_sprintf("/path%u/*", i), "sources",
			 json_sprintf("10.%u.%u.0/24", i / 256, i % 256));
}

static int read_rules(struct rule *rules, __u32 n, struct error *err)
{
	int ret = 0;

	for (__u32 i = 0; i < n && !ret; i++) {
		CLEANUP_JSON json_t *json = i == n - 1 ? json_loads(LAST, 0, NULL) : other_rule(i);

		ret = rule_from_json(json, &rules[i], err);
	}
	return ret;
}

static int write_rules(struct datapath *dp, const struct rule *rules, __u32 n, struct error *err)
{
	const struct rules_names names = { name_subject, name_group, dp };
	const struct rules_entry entry = { .rules = rules, .n = n, .limit = MANY_RULES_SLOT, .label = "the limit" };
	CLEANUP_RULES struct rules *compiled = NULL;

	return rules_compile(&entry, 1, &names, &compiled, err) ?:
		       datapath_rules_set(dp, 0, &compiled->value, compiled->vectors, compiled->n_vectors,
					  compiled->sources, compiled->n_sources, err);
}

int many_rules_set(struct datapath *dp, __u32 n, __u64 per_ns, __u32 keys, struct error *err)
{
	const struct datapath_limit limit = {
		.kind = WEIR_LIMIT_RATE,
		.reason = WEIR_SHED_USER,
		.key = WEIR_KEY_USER,
		.epoch = 1,
		.keys = keys,
		.amount = { .set = true, .per_ns = per_ns, .burst = 1000000 },
	};
	struct rule *rules = calloc(n, sizeof(*rules));
	int ret = rules ? read_rules(rules, n, err) : -ENOMEM;

	ret = ret ?: datapath_limit_set(dp, 0, MANY_RULES_SLOT, &limit, err) ?: write_rules(dp, rules, n, err);
	for (__u32 i = 0; rules && i < n; i++)
		rule_clear(&rules[i]);
	free(rules);
	return ret;
}

int many_rules_unset(struct datapath *dp, struct error *err)
{
	return datapath_rules_set(dp, 0, NULL, NULL, 0, NULL, 0, err) ?:
		       datapath_limit_delete(dp, 0, MANY_RULES_SLOT, err);
}
