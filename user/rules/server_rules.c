/* SPDX-License-Identifier: GPL-2.0 */
#include "rules/server_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weir/base/subject.h"

#include "base/cleanup.h"
#include "rules/identity.h"

/* --- limits */

static void add_group(const struct server *server, const char *group, struct weir_groups *groups)
{
	int bit = identity_group_bit(&server->identity, group);

	if (bit >= 0)
		weir_groups_add(groups, bit);
}

/* Those that have a count: the ones that its rules name, and its overrides if they are of groups alone. */
static void counted_groups(const struct server *server, const struct limit *limit, struct weir_groups *groups)
{
	if (!(limit->key & WEIR_KEY_GROUP))
		return;
	for (size_t i = 0; i < limit->n_rules; i++)
		for (size_t j = 0; j < limit->rules[i].groups.n; j++)
			add_group(server, limit->rules[i].groups.items[j], groups);
	for (size_t i = 0; i < limit->n_overrides && limit->key == WEIR_KEY_GROUP; i++)
		add_group(server, limit->overrides[i].subject, groups);
}

/* For its answers, where those name limits. */
static void name_limit(const struct server *server, __u32 slot, struct datapath_limit *out)
{
	char name[SLOT_NAME_SIZE];

	if (server->refusals != REFUSALS_NAMED)
		return;
	server_slot_name(server, slot, name);
	snprintf(out->name, sizeof(out->name), "%.*s", (int)sizeof(out->name) - 1, name);
}

void server_kernel_limit(const struct server *server, const struct limit *limit, struct datapath_limit *out)
{
	*out = (struct datapath_limit){
		.kind = limit->kind,
		.reason = limit_reason(limit->kind, limit->key),
		.key = limit->key,
		.flags = (limit->dry_run ? WEIR_LIMIT_DRY_RUN : 0) | (limit->reset ? WEIR_LIMIT_RESET : 0) |
			 (limit->n_rules ? WEIR_LIMIT_NARROW : 0),
		.epoch = limit->number,
		.keys = limit->key ? limit->keys ?: server->keys : 1,
		.amount = limit->amount,
		.penalty = limit->penalty,
	};
	name_limit(server, limit_slot(limit), out);
	counted_groups(server, limit, &out->groups);
}

void server_kernel_level(const struct server *server, const struct priority_level *level, struct datapath_limit *out)
{
	*out = (struct datapath_limit){
		.kind = WEIR_LIMIT_IN_FLIGHT,
		.reason = WEIR_SHED_LEVEL,
		.flags = WEIR_LIMIT_WIDE_LISTS,
		.epoch = level->number,
		.keys = 1,
		.amount = { .set = true, .seats = priority_seats(&server->priorities, level, server->concurrency) },
	};
	name_limit(server, limit_slot_of_number(level->number), out);
}

/* --- rules */

/* The input of the compiler: room for all entries, and for the labels that they point to. */
struct entries {
	struct rules_entry *of;
	char **labels;
	size_t n;
};

static void entries_clear(struct entries *entries)
{
	for (size_t i = 0; i < entries->n; i++)
		free(entries->labels[i]);
	free(entries->labels);
	free(entries->of);
}
#define CLEANUP_ENTRIES __attribute__((cleanup(entries_clear)))

static int add_entry(struct entries *entries, const struct rules_entry *entry, const char *what, const char *name)
{
	char *label;

	if (asprintf(&label, "%s \"%s\"", what, name) < 0)
		return -ENOMEM;
	entries->labels[entries->n] = label;
	entries->of[entries->n] = *entry;
	entries->of[entries->n].label = label;
	entries->n++;
	return 0;
}

static int add_schema(struct entries *entries, const struct server *server, const struct flow_schema *schema)
{
	const struct priority_level *level = priority_level(&server->priorities, schema->level);
	struct rules_entry entry = {
		.rules = schema->rules,
		.n = schema->n_rules,
		.schema = true,
		.limit = level->exempt ? WEIR_RULE_NOTHING : limit_slot_of_number(level->number),
		.in_flight = !level->exempt,
	};

	return schema->n_rules ? add_entry(entries, &entry, "flow schema", schema->name) : 0;
}

static int add_limit(struct entries *entries, const struct limit *limit)
{
	struct rules_entry entry = {
		.rules = limit->rules,
		.n = limit->n_rules,
		.limit = limit_slot(limit),
		.in_flight = weir_limit_has_seats(limit->kind),
		.connections = weir_limit_is_of_connections(limit->kind),
	};

	return add_entry(entries, &entry, "limit", limit->name);
}

static int compare_limits(const void *a, const void *b)
{
	return limit_compare(*(const struct limit *const *)a, *(const struct limit *const *)b);
}

static int add_limits(struct entries *entries, const struct server *server)
{
	CLEANUP_FREE const struct limit **sorted = calloc(server->n_limits + 1, sizeof(*sorted));
	size_t n = 0;
	int ret = 0;

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < server->n_limits; i++)
		if (!limit_is_builtin(&server->limits[i]))
			sorted[n++] = &server->limits[i];
	qsort(sorted, n, sizeof(*sorted), compare_limits);
	for (size_t i = 0; i < n && !ret; i++)
		ret = add_limit(entries, sorted[i]);
	return ret;
}

static int collect(struct entries *entries, const struct server *server)
{
	const struct rules_entry exempt = { .rules = server->exempt, .n = server->n_exempt, .limit = WEIR_RULE_EXEMPT };
	size_t most = 1 + server->priorities.n_schemas + server->n_limits;
	int ret = 0;

	entries->of = calloc(most, sizeof(*entries->of));
	entries->labels = calloc(most, sizeof(*entries->labels));
	if (!entries->of || !entries->labels)
		return -ENOMEM;
	if (server->n_exempt)
		ret = add_entry(entries, &exempt, "exemptions of server", server->name);
	for (size_t i = 0; i < server->priorities.n_schemas && !ret; i++)
		ret = add_schema(entries, server, &server->priorities.schemas[i]);
	return ret ?: add_limits(entries, server);
}

/* Whose names they are. */
struct naming {
	const struct server *server;
	const struct datapath *dp;
};

static __u64 name_subject(void *context, enum weir_name_kind kind, const void *bytes, size_t length)
{
	const struct naming *naming = context;
	struct weir_subject_hash hash;

	if (naming->dp)
		return datapath_subject(naming->dp, kind, bytes, length);
	weir_subject_start(&hash, (const __u64[2]){ 0 }, kind);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&hash, ((const __u8 *)bytes)[i]);
	return weir_subject_end(&hash);
}

static int name_group(void *context, const char *name)
{
	const struct naming *naming = context;

	return identity_group_bit(&naming->server->identity, name);
}

static void name_groups(const struct texts *groups, const struct server *server, const struct datapath *dp,
			struct weir_rules *rules)
{
	for (size_t i = 0; i < groups->n; i++) {
		const char *name = groups->items[i];
		int bit = identity_group_bit(&server->identity, name);

		if (bit >= 0)
			rules->groups[bit] = datapath_subject(dp, WEIR_NAME_GROUP, name, strlen(name));
	}
}

int server_rules(const struct server *server, struct datapath *dp, struct rules **out, struct error *err)
{
	CLEANUP_ENTRIES struct entries entries = { 0 };
	struct naming naming = { server, dp };
	const struct rules_names names = { name_subject, name_group, &naming };
	struct rules *rules = NULL;
	int ret = collect(&entries, server);

	if (ret)
		return error_set(err, ret, "out of memory");
	if (entries.n)
		ret = rules_compile(entries.of, entries.n, &names, &rules, err);
	if (ret)
		return ret;
	if (rules && dp) {
		name_groups(&server->identity.exempt_groups, server, dp, &rules->value);
		name_groups(&server->identity.rule_groups, server, dp, &rules->value);
	}
	*out = rules;
	return 0;
}

/* --- the list */

static int list_entry(const struct rules_entry *entry, size_t family, struct server_rule *out)
{
	for (size_t i = 0; i < rules_count(entry); i++) {
		out[i] = (struct server_rule){
			.label = strdup(entry->label), .nth = i + 1, .limit = entry->limit, .family = family
		};
		if (!out[i].label)
			return -ENOMEM;
	}
	return 0;
}

int server_rules_list(const struct server *server, struct server_rule **out, struct error *err)
{
	CLEANUP_ENTRIES struct entries entries = { 0 };
	struct server_rule *rules = NULL;
	size_t total = 0, n = 0, family = 0;
	int ret = collect(&entries, server);

	for (size_t i = 0; i < entries.n; i++)
		total += rules_count(&entries.of[i]);
	if (!ret)
		rules = calloc(total + 1, sizeof(*rules));
	if (!rules)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < entries.n && !ret; i++) {
		family += !(i && entries.of[i].schema && entries.of[i - 1].schema);
		ret = list_entry(&entries.of[i], family, &rules[n]);
		n += rules_count(&entries.of[i]);
	}
	if (ret) {
		server_rules_list_free(rules, n);
		return error_set(err, ret, "out of memory");
	}
	*out = rules;
	return n;
}

void server_rules_list_free(struct server_rule *rules, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(rules[i].label);
	free(rules);
}
