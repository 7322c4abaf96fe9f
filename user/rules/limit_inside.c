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

static bool is_for_good(const struct limit *limit, const struct datapath_amount *amount)
{
	return amount->set && (amount->deny || (!weir_limit_has_seats(limit->kind) && !amount->per_ns));
}

static bool refuses_for_good(const struct limit *limit)
{
	for (size_t i = 0; i < limit->n_overrides; i++)
		if (is_for_good(limit, &limit->overrides[i].amount))
			return true;
	return is_for_good(limit, &limit->amount);
}

static void limit_held(const struct limit *limit, json_t *texts)
{
	if (refuses_for_good(limit))
		json_array_append_new(
			texts,
			json_string(
				"with hold nobody is refused: whom it denies, or gives no tokens, passes when --hold-max is over"));
	if (limit->kind == WEIR_LIMIT_IN_FLIGHT)
		json_array_append_new(
			texts,
			json_string(
				"with hold no seat is waited for: requests above it pass, and their connection is held for a second"));
	if (limit->penalty.parts)
		json_array_append_new(texts,
				      json_string("with hold nobody is refused, so its penalty begins for nobody"));
}

static bool is_of_long_running(const struct limit *limit)
{
	for (size_t i = 0; i < limit->n_rules; i++)
		if (limit->rules[i].long_running == RULE_YES || texts_have(&limit->rules[i].verbs, "watch"))
			return true;
	return false;
}

static bool denies(const struct limit *limit)
{
	for (size_t i = 0; i < limit->n_overrides; i++)
		if (limit->overrides[i].amount.deny)
			return true;
	return limit->amount.deny;
}

static void limit_by_memory(const struct limit *limit, json_t *texts)
{
	if (is_of_long_running(limit))
		json_array_append_new(
			texts,
			json_string("where the server refuses by memory, long-running requests, as watches, pass"));
	if (denies(limit))
		json_array_append_new(texts,
				      json_string("where the server refuses by memory, it answers 429, not 403"));
}

void limit_inside(const struct limit *limit, struct inside_refusals how, json_t *texts)
{
	if (weir_limit_is_of_connections(limit->kind))
		return;
	if (has_paths(limit))
		json_array_append_new(texts,
				      json_string("inside the server it is for no request: paths are not read there"));
	if (limit->key & WEIR_KEY_OBJECT)
		json_array_append_new(texts,
				      json_string("inside the server it is for no request: Events are not read there"));
	if (how.holds)
		limit_held(limit, texts);
	if (how.writes)
		limit_by_memory(limit, texts);
}

/* By the peer alone: as the kernel has it there, such a request has no namespace, and is neither for a resource nor long-running. */
static bool is_for_peers(const struct rule *rule)
{
	return rules_call_meets(rule, WEIR_VERB_OTHER) && !rule->namespaces.n && rule_of_nobody(rule);
}

static bool some_for_peers(const struct limit *limit)
{
	for (size_t i = 0; i < limit->n_rules; i++)
		if (is_for_peers(&limit->rules[i]))
			return true;
	return !limit->n_rules;
}

const char *limit_inside_any(const struct limit *limit)
{
	if (weir_limit_is_of_connections(limit->kind) || (!(limit->key & WEIR_KEY_NAMESPACE) && some_for_peers(limit)))
		return NULL;
	return "inside the server it is for no request: what is no Kubernetes API server says no users, verbs, namespaces or resources";
}
