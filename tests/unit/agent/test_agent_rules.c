/* SPDX-License-Identifier: GPL-2.0 */
/* Limits with names and rules of their own, and what a server comes with, over a kernel side in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent_fixture.h"
#include "base/cleanup.h"
#include "base/rate.h"
#include "fake_datapath.h"
#include "rules/identity.h"

#define SECRETS                                                                                          \
	"{\"limit\":{\"name\":\"secrets\",\"key\":\"namespace,user\",\"qps\":5,\"burst\":10,\"rules\":[" \
	"{\"verbs\":[\"list\"],\"resources\":[\"secrets\"],\"groups\":[\"qa\"]}]}}"

static struct limit *the_limit(const struct fixture *f, const char *name)
{
	return server_limit(f->agent.state.servers[0], name);
}

static struct datapath_limit *in_kernel(const struct fixture *f, const char *name)
{
	return fake_limit(&fake_nets[1], 0, limit_slot(the_limit(f, name)));
}

static void set_and_delete(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];
	__u32 slot, number;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", SECRETS);
	slot = limit_slot(the_limit(f, "secrets"));
	number = the_limit(f, "secrets")->number;
	assert_in_range(slot, WEIR_BUILTIN_LIMITS, WEIR_SERVER_LIMITS - 1);
	assert_int_equal(in_kernel(f, "secrets")->epoch, number);
	assert_int_equal(in_kernel(f, "secrets")->key, WEIR_KEY_NAMESPACE | WEIR_KEY_USER);
	assert_int_equal(in_kernel(f, "secrets")->reason, WEIR_SHED_COMBINED);
	assert_true(in_kernel(f, "secrets")->amount.per_ns == 5 * WEIR_QPS);
	assert_true(dp->servers[0].has_rules);
	assert_int_equal(dp->servers[0].rules.rules[0].limit, slot);
	assert_int_equal(dp->servers[0].n_groups, 2); /* system:masters, qa */
	succeed(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"qps\":1,\"burst\":2},\"subject\":\"ns1/alice\"}");
	assert_true(fake_override(dp, 0, slot, WEIR_KEY_NAMESPACE | WEIR_KEY_USER, "ns1/alice")->burst == 2);
	succeed(f, "limit delete", "{\"limit\":\"secrets\"}");
	assert_null(the_limit(f, "secrets"));
	assert_null(fake_limit(dp, 0, slot));
	assert_false(dp->servers[0].has_rules);
	assert_int_equal(dp->servers[0].n_groups, 1);
	succeed(f, "limit set", SECRETS);
	assert_int_equal(the_limit(f, "secrets")->number, number + 1);
}

/* What is not said stays as it is. */
static void change(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", SECRETS);
	succeed(f, "limit set",
		"{\"limit\":{\"name\":\"secrets\",\"mode\":\"dry-run\",\"penalty\":\"exponential:1s..60s\"}}");
	assert_int_equal(in_kernel(f, "secrets")->flags, WEIR_LIMIT_DRY_RUN | WEIR_LIMIT_NARROW);
	assert_int_not_equal(in_kernel(f, "secrets")->penalty.parts, 0);
	assert_true(in_kernel(f, "secrets")->amount.burst == 10);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"qps\":7,\"burst\":8}}");
	assert_int_equal(in_kernel(f, "secrets")->flags, WEIR_LIMIT_DRY_RUN | WEIR_LIMIT_NARROW);
	assert_true(in_kernel(f, "secrets")->amount.burst == 8);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"mode\":\"enforce\",\"penalty\":\"off\"}}");
	assert_int_equal(in_kernel(f, "secrets")->flags, WEIR_LIMIT_NARROW);
	assert_int_equal(in_kernel(f, "secrets")->penalty.parts, 0);
	assert_int_equal(the_limit(f, "secrets")->n_rules, 1);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"all\",\"key\":\"user\",\"qps\":1,\"burst\":1}}");
	assert_int_equal(in_kernel(f, "all")->flags, 0);
}

static void refused(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;
	unsigned int writes;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", SECRETS);
	before = saved_state(f);
	writes = fake_nets[1].writes;
	refuse(f, "limit set", "{\"limit\":{\"name\":\"new\",\"qps\":1,\"burst\":1}}", "key");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"new\",\"key\":\"user\"}}", "in_flight or deny are missing");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"key\":\"user\",\"qps\":1,\"burst\":1}}",
	       "key cannot be changed: delete it first");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"in_flight\":1}}", "delete it first");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"rules\":[]}}", "rules cannot be changed");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"in_flight\":1},\"subject\":\"a/b\"}", "a rate");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"qps\":1,\"burst\":1},\"subject\":\"a\"}",
	       "namespace/user");
	refuse(f, "limit set",
	       "{\"limit\":{\"name\":\"secrets\",\"qps\":1,\"burst\":1,\"mode\":\"dry-run\"},\"subject\":\"a/b\"}",
	       "mode");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"penalty\":\"exponential\"}}", "penalty");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"overrides\":[]}}", "one subject");
	refuse(f, "limit delete", "{\"limit\":\"secrets\",\"subject\":\"a/b\"}", "nothing for");
	assert_saved(f, before);
	assert_int_equal(fake_nets[1].writes, writes);
}

/* More limits than one request may be charged to are refused before anything is changed. */
static void too_many_meet(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;
	char text[128];

	succeed(f, "attach", ATTACH);
	for (int i = 0; i < WEIR_NAMED_MAX; i++) {
		snprintf(text, sizeof(text), "{\"limit\":{\"name\":\"l%d\",\"key\":\"user\",\"qps\":1,\"burst\":1}}",
			 i);
		succeed(f, "limit set", text);
	}
	before = saved_state(f);
	refuse(f, "limit set", "{\"limit\":{\"name\":\"more\",\"key\":\"user\",\"qps\":1,\"burst\":1}}",
	       "limit \"more\"");
	assert_saved(f, before);
	assert_null(the_limit(f, "more"));
}

/* Wherever the kernel fails, all is as before. */
static void undone(void **state)
{
	static const char *const calls[] = { "datapath_groups_set", "datapath_limit_set", "datapath_rules_set",
					     "datapath_tokens_set" };
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"first\",\"key\":\"total\",\"in_flight\":3}}");
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		fake_fail(calls[i], 1);
		refuse(f, "limit set", SECRETS, calls[i]);
		assert_null(the_limit(f, "secrets"));
		assert_int_equal(f->agent.state.servers[0]->n_limits, 1);
		assert_int_equal(dp->servers[0].n_groups, 1);
		assert_int_equal(dp->servers[0].rules.rules[0].limit, limit_slot(the_limit(f, "first")));
		assert_false(weir_vector_has(&dp->servers[0].rules.all, 1));
	}
	fake_fail("datapath_rules_set", 1);
	refuse(f, "limit delete", "{\"limit\":\"first\"}", fake_failing);
	assert_non_null(in_kernel(f, "first"));
	succeed(f, "limit delete", "{\"limit\":\"first\"}");
}

/* A limit of groups counts those that its rules or its overrides name. */
static void groups(void **state)
{
	struct fixture *f = *state;
	const struct identity_settings *identity;
	struct weir_groups counted = { 0 };

	succeed(f, "attach", ATTACH);
	identity = &f->agent.state.servers[0]->identity;
	succeed(f, "limit set", "{\"limit\":{\"name\":\"g\",\"key\":\"group\",\"in_flight\":3},\"subject\":\"dev\"}");
	weir_groups_add(&counted, identity_group_bit(identity, "dev"));
	assert_memory_equal(&in_kernel(f, "g")->groups, &counted, sizeof(counted));
	assert_false(in_kernel(f, "g")->amount.set);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"g\",\"in_flight\":4},\"subject\":\"qa\"}");
	weir_groups_add(&counted, identity_group_bit(identity, "qa"));
	assert_memory_equal(&in_kernel(f, "g")->groups, &counted, sizeof(counted));
	assert_true(fake_override(&fake_nets[1], 0, limit_slot(the_limit(f, "g")), WEIR_KEY_GROUP, "qa")->seats == 4);
	succeed(f, "limit delete", "{\"limit\":\"g\",\"subject\":\"dev\"}");
	succeed(f, "limit delete", "{\"limit\":\"g\",\"subject\":\"qa\"}");
	assert_null(the_limit(f, "g"));
	assert_int_equal(identity_group_bit(identity, "qa") < 0, 1);
}

/* As kube-apiserver has it; 0 is no limit. */
static void max_in_flight(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *result = NULL;
	const struct limit *reading, *changing;

	succeed(f, "attach", ATTACH);
	succeed(f, "max-in-flight", "{\"read_only\":400,\"mutating\":200}");
	reading = the_limit(f, "read-only-in-flight");
	changing = the_limit(f, "mutating-in-flight");
	assert_int_equal(in_kernel(f, "read-only-in-flight")->amount.seats, 400);
	assert_int_equal(in_kernel(f, "read-only-in-flight")->kind, WEIR_LIMIT_IN_FLIGHT);
	assert_int_equal(in_kernel(f, "mutating-in-flight")->amount.seats, 200);
	assert_int_equal(reading->rules[0].verbs.n, 3);
	assert_int_equal(reading->rules[0].long_running, RULE_NO);
	assert_int_equal(reading->rules[0].verbs.n + changing->rules[0].verbs.n, WEIR_VERB_COUNT - 1);
	result = run(f, "max-in-flight", "{\"mutating\":0}");
	assert_int_equal(json_integer_value(json_object_get(result, "read_only")), 400);
	assert_int_equal(json_integer_value(json_object_get(result, "mutating")), 0);
	assert_null(the_limit(f, "mutating-in-flight"));
	fake_fail("datapath_rules_set", 1);
	refuse(f, "max-in-flight", "{\"read_only\":5,\"mutating\":6}", fake_failing);
	assert_int_equal(in_kernel(f, "read-only-in-flight")->amount.seats, 400);
	refuse(f, "max-in-flight", "{\"read_only\":1000000001}", "1000000000");
}

#define WITH_LEVELS                                                                                                        \
	"{\"server\":{\"name\":\"api\",\"listen\":[\"*:80\"],\"concurrency\":100,\"priority_levels\":["                    \
	"{\"name\":\"free\",\"exempt\":true},{\"name\":\"low\",\"shares\":30},{\"name\":\"high\",\"shares\":10}],"         \
	"\"flow_schemas\":[{\"name\":\"rest\",\"level\":\"low\",\"precedence\":10000,\"rules\":[{}]},"                     \
	"{\"name\":\"boss\",\"level\":\"high\",\"rules\":[{\"users\":[\"boss\"]}]},{\"name\":\"none\",\"level\":\"low\"}," \
	"{\"name\":\"ops\",\"level\":\"free\",\"precedence\":1,\"rules\":[{\"groups\":[\"ops\"]}]}],"                      \
	"\"exempt\":[{\"paths\":[\"/metrics\"]},{\"sources\":[\"10.0.0.0/8\"]}],"                                          \
	"\"limits\":[{\"name\":\"l\",\"key\":\"total\",\"in_flight\":1},{\"name\":\"k\",\"key\":\"user\",\"in_flight\":2}]}}"

/* Exemptions, then schemas by precedence, then limits, narrow ones first. */
static void order(void **state)
{
	struct fixture *f = *state;
	const struct weir_rules *rules = &fake_nets[1].servers[0].rules;
	const struct server *server;
	__u32 low, high;

	succeed(f, "attach", WITH_LEVELS);
	server = f->agent.state.servers[0];
	low = limit_slot_of_number(priority_level(&server->priorities, "low")->number);
	high = limit_slot_of_number(priority_level(&server->priorities, "high")->number);
	assert_int_equal(fake_limit(&fake_nets[1], 0, low)->amount.seats, 75);
	assert_int_equal(fake_limit(&fake_nets[1], 0, high)->amount.seats, 25);
	assert_int_equal(fake_limit(&fake_nets[1], 0, high)->flags, WEIR_LIMIT_WIDE_LISTS);
	assert_int_equal(fake_limit(&fake_nets[1], 0, high)->reason, WEIR_SHED_LEVEL);
	const struct weir_rule expected[] = {
		{ WEIR_RULE_EXEMPT, 2 },
		{ WEIR_RULE_EXEMPT, 2 },
		{ WEIR_RULE_NOTHING, 5 },
		{ high, 5 },
		{ low, 5 },
		{ limit_slot(the_limit(f, "k")), 6 },
		{ limit_slot(the_limit(f, "l")), 7 },
	};

	assert_memory_equal(rules->rules, expected, sizeof(expected));
	assert_true(weir_vector_has(&rules->all, 6));
	assert_false(weir_vector_has(&rules->all, 7));
	assert_true(rules->groups[identity_group_bit(&server->identity, "ops")] ==
		    datapath_subject(&fake_nets[1], WEIR_NAME_GROUP, "ops", 3));
	assert_int_equal(fake_nets[1].servers[0].n_sources, 1);
}

/* A new agent finds everything, under the same numbers and bits. */
static void take_over(void **state)
{
	struct fixture *f = *state;
	struct datapath before;

	succeed(f, "attach", WITH_LEVELS);
	succeed(f, "limit set", SECRETS);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"qps\":1,\"burst\":2},\"subject\":\"ns1/alice\"}");
	succeed(f, "limit delete", "{\"limit\":\"l\"}");
	before = fake_nets[1];
	end_agent(f);
	start_agent(f);
	assert_memory_equal(fake_nets[1].limits, before.limits, sizeof(before.limits));
	assert_memory_equal(fake_nets[1].overrides, before.overrides, sizeof(before.overrides));
	assert_memory_equal(&fake_nets[1].servers[0].rules, &before.servers[0].rules, sizeof(struct weir_rules));
}

static void counts(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *status = NULL, *metrics = NULL;
	CLEANUP_FREE char *limits = NULL, *text = NULL;
	__u32 slot;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"slow\",\"key\":\"user\",\"in_flight\":3}}");
	slot = limit_slot(the_limit(f, "slow"));
	fake_nets[1].servers[0].counts[slot] = (struct weir_limit_counts){ 9, 8, 7, 3 };
	fake_nets[1].servers[0].taken[slot] = 2;
	status = run(f, "status", "{}");
	limits = json_dumps(json_object_get(json_array_get(json_object_get(status, "servers"), 0), "limits"),
			    JSON_COMPACT);
	assert_string_equal(limits,
			    "[{\"limit\":\"slow\",\"dry_run\":false,\"admitted\":9,\"refused\":8,\"dry_run_refused\":7,"
			    "\"in_flight\":2,\"highest\":3}]");
	metrics = run(f, "metrics", "{}");
	text = metrics_text(json_object_get(metrics, "metrics"));
	assert_non_null(strstr(text, "weir_limit_in_flight{server=\"api\",limit=\"slow\"} 2\n"));
	assert_non_null(
		strstr(text, "weir_limit_requests_total{server=\"api\",limit=\"slow\",outcome=\"refused\"} 8\n"));
}

/* A server that is not in force takes limits, and has them when it is. */
static void not_in_force(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	end_agent(f);
	fake_fail("datapath_open", 1);
	start_agent(f);
	assert_false(f->agent.servers[0].in_force);
	succeed(f, "limit set", SECRETS);
	refuse(f, "limit set", "{\"limit\":{\"name\":\"secrets\",\"in_flight\":1}}", "delete it first");
	reconcile(f);
	assert_true(f->agent.servers[0].in_force);
	assert_true(in_kernel(f, "secrets")->amount.burst == 10);
	assert_true(fake_nets[1].servers[0].has_rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(set_and_delete), with_agent(change), with_agent(refused),	  with_agent(too_many_meet),
		with_agent(undone),	    with_agent(groups), with_agent(order),	  with_agent(max_in_flight),
		with_agent(take_over),	    with_agent(counts), with_agent(not_in_force),
	};

	return cmocka_run_group_tests_name("agent_rules", tests, NULL, NULL);
}
