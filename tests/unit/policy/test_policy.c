/* SPDX-License-Identifier: GPL-2.0 */
/* Policy files: what is wrong is told with its place, all of it at once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../array_size.h"
#include "base/cleanup.h"
#include "policy/names.h"
#include "policy/policy.h"
#include "policy_scene.h"

#define THROTTLE "apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: api}\nspec:\n"
#define FLOW(kind) "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: " kind "\nmetadata: {name: a}\nspec:\n"

/* Nobody writes to it: that is not waited for. */
static void a_fifo(void **state)
{
	char directory[] = P_tmpdir "/weir-policy-XXXXXX", path[64];
	CLEANUP_POLICY struct policy policy = { 0 };
	struct error err = { 0 };

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/a.yaml", directory);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(policy_read(&policy, directory, &err), 0);
	assert_int_equal(policy.problems.errors, 1);
	assert_string_equal(policy.problems.items[0].text, "it is empty");
	unlink(path);
	rmdir(directory);
}

/* Its name need not be UTF-8. */
static void name_of_a_file(void **state)
{
	static const struct policy_file file = { .path = "caf\xe9.yaml", .name = "/caf.yaml" };
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_JSON json_t *problems = NULL;
	struct error err = { 0 };

	(void)state;
	assert_int_equal(policy_read_text(&policy, &file, "kind: nosuch", strlen("kind: nosuch"), &err), 0);
	problems = problems_to_json(&policy.problems);
	assert_int_equal(json_array_size(problems), 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(problems, 0), "file")), "caf\\xe9.yaml");
}

/* Whoever has chosen it does not write to the terminal of those who check it. */
static void hostile_name_of_a_file(void **state)
{
	static const struct policy_file file = { .path = "a\x1b[31m.yaml", .name = "/a.yaml" };
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_FREE char *text = NULL;
	struct error err = { 0 };
	size_t length;
	FILE *out = open_memstream(&text, &length);

	(void)state;
	assert_int_equal(policy_read_text(&policy, &file, "kind: nosuch", strlen("kind: nosuch"), &err), 0);
	problems_print(&policy.problems, out);
	fclose(out);
	assert_string_equal(text, "a\\x1b[31m.yaml:1:1: $: apiVersion is missing\n");
}

/* A comment, and behind it an object: `bytes` in all. */
static void write_file(const char *path, size_t bytes)
{
	static const char object[] = "\n" THROTTLE "  limits: []\n";
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	for (size_t i = sizeof(object) - 1; i < bytes; i++)
		putc('#', file);
	fputs(object, file);
	assert_int_equal(fclose(file), 0);
}

static void sizes_of_files(void **state)
{
	static const size_t sizes[] = { 65535, 65536, 65537, 131072, 131073, POLICY_FILE_MAX - 1, POLICY_FILE_MAX };
	char path[] = P_tmpdir "/weir-policy-XXXXXX";
	struct policy too_large = { 0 };
	struct error err = { 0 };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		CLEANUP_POLICY struct policy policy = { 0 };

		write_file(path, sizes[i]);
		assert_int_equal(policy_read(&policy, path, &err), 0);
		assert_int_equal(policy.problems.errors, 0);
		assert_int_equal(policy.n, 1);
	}
	write_file(path, POLICY_FILE_MAX + 1);
	assert_int_equal(policy_read(&too_large, path, &err), -EFBIG);
	assert_non_null(strstr(err.text, "larger than 16 MiB"));
	unlink(path);
}

static void nothing_wrong(void **state)
{
	(void)state;
	PROBLEMS(THROTTLE "  limits: []\n");
	PROBLEMS(THROTTLE "  limits:\n  - {name: user, qps: 0.5, burst: 3}\n  - {name: total, qps: \"5\", burst: 3}\n");
	PROBLEMS("---\n---\n" THROTTLE "  dryRun: true\n---\n# nothing\n");
	PROBLEMS(
		"{\"apiVersion\": \"weir/v1\", \"kind\": \"Throttle\", \"metadata\": {\"name\": \"a\"}, \"spec\": {}}");
	PROBLEMS(THROTTLE "  exempt:\n  - &r {paths: [/a]}\n  - {sources: [10.0.0.0/8]}\n  limits:\n"
			  "  - {name: x, key: user, inFlight: 3, rules: [*r]}\n");
}

static void every_error_at_once(void **state)
{
	(void)state;
	PROBLEMS(THROTTLE "  dryrun: true\n"
			  "  limits:\n"
			  "  - name: a\n"
			  "    key: usr\n"
			  "    qps: 5x\n"
			  "    burst: -1\n"
			  "    rules:\n"
			  "    - {verbs: [get, lisst], longRunning: 1}\n"
			  "  - {name: b, key: user, qps: 1, qps: 2, burst: 1}\n"
			  "  - {name: c, key: user}\n"
			  "  - {key: user, qps: 1, burst: 1, mode: sharp}\n"
			  "  dryRun: yes\n",
		 "5:3 $.spec.dryrun: there is no field \"dryrun\": is \"dryRun\" meant?",
		 "8:10 $.spec.limits[0].key: \"usr\"", "9:10 $.spec.limits[0].qps: \"5x\" is not a rate",
		 "10:12 $.spec.limits[0].burst: -1: must be a whole number from 0",
		 "12:21 $.spec.limits[0].rules[0].verbs[1]: \"lisst\" is not a verb",
		 "12:42 $.spec.limits[0].rules[0].longRunning: must be true or false, not a number",
		 "13:34 : \"qps\" is there twice: first in line 13",
		 "14:5 $.spec.limits[2]: limit \"c\": qps and burst, open, inFlight or deny are missing",
		 "15:5 $.spec.limits[3]: name is missing",
		 "15:41 $.spec.limits[3].mode: \"sharp\": must be enforce or dry-run",
		 "16:11 $.spec.dryRun: must be true or false, not the text \"yes\"");
}

/* What a server cannot be made of is told where it stands, whatever else is wrong beside it. */
static void late_checks(void **state)
{
	static const char limit[] = THROTTLE
		"  limits:\n  - {name: total, qps: 1, burst: 1}\n  - {name: c, key: user}\n";
	CLEANUP_FREE char *twice = NULL, *misspelt = NULL;

	(void)state;
	PROBLEMS(limit, "7:5 $.spec.limits[1]: limit \"c\": qps and burst");
	assert_true(asprintf(&twice, "%s---\n%s", limit, limit) > 0);
	PROBLEMS(twice, "7:5 $.spec.limits[1]: limit \"c\": qps and burst", "9:1 $: Throttle api is there twice",
		 "15:5 $.spec.limits[1]: limit \"c\": qps and burst");
	assert_true(asprintf(&misspelt, "%s  dryrun: true\n", limit) > 0);
	PROBLEMS(misspelt, "7:5 $.spec.limits[1]: limit \"c\": qps and burst", "8:3 $.spec.dryrun: there is no field");
}

static void paths(void **state)
{
	(void)state;
	PROBLEMS(THROTTLE "  netns: ''\n  cgroup: ''\n", "5:10 $.spec.netns: the path is empty",
		 "6:11 $.spec.cgroup: must be an absolute path");
	PROBLEMS(THROTTLE "  netns: shop\n  cgroup: api.slice\n", "6:11 $.spec.cgroup: must be an absolute path");
	PROBLEMS(THROTTLE "  netns: /run/netns/shop\n  cgroup: /sys/fs/cgroup\n");
}

static void all_are_exempt(void **state)
{
	(void)state;
	PROBLEMS(THROTTLE "  exempt:\n  - users: [a]\n  - {users: [], paths: []}\n  - {}\n  - paths: ['/*']\n"
			  "  - longRunning: false\n  - nonResource: true\n  - nonResource: false\n",
		 "7:5 $.spec.exempt[1]: warning: it asks for nothing",
		 "8:5 $.spec.exempt[2]: warning: it asks for nothing",
		 "12:5 $.spec.exempt[6]: warning: it asks for nothing");
	PROBLEMS(THROTTLE "  limits:\n  - {name: a, key: user, qps: 1, burst: 1, rules: [{users: []}]}\n");
}

/* A list's objects have names of their own: the second one of a name is told, and where the first is. */
static void names_twice(void **state)
{
	(void)state;
	PROBLEMS(THROTTLE "  limits:\n  - {name: user, qps: 1, burst: 1}\n  - {name: total, qps: 1, burst: 1}\n"
			  "  - {name: user, qps: 2, burst: 1}\n",
		 "8:12 $.spec.limits[2].name: \"user\" is there twice: first in line 6");
	PROBLEMS(THROTTLE "  limits:\n  - name: user\n    qps: 1\n    burst: 1\n    overrides:\n"
			  "    - {subject: a, qps: 1, burst: 1}\n    - {subject: b, qps: 1, burst: 1}\n"
			  "    - {subject: a, qps: 1, burst: 1}\n    - {subject: a, qps: 1, burst: 1}\n",
		 "12:17 $.spec.limits[0].overrides[2].subject: \"a\" is there twice: first in line 10",
		 "13:17 $.spec.limits[0].overrides[3].subject: \"a\" is there twice: first in line 10");
	PROBLEMS(THROTTLE "  priorityLevels:\n  - {name: a, shares: 1}\n  - {name: a, shares: 2}\n",
		 "7:12 $.spec.priorityLevels[1].name: \"a\" is there twice: first in line 6");
}

/* Two servers of one namespace have no port in common, nor has one a port twice. */
static void ports_twice(void **state)
{
#define SERVER(name, more) "---\napiVersion: weir/v1\nkind: Throttle\nmetadata: {name: " name "}\nspec:\n" more
	(void)state;
	PROBLEMS(SERVER("a", "  listen: ['*:80', '*:81', '*:80']\n"),
		 "6:11 $.spec.listen: *:80 is given twice for server \"a\"");
	PROBLEMS(SERVER("a", "  listen: ['*:80']\n") SERVER("b", "  netns: n\n  listen: ['*:81']\n")
			 SERVER("c", "  netns: n\n  listen: ['*:82', '*:81']\n"),
		 "20:11 $.spec.listen: server \"c\" cannot have *:81: server \"b\" of this namespace has it");
	PROBLEMS(SERVER("a", "  listen: ['*:80']\n") SERVER("b", "  netns: n\n  listen: ['*:80']\n")
			 SERVER("c", "  dryRun: true\n") SERVER("d", "  dryRun: true\n"));
}

/* What the rest of weir calls in_flight is inFlight here. Quoted texts and files stay as they are. */
static void words(void **state)
{
	char text[] =
		"limit \"in_flight in_flight\": in_flight, token_file: x_ _y a_1 is in /a/in_flight.yaml and in_flight";

	(void)state;
	policy_yaml_words(text);
	assert_string_equal(
		text,
		"limit \"in_flight in_flight\": inFlight, tokenFile: x_ _y a_1 is in /a/in_flight.yaml and inFlight");
	PROBLEMS(THROTTLE "  identity: {tokenFile: in_flight.csv}\n",
		 "5:25 $.spec.identity.tokenFile: must be an absolute path");
	PROBLEMS(THROTTLE "  flowSchemas: [{name: a-b, level: c-d}]\n",
		 "5:17 $.spec.flowSchemas[0]: \"a-b\": there is no priority level \"c-d\"");
	PROBLEMS(
		THROTTLE
		"  priorityLevels: [{name: a, shares: 1}]\n  flowSchemas: [{name: b, level: a}, {name: a, level: c}]\n",
		"6:38 $.spec.flowSchemas[1]: \"a\": there is no priority level \"c\"");
	PROBLEMS(THROTTLE "  dryRun: true\n  namespaceFrom: header=X-Remote-User\n",
		 "6:18 $.spec.namespaceFrom: \"x-remote-user\" cannot name the namespace");
	PROBLEMS(THROTTLE "  exempt: [{resources: [a/b], subresources: [b]}]\n",
		 "5:24 $.spec.exempt[0].resources: \"a/b\" names a subresource");
	PROBLEMS(THROTTLE "  listen: []\n", "5:11 $.spec.listen: a server needs at least one port");
}

static void documents(void **state)
{
	(void)state;
	PROBLEMS("a: [1\n", "2:1 : not YAML: ");
	PROBLEMS("- 1\n", "1:1 $: a document must be an object with apiVersion and kind, not a list");
	PROBLEMS("kind: Throttle\n", "1:1 $: apiVersion is missing");
	PROBLEMS("kind: Pod\napiVersion: v1\n", "1:7 $.kind: \"Pod\" is not a kind");
	PROBLEMS("kind: Throttle\napiVersion: weir/v2\n", "2:13 $.apiVersion: \"weir/v2\" has no Throttle");
	PROBLEMS(THROTTLE "  dryRun: !yes true\n", "5:11 : tags (\"!yes\") are not supported");
	PROBLEMS(THROTTLE "  dryRun: true\n---\n" THROTTLE "  dryRun: true\n", "7:1 $: Throttle api is there twice");
	PROBLEMS("apiVersion: weir/v1\nkind: Throttle\nmetadata: {name: 12}\nspec: {}\n",
		 "3:18 $.metadata.name: must be a text: write it in quotes, \"12\"");
	PROBLEMS(THROTTLE "  inside: 5\n", "5:11 $.spec.inside: \"5\": must be off, see, answer, hold or auto");
	PROBLEMS(THROTTLE "  xdp: false\n", "5:8 $.spec.xdp: \"false\": must be auto, native, generic or off");
	PROBLEMS(THROTTLE "  listen: [8080]\n", "5:12 $.spec.listen[0]: \"8080\" is not ADDR:PORT");
	PROBLEMS("kind: List\napiVersion: v1\nitems:\n- kind: Pod\n  apiVersion: v1\n- 3\n",
		 "4:9 $.items[0].kind: ", "6:3 $.items[1]: ");
}

/* Each refers to nine of the one before it: more than could ever be read. */
static void aliases_of_aliases(void **state)
{
	char text[4096] = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n", line[64];
	CLEANUP_POLICY struct policy policy = { 0 };

	(void)state;
	for (int i = 1; i < 12; i++) {
		snprintf(line, sizeof(line), "a%d: &a%d [", i, i);
		strcat(text, line);
		for (int j = 0; j < 9; j++) {
			snprintf(line, sizeof(line), "%s*a%d", j ? ", " : "", i - 1);
			strcat(text, line);
		}
		strcat(text, "]\n");
	}
	policy_read_as_file(&policy, text);
	assert_int_equal(policy.problems.errors, 1);
	assert_non_null(strstr(policy.problems.items[0].text, "values in one document"));
}

static void event_rate_limit(void **state)
{
	static const char text[] =
		"apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits:\n"
		"- {type: Namespace, qps: 50, burst: 100, cacheSize: 2000}\n"
		"- {type: User, qps: 10, burst: 50}\n"
		"- {type: User, qps: 5, burst: 500}\n";
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_JSON json_t *limits = NULL, *expected = NULL;

	(void)state;
	policy_read_as_file(&policy, text);
	assert_int_equal(policy.problems.n, 0);
	limits = policy_events_limits(policy.objects[0].document);
	assert_int_equal(json_array_size(limits), 3);
	expected = json_pack("{s:s, s:s, s:i, s:i, s:i, s:[{s:[s, s, s], s:[s, s], s:[s]}]}", "name", "event-namespace",
			     "key", "namespace", "qps", 50, "burst", 100, "keys", 2000, "rules", "verbs", "create",
			     "update", "patch", "api_groups", "", "events.k8s.io", "resources", "events");
	assert_true(json_equal(json_array_get(limits, 0), expected));
	assert_string_equal(json_string_value(json_object_get(json_array_get(limits, 2), "name")), "event-user-2");
	PROBLEMS("apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits:\n"
		 "- {type: Users, qps: 0, burst: 5}\n",
		 "4:10 $.limits[0].type: \"Users\": must be Server, Namespace, User or SourceAndObject",
		 "4:22 $.limits[0].qps: 0: must be a whole number from 1");
}

static void flow_schemas(void **state)
{
	static const char text[] = FLOW(
		"FlowSchema") "  priorityLevelConfiguration: {name: exempt}\n"
			      "  rules:\n"
			      "  - subjects:\n"
			      "    - {kind: ServiceAccount, serviceAccount: {namespace: ci, name: '*'}}\n"
			      "    - {kind: ServiceAccount, serviceAccount: {namespace: ci, name: bot}}\n"
			      "    resourceRules:\n"
			      "    - {verbs: [list, escalate], apiGroups: [''], resources: [pods], namespaces: ['*']}\n"
			      "    nonResourceRules:\n"
			      "    - {verbs: ['*'], nonResourceURLs: [/version, /logs/*]}\n";
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_JSON json_t *schema = NULL, *rules = NULL;

	(void)state;
	policy_read_as_file(&policy, text);
	assert_int_equal(policy.problems.errors, 0);
	assert_int_equal(policy.problems.n, 1); /* of "escalate" */
	schema = policy_flow_schema(policy.objects[0].document);
	rules = json_pack(
		"[{s:b, s:[s], s:[s], s:[s], s:[s], s:[s], s:[s]}, {s:b, s:[s], s:[s], s:[s, s], s:b, s:[s]}]",
		"long_running", 0, "groups", "system:serviceaccounts:ci", "users", "system:serviceaccount:ci:bot",
		"api_groups", "", "resources", "pods", "namespaces", "*", "verbs", "list", "long_running", 0, "groups",
		"system:serviceaccounts:ci", "users", "system:serviceaccount:ci:bot", "paths", "/version", "/logs/*",
		"non_resource", 1, "verbs", "*");
	assert_true(json_equal(json_object_get(schema, "rules"), rules));
	assert_int_equal(json_integer_value(json_object_get(schema, "precedence")), 1000);
}

#define QUEUE(name)                                                                                                \
	"- {apiVersion: flowcontrol.apiserver.k8s.io/v1, kind: PriorityLevelConfiguration, metadata: {name: " name \
	"}, spec: {type: Limited, limited: {lendablePercent: 5, limitResponse: {type: Queue}}}}\n"

static void flow_problems(void **state)
{
	(void)state;
	PROBLEMS(FLOW("PriorityLevelConfiguration") "  type: Limited\n"
						    "  limited:\n"
						    "    assuredConcurrencyShares: 5\n"
						    "    lendablePercent: 50\n"
						    "    limitResponse: {type: Queue}\n",
		 "8:22 $.spec.limited.lendablePercent: warning: not honoured yet",
		 "9:27 $.spec.limited.limitResponse.type: warning: queues are not honoured yet");
	/* Once, however many levels there are. */
	PROBLEMS(
		"kind: List\nitems:\n" QUEUE("a") QUEUE("b") QUEUE("c"),
		"3:153 $.items[0].spec.limited.lendablePercent: warning: not honoured yet: levels do not lend seats (of 3 "
		"priority levels)",
		"3:178 $.items[0].spec.limited.limitResponse.type: warning: queues are not honoured yet: what finds no seat "
		"is rejected (of 3 priority levels)");
	PROBLEMS(FLOW("PriorityLevelConfiguration") "  type: Limited\n",
		 "5:3 $.spec: a level of type Limited has a member");
	PROBLEMS(FLOW("FlowSchema") "  priorityLevelConfiguration: {name: gone}\n",
		 "5:38 $.spec.priorityLevelConfiguration.name: warning: there is no priority level \"gone\"");
	PROBLEMS(FLOW("FlowSchema") "  priorityLevelConfiguration: {name: exempt}\n"
				    "  rules:\n"
				    "  - subjects: [{kind: User, group: {name: x}}]\n"
				    "    resourceRules: [{verbs: [get], apiGroups: ['*'], resources: [pods]}]\n",
		 "7:16 $.spec.rules[0].subjects[0]: a subject of kind User has a member \"user\"",
		 "8:21 $.spec.rules[0].resourceRules[0]: no request could match");
}

/* What seats come to is said of each Throttle's server, by what that says of it. */
static void levels(void **state)
{
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_JSON json_t *wanted = NULL;

	(void)state;
	policy_read_as_file(&policy, "kind: List\nitems:\n"
				     "- {apiVersion: weir/v1, kind: Throttle, metadata: {name: api},"
				     " spec: {concurrency: 36, listWidth: 4}}\n" QUEUE("a"));
	assert_int_equal(policy.problems.errors, 0);
	wanted = json_pack("[{s:s, s:s, s:i, s:i, s:i, s:i}, {s:s, s:s, s:i, s:i, s:i, s:i}]", "server", "api", "level",
			   "a", "seats", 31, "of", 36, "lists", 7, "wide_lists", 7, "server", "api", "level",
			   "catch-all", "seats", 6, "of", 36, "lists", 1, "wide_lists", 1);
	assert_true(json_equal(policy.levels, wanted));
	PROBLEMS(THROTTLE "  listWidth: 11\n", "5:14 $.spec.listWidth: 11: must be a whole number");
	PROBLEMS(THROTTLE "  listObjectBytes: -1\n", "5:20 $.spec.listObjectBytes: -1: must be a whole number");
}

/* What kubectl and weir would read differently. */
static void leading_zeros(void **state)
{
	(void)state;
	PROBLEMS(
		THROTTLE
		"  limits:\n  - {name: a, key: user, qps: 010, burst: 010}\n  - {name: b, key: user, qps: -01.5, burst: 00}\n",
		"6:31 $.spec.limits[0].qps: 010: kubectl reads", "6:43 $.spec.limits[0].burst: 010: kubectl reads",
		"7:31 $.spec.limits[1].qps: -01.5: kubectl reads", "7:45 $.spec.limits[1].burst: 00: kubectl reads");
	PROBLEMS(THROTTLE "  limits:\n  - {name: a, key: user, qps: 0.5, burst: 1}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fifo),
		cmocka_unit_test(name_of_a_file),
		cmocka_unit_test(hostile_name_of_a_file),
		cmocka_unit_test(sizes_of_files),
		cmocka_unit_test(nothing_wrong),
		cmocka_unit_test(every_error_at_once),
		cmocka_unit_test(late_checks),
		cmocka_unit_test(paths),
		cmocka_unit_test(all_are_exempt),
		cmocka_unit_test(names_twice),
		cmocka_unit_test(ports_twice),
		cmocka_unit_test(words),
		cmocka_unit_test(documents),
		cmocka_unit_test(aliases_of_aliases),
		cmocka_unit_test(event_rate_limit),
		cmocka_unit_test(flow_schemas),
		cmocka_unit_test(flow_problems),
		cmocka_unit_test(levels),
		cmocka_unit_test(leading_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
