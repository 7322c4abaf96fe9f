/* SPDX-License-Identifier: GPL-2.0 */
/* Rules as they are written, against the words that a request was made of. */
#include "rule_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../array_size.h"
#include "model/parse.h"
#include "rules/sources.h"

static bool has(const struct texts *list, const char *word)
{
	return !list->n || texts_have(list, "*") || texts_have(list, word);
}

static bool in_group(const struct rule_request *r, const char *group)
{
	for (size_t i = 0; i < ARRAY_SIZE(r->groups) && r->groups[i]; i++)
		if (strcmp(r->groups[i], group) == 0)
			return true;
	return false;
}

static bool subject_matches(const struct rule *rule, const struct rule_request *r)
{
	if (!rule->users.n && !rule->groups.n)
		return true;
	if (texts_have(&rule->users, r->user) || texts_have(&rule->users, "*") || texts_have(&rule->groups, "*"))
		return true;
	if (r->anonymous && texts_have(&rule->users, "system:anonymous"))
		return true;
	for (size_t i = 0; i < rule->groups.n; i++)
		if (in_group(r, rule->groups.items[i]))
			return true;
	return false;
}

static bool resource_matches(const struct rule *rule, const struct rule_request *r)
{
	char whole[128];

	if (!rule->api_groups.n && !rule->resources.n && !rule->subresources.n)
		return true;
	if (!r->of_resource || !has(&rule->api_groups, r->api_group))
		return false;
	if (rule->subresources.n)
		return texts_have(&rule->subresources, r->subresource) && has(&rule->resources, r->resource);
	snprintf(whole, sizeof(whole), "%s%s%s", r->resource, *r->subresource ? "/" : "", r->subresource);
	return has(&rule->resources, whole);
}

static bool namespace_matches(const struct rule *rule, const struct rule_request *r)
{
	if (!*r->namespace)
		return rule->cluster_scope || !rule->namespaces.n;
	return rule->namespaces.n ? has(&rule->namespaces, r->namespace) : !rule->cluster_scope;
}

static bool path_matches(const struct rule *rule, const struct rule_request *r)
{
	for (size_t i = 0; i < rule->paths.n; i++) {
		const char *path = rule->paths.items[i];
		size_t length = strlen(path);

		if (path[length - 1] == '*' ? strncmp(r->path, path, length - 1) == 0 : strcmp(r->path, path) == 0)
			return true;
	}
	return !rule->paths.n;
}

static bool source_matches(const struct rule *rule, const struct rule_request *r)
{
	for (size_t i = 0; i < rule->sources.n; i++) {
		struct datapath_cidr network, host;
		bool inside = true;

		assert_int_equal(parse_cidr(rule->sources.items[i], &network, NULL), 0);
		assert_int_equal(parse_cidr(r->source, &host, NULL), 0);
		for (unsigned int bit = 0; bit < network.bits; bit++)
			inside &= !((network.address[bit / 8] ^ host.address[bit / 8]) >> (7 - bit % 8) & 1);
		if (inside)
			return true;
	}
	return !rule->sources.n;
}

bool rule_matches(const struct rule *rule, const struct rule_request *r)
{
	if (rule->long_running && r->runs_long != (rule->long_running == RULE_YES))
		return false;
	return subject_matches(rule, r) && has(&rule->verbs, r->verb) && !(rule->non_resource && r->of_resource) &&
	       resource_matches(rule, r) && namespace_matches(rule, r) && path_matches(rule, r) &&
	       source_matches(rule, r);
}

static bool entry_matches(const struct rules_entry *entry, const struct rule_request *r)
{
	for (size_t i = 0; i < entry->n; i++)
		if (rule_matches(&entry->rules[i], r))
			return true;
	return !entry->n && !entry->schema && entry->limit < WEIR_SERVER_LIMITS;
}

int rules_match_written(const struct rules_entry *entries, size_t n, const struct rule_request *r,
			__u16 limits[static LIMITS_MAX])
{
	bool schema = false;
	int found = 0;

	for (size_t i = 0; i < n; i++) {
		if ((entries[i].schema && schema) || !entry_matches(&entries[i], r))
			continue;
		if (entries[i].limit == WEIR_RULE_EXEMPT)
			return -1;
		schema |= entries[i].schema;
		if (entries[i].limit != WEIR_RULE_NOTHING)
			limits[found++] = entries[i].limit;
	}
	return found;
}
