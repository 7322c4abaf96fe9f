/* SPDX-License-Identifier: GPL-2.0 */
#include "show/explain.h"

#include <string.h>

#include "weir/inside/turn.h"

#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "show/trace.h"

#define TWO_TO_64 18446744073709551616.0

/* --- rules */

static json_t *rule_leads_to(const struct explain_context *context, const struct server_rule *rule)
{
	char name[SLOT_NAME_SIZE];

	if (rule->limit == WEIR_RULE_EXEMPT)
		return json_string("exempt");
	if (rule->limit == WEIR_RULE_NOTHING)
		return json_string("nothing");
	server_slot_name(context->server, rule->limit, name);
	return json_string(name);
}

/* Every rule that matches, in their order; of each family the first one counts, and none behind one that exempts. */
static json_t *rules_json(const struct weir_explained *explained, const struct explain_context *context)
{
	json_t *list = json_array();
	size_t family = 0;
	bool over = false;

	for (size_t i = 0; i < context->n_rules && explained->generation; i++) {
		const struct server_rule *rule = &context->rules[i];
		bool counts;

		if (!weir_vector_has(&explained->matched, i))
			continue;
		counts = !over && rule->family != family;
		json_array_append_new(list, json_pack("{s:s, s:i, s:o?, s:b}", "of", rule->label, "nth", (int)rule->nth,
						      "leads_to", rule_leads_to(context, rule), "counts", counts));
		family = rule->family;
		over = over || rule->limit == WEIR_RULE_EXEMPT;
	}
	return list;
}

/* --- limits */

static json_t *seconds_json(__u64 ns)
{
	return ns == WEIR_NEVER_NS ? json_null() : json_real((double)ns / WEIR_NS_PER_S);
}

static double tokens_of(struct weir_tokens tokens)
{
	return tokens.high + tokens.low / TWO_TO_64;
}

static bool is_lane(const struct explain_context *context, const char *lane)
{
	return context->lane && !strcmp(context->lane, lane);
}

/* Does it pass, and have its connection wait until it has paid? Neither seats nor what takes too long are owed (bpf/inside_owe.h). */
static bool is_owed(const struct weir_explained_limit *e, const struct explain_context *context)
{
	const __u32 never = WEIR_EXPLAINED_PENALISED | WEIR_EXPLAINED_SEATS | WEIR_EXPLAINED_DENY;

	return is_lane(context, "hold") && !context->server->dry_run &&
	       (e->flags & (WEIR_EXPLAINED_REFUSED | never)) == WEIR_EXPLAINED_REFUSED &&
	       e->wait_ns < WEIR_TURN_DEBT_NS;
}

static const char *says(const struct weir_explained_limit *e, bool asked, const struct explain_context *context)
{
	bool dry_run = context->server->dry_run || is_lane(context, "see") || is_lane(context, "hold");

	if (!(e->flags & WEIR_EXPLAINED_ASKED))
		return "nothing";
	if (e->flags & WEIR_EXPLAINED_PENALISED)
		return "penalised";
	if (!asked)
		return "not_asked";
	if (is_owed(e, context))
		return "owes";
	if (e->flags & WEIR_EXPLAINED_REFUSED && !dry_run)
		return e->flags & WEIR_EXPLAINED_DENY ? "denies" : "refuses";
	return e->flags & (WEIR_EXPLAINED_REFUSED | WEIR_EXPLAINED_DRY_RUN) ? "would_refuse" : "admits";
}

static void add_rate(json_t *object, const struct weir_explained_limit *e)
{
	json_object_set_new(object, "qps", json_real((double)e->per_ns / WEIR_QPS));
	json_object_set_new(object, "burst", json_integer(e->burst));
	json_object_set_new(object, "tokens", json_real(tokens_of(e->tokens)));
}

static void add_seats(json_t *object, const struct weir_explained_limit *e)
{
	json_object_set_new(object, "in_flight", json_integer(e->seats));
	json_object_set_new(object, "taken", json_integer(e->taken));
	json_object_set_new(object, "wants", json_integer(e->wanted));
}

static void add_amounts(json_t *object, const struct weir_explained_limit *e)
{
	if (e->flags & WEIR_EXPLAINED_DENY)
		json_object_set_new(object, "deny", json_true());
	else if (e->flags & WEIR_EXPLAINED_SEATS)
		add_seats(object, e);
	else
		add_rate(object, e);
	if (e->flags & WEIR_EXPLAINED_REFUSED)
		json_object_set_new(object, "wait",
				    seconds_json(e->flags & WEIR_EXPLAINED_PENALISED ? e->penalty_ns : e->wait_ns));
	if (e->failures)
		json_object_set_new(object, "failures", json_integer(e->failures));
	if (e->flags & WEIR_EXPLAINED_NEW)
		json_object_set_new(object, "new", json_true());
}

static const char *const widths[] = {
	[WEIR_WIDTH_UNKNOWN] = "unknown", [WEIR_WIDTH_LEARNED] = "learned", [WEIR_WIDTH_SET] = "policy",
	[WEIR_WIDTH_PAGE] = "page",	  [WEIR_WIDTH_NAME] = "name",
};

/* Of a LIST: what it takes of a level, and why. */
static json_t *width_json(const struct weir_width_said *width)
{
	if (!width->why || width->why >= sizeof(widths) / sizeof(*widths))
		return NULL;
	return json_pack("{s:I, s:s, s:I}", "seats", (json_int_t)width->seats, "why", widths[width->why], "bytes",
			 (json_int_t)width->bytes);
}

/* asked: nobody is penalised, so that the limits have been asked. In a pause nobody looks whose the request is. */
static json_t *limit_json(const struct weir_explained_limit *e, const struct explain_context *context, bool asked)
{
	bool paused = context->server->paused;
	CLEANUP_FREE char *subject = e->subject && !paused ? context->name(context->arg, e->subject) : NULL;
	char name[SLOT_NAME_SIZE];
	json_t *object;

	server_slot_name(context->server, e->slot, name);
	object = json_pack("{s:s, s:o, s:s}", "limit", name, "subject", subject ? json_string(subject) : json_null(),
			   "says", paused ? "not_asked" : says(e, asked, context));
	if (object && !paused && e->flags & WEIR_EXPLAINED_ASKED)
		add_amounts(object, e);
	return object;
}

static json_t *limits_json(const struct weir_explained *explained, const struct explain_context *context)
{
	bool asked = true;
	json_t *list = json_array();

	for (__u32 i = 0; i < explained->n_limits && i < WEIR_MATCHES_MAX; i++)
		asked = asked && !(explained->limits[i].flags & WEIR_EXPLAINED_PENALISED);
	for (__u32 i = 0; i < explained->n_limits && i < WEIR_MATCHES_MAX; i++)
		json_array_append_new(list, limit_json(&explained->limits[i], context, asked));
	return list;
}

/* How long its connection is to wait; 0: it owes nothing, or there is a limit that it passes without ever paying. */
static __u64 owed_ns(const struct weir_explained *explained, const struct explain_context *context)
{
	__u64 longest_ns = 0;

	for (__u32 i = 0; i < explained->n_limits && i < WEIR_MATCHES_MAX; i++) {
		const struct weir_explained_limit *e = &explained->limits[i];

		if (is_owed(e, context))
			longest_ns = e->wait_ns > longest_ns ? e->wait_ns : longest_ns;
		else if (e->flags & (WEIR_EXPLAINED_REFUSED | WEIR_EXPLAINED_DRY_RUN))
			return 0;
	}
	return longest_ns;
}

/* --- the whole */

static const char *const exempt_by[] = {
	[WEIR_EXEMPT_HEALTH] = "health_check",
	[WEIR_EXEMPT_GROUP] = "group",
	[WEIR_EXEMPT_RULE] = "rule",
};

json_t *explain_json(const struct weir_explained *explained, const struct explain_context *context)
{
	const struct weir_trace *trace = &explained->trace;
	__u64 owed = trace->decision == WEIR_DRY_RUN_SHED ? owed_ns(explained, context) : 0;
	enum weir_reason decision = owed ? WEIR_PASSED : trace->decision;
	json_t *object = json_pack("{s:s, s:s, s:O, s:o?, s:o?, s:o*}", "server", context->server->name, "decision",
				   metrics_reasons[decision].label, context->about, context->request, "rules",
				   rules_json(explained, context), "limits", limits_json(explained, context), "list",
				   width_json(&explained->width));

	if (!object)
		return NULL;
	if (owed)
		json_object_set_new(object, "owed", seconds_json(owed));
	if ((decision == WEIR_SHED || decision == WEIR_DRY_RUN_SHED) && trace->retry_s)
		json_object_set_new(object, "retry_after", json_integer(trace->retry_s));
	if (trace_status(trace))
		json_object_set_new(object, "status", json_integer(trace_status(trace)));
	if (explained->exempt && explained->exempt < sizeof(exempt_by) / sizeof(*exempt_by))
		json_object_set_new(object, "exempt_by", json_string(exempt_by[explained->exempt]));
	if (context->server->paused)
		json_object_set_new(object, "paused", json_true());
	if (explained->event_key < WEIR_REASON_COUNT)
		json_object_set_new(object, "event", json_string(metrics_reasons[explained->event_key].label));
	return object;
}
