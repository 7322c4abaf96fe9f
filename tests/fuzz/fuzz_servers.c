/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policies and many servers: what diff, apply and delete make of objects where some servers are attached already. The first
 * byte says how many. Then come commands: how it is done, how many runs of objects, and for each run its kind, its first name
 * and its length. Their documents are read as `weir check` reads a file, and what that takes goes to the agent.
 *
 * What is asked changes nothing; what fails changes nothing; what was applied is then as it was asked.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_in_memory.h"
#include "base/cleanup.h"
#include "daemon/request.h"
#include "policy/policy.h"

#define RUNS_MAX 4
#define OBJECTS_MAX 300 /* of a command */

struct input {
	const uint8_t *data;
	size_t size;
};

static unsigned int take(struct input *input)
{
	if (!input->size)
		return 0;
	input->size--;
	return *input->data++;
}

/* --- documents */

static const char *const limits[] = {
	"",
	"  limits: [{name: total, qps: 5, burst: 5}]\n",
	"  limits: [{name: w, key: user, inFlight: 4, rules: [{groups: [ops], longRunning: true}]}]\n",
	"  limits: [{name: user, qps: 1, burst: 2, overrides: [{subject: bob, qps: 2, burst: 2}]}]\n",
};

/* A server that is attached keeps its namespace: with and without it. */
static void write_throttle(FILE *file, unsigned int kind, unsigned int name)
{
	fprintf(file, "---\napiVersion: weir/v1\nkind: Throttle\nmetadata: {name: s%u}\nspec:\n", name);
	if (kind & 4)
		fprintf(file, "  listen: ['*:%u']\n  netns: /netns/%u\n", 1000 + name, 1 + name % 3);
	if (kind & 8)
		fprintf(file, "  %s: true\n", kind & 16 ? "paused" : "dryRun");
	fprintf(file, "  keys: 100\n%s", limits[kind >> 5 & 3]);
}

static void write_level(FILE *file, unsigned int kind, unsigned int name)
{
	fprintf(file,
		"---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\n"
		"metadata: {name: l%u}\nspec: {type: Limited, limited: {nominalConcurrencyShares: %u}}\n",
		name, kind >> 2);
}

static void write_schema(FILE *file, unsigned int kind, unsigned int name)
{
	fprintf(file,
		"---\napiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: f%u}\n"
		"spec:\n  priorityLevelConfiguration: {name: l%u}\n  matchingPrecedence: %u\n  rules:\n"
		"  - subjects: [{kind: Group, group: {name: g%u}}]\n"
		"    nonResourceRules: [{verbs: ['*'], nonResourceURLs: ['*']}]\n",
		name, kind & 4 ? 0 : name, 1 + (kind >> 3), name);
}

static void write_events(FILE *file, unsigned int kind)
{
	fprintf(file,
		"---\napiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"
		"limits: [{type: %s, qps: 5, burst: 50, cacheSize: 2000}]\n",
		kind & 4 ? "Namespace" : "Server");
}

static void write_document(FILE *file, unsigned int kind, unsigned int name)
{
	switch (kind & 3) {
	case 0:
		return write_throttle(file, kind, name);
	case 1:
		return write_level(file, kind, name);
	case 2:
		return write_schema(file, kind, name);
	default:
		return write_events(file, kind);
	}
}

/* The objects of a command; NULL: `weir check` would not take them. */
static json_t *take_objects(struct input *input)
{
	const struct policy_file file = { .path = "fuzz.yaml", .name = "/nowhere/fuzz.yaml" };
	unsigned int runs = take(input) % (RUNS_MAX + 1), objects = 0;
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_FREE char *text = NULL;
	struct error err = { 0 };
	size_t length;
	FILE *memory = open_memstream(&text, &length);
	int ret;

	for (unsigned int run = 0; run < runs; run++) {
		unsigned int kind = take(input), first = take(input), n = take(input);

		for (unsigned int i = 0; i < n && objects < OBJECTS_MAX; i++, objects++)
			write_document(memory, kind, (first + i) % 256);
	}
	fclose(memory);
	ret = policy_read_text(&policy, &file, text, length, &err);
	if (ret)
		return NULL;
	policy_check(&policy);
	return policy.problems.errors ? NULL : policy_to_json(&policy);
}

/* --- commands */

static int ask(struct agent *agent, const char *command, json_t *arguments, json_t **result)
{
	CLEANUP_JSON json_t *own = json_deep_copy(arguments);
	struct error err = { 0 };
	int ret = agent_request(agent, NULL, command, own, result, &err);

	assert(!ret == !!*result && (!ret || err.text[0]));
	return ret;
}

static void attach(struct agent *agent, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		CLEANUP_JSON json_t *result = NULL, *arguments = NULL;
		char name[16], listen[16], netns[16];

		snprintf(name, sizeof(name), "s%u", i);
		snprintf(listen, sizeof(listen), "*:%u", 1000 + i);
		snprintf(netns, sizeof(netns), "/netns/%u", 1 + i % 3);
		arguments = json_pack("{s:{s:s, s:[s], s:s, s:i}}", "server", "name", name, "listen", listen, "netns",
				      netns, "keys", 100);
		assert(!!ask(agent, "attach", arguments, &result) == (i >= WEIR_MAX_SERVERS));
	}
}

/* Applied once more, it finds all as it is. */
static void check_applied(struct agent *agent, json_t *arguments)
{
	CLEANUP_JSON json_t *result = NULL;
	json_t *change;
	size_t i;

	assert(!ask(agent, "diff", arguments, &result));
	json_array_foreach (json_object_get(result, "changes"), i, change)
		assert(!strcmp(json_string_value(json_object_get(change, "change")), "unchanged"));
}

static void command(struct agent *agent, struct input *input)
{
	static const char *const verbs[] = { "diff", "apply", "delete" };
	unsigned int how = take(input), server = how & 8 ? take(input) : 0;
	const char *verb = verbs[how % 3];
	CLEANUP_JSON json_t *objects = take_objects(input), *arguments = NULL, *result = NULL;
	CLEANUP_FREE char *before = NULL, *after = NULL;
	char name[16];
	int ret;

	if (!objects)
		return;
	arguments = json_pack("{s:O}", "objects", objects);
	if (how & 4)
		json_object_set_new(arguments, *verb == 'd' && verb[1] == 'e' ? "ignore_not_found" : "prune",
				    json_true());
	snprintf(name, sizeof(name), "s%u", server);
	if (how & 8)
		json_object_set_new(arguments, "server", json_string(name));
	before = agent_servers(agent);
	ret = ask(agent, verb, arguments, &result);
	after = agent_servers(agent);
	assert(!strcmp(before, after) || (!ret && strcmp(verb, "diff") != 0));
	if (!ret && !strcmp(verb, "apply"))
		check_applied(agent, arguments);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	unsigned int first = take(&input);
	struct agent agent;

	agent_begin(&agent);
	/* Many take long: most of the time there are a few. */
	attach(&agent, first < 240 ? first % 4 : WEIR_MAX_SERVERS - 1 + first % 3);
	for (int i = 0; i < 3 && input.size; i++)
		command(&agent, &input);
	agent_finish(&agent);
	return 0;
}
