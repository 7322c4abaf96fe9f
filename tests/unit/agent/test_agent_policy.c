/* SPDX-License-Identifier: GPL-2.0 */
/* Objects of policy files over a kernel side in memory: what is the same stays, and what fails changes nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent_fixture.h"
#include "base/cleanup.h"
#include "fake_datapath.h"

#define VERSION_Throttle "weir/v1"
#define VERSION_FlowSchema "flowcontrol.apiserver.k8s.io/v1"
#define VERSION_PriorityLevelConfiguration VERSION_FlowSchema
#define OBJECT(kind, name, spec)                                                   \
	"{\"file\":\"/etc/p.yaml\",\"document\":{\"apiVersion\":\"" VERSION_##kind \
		"\",\"kind\":\"" #kind "\",\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "}}}"
#define APPLY(objects) "{\"objects\":[" objects "]}"
#define LIMITS(limits) OBJECT(Throttle, "api", "\"limits\":[" limits "]")
#define USER \
	"{\"name\":\"user\",\"qps\":\"5\",\"burst\":9,\"overrides\":[{\"subject\":\"bob\",\"qps\":\"1\",\"burst\":2}]}"
#define WATCHES \
	"{\"name\":\"w\",\"key\":\"user\",\"inFlight\":4,\"rules\":[{\"groups\":[\"ops\"],\"longRunning\":true}]}"
#define LEVEL OBJECT(PriorityLevelConfiguration, "low", "\"type\":\"Limited\",\"limited\":{}")
#define SCHEMA                                                                                                    \
	OBJECT(FlowSchema, "all",                                                                                 \
	       "\"priorityLevelConfiguration\":{\"name\":\"low\"},\"rules\":[{\"subjects\":[{\"kind\":\"Group\"," \
	       "\"group\":{\"name\":\"dev\"}}],\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]}]")

static __u32 slot_of(struct fixture *f, const char *name)
{
	struct limit *limit = server_limit(f->agent.state.servers[0], name);

	assert_non_null(limit);
	return limit_slot(limit);
}

static void applied(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];
	__u32 slot;

	succeed(f, "attach", ATTACH);
	succeed(f, "apply", APPLY(LIMITS(USER "," WATCHES) "," SCHEMA "," LEVEL));
	slot = slot_of(f, "w");
	assert_int_equal(fake_limit(dp, 0, 2)->amount.burst, 9);
	assert_int_equal(fake_override(dp, 0, 2, WEIR_KEY_USER, "bob")->burst, 2);
	assert_int_equal(fake_limit(dp, 0, slot)->amount.seats, 4);
	assert_true(dp->servers[0].has_rules);
	assert_int_equal(f->agent.state.servers[0]->priorities.n_levels, 3); /* exempt and catch-all, too */

	/* What is the same has the place, and so the buckets, that it had. */
	succeed(f, "apply", APPLY(LIMITS(WATCHES)));
	assert_int_equal(slot_of(f, "w"), slot);
	assert_null(fake_limit(dp, 0, 2));
	assert_int_equal(f->agent.state.servers[0]->priorities.n_levels, 3);

	succeed(f, "delete", APPLY(LIMITS("") "," SCHEMA "," LEVEL));
	assert_null(fake_limit(dp, 0, slot));
	assert_false(dp->servers[0].has_rules);
	assert_null(f->agent.state.servers[0]->policy);
	assert_int_equal(f->agent.state.servers[0]->n_limits, 0);
}

static size_t status_length(struct fixture *f)
{
	CLEANUP_JSON json_t *result = run(f, "status", "{}");
	CLEANUP_FREE char *text = json_dumps(result, JSON_COMPACT);

	return strlen(text);
}

/* The event loop writes it: it is as long with seventy thousand overrides as with one. */
static void status_is_short(void **state)
{
	struct fixture *f = *state;
	size_t before;

	succeed(f, "attach", ATTACH);
	succeed(f, "apply", APPLY(LIMITS(USER)));
	before = status_length(f);
	succeed(f, "apply",
		APPLY(LIMITS("{\"name\":\"user\",\"qps\":5,\"burst\":9,\"overrides\":["
			     "{\"subject\":\"bob\",\"qps\":1,\"burst\":2},"
			     "{\"subject\":\"carol\",\"qps\":1,\"burst\":2}]}")));
	assert_int_equal(status_length(f), before);
}

#define IDENTITY(member) OBJECT(Throttle, "api", "\"identity\":{\"" member "\":\"%s\"}")

static void refuse_file(struct fixture *f, const char *objects, const char *path, const char *word)
{
	CLEANUP_FREE char *arguments = NULL, *before = saved_state(f);
	unsigned int writes = fake_nets[1].writes;

	assert_true(asprintf(&arguments, objects, path) > 0);
	refuse(f, "apply", arguments, word);
	assert_saved(f, before);
	assert_int_equal(fake_nets[1].writes, writes);
}

/* The kernel is not told, so nothing has to be taken back. */
static void files_are_read_first(void **state)
{
	struct fixture *f = *state;
	char path[64];

	succeed(f, "attach", ATTACH);
	snprintf(path, sizeof(path), "%s/file", f->state_dir);
	refuse_file(f, APPLY(IDENTITY("tokenFile")), path, "No such file");
	refuse_file(f, APPLY(IDENTITY("addressFile")), path, "No such file");
	write_file(path, "too,few\n");
	refuse_file(f, APPLY(IDENTITY("tokenFile")), path, "file:1:1: ");
	refuse_file(f, APPLY(IDENTITY("addressFile")), path, "file:1:1: ");
	assert_int_equal(unlink(path), 0);
}

/* Whatever the kernel refuses: all is as it was, also what was applied before that failed. */
static void taken_back(void **state)
{
	static const char *const steps[] = { "datapath_limit_set",    "datapath_override_set",
					     "datapath_rules_set",    "datapath_limit_delete",
					     "datapath_server_flags", "datapath_known_groups_set" };
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];

	succeed(f, "attach", ATTACH);
	succeed(f, "apply", APPLY(LIMITS("{\"name\":\"total\",\"qps\":\"1\",\"burst\":1}," WATCHES)));
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		CLEANUP_FREE char *before = saved_state(f);

		fake_fail(steps[i], 1);
		refuse(f, "apply", APPLY(LIMITS(USER) "," SCHEMA "," LEVEL), steps[i]);
		assert_saved(f, before);
		assert_int_equal(fake_limit(dp, 0, 0)->amount.burst, 1);
		assert_int_equal(fake_limit(dp, 0, slot_of(f, "w"))->amount.seats, 4);
		assert_null(fake_limit(dp, 0, 2));
		assert_int_equal(f->agent.state.servers[0]->priorities.n_levels, 0);
	}
	succeed(f, "apply", APPLY(LIMITS(USER) "," SCHEMA "," LEVEL));
}

#define OVERRIDE(subject, burst) "{\"subject\":\"" subject "\",\"qps\":1,\"burst\":" burst "}"
#define OVERRIDES(overrides) LIMITS("{\"name\":\"user\",\"overrides\":[" overrides "]}")

static void assert_change(struct fixture *f, const char *objects, const char *change)
{
	CLEANUP_JSON json_t *result = run(f, "apply", objects);
	json_t *first = json_array_get(json_object_get(result, "changes"), 0);

	assert_string_equal(json_string_value(json_object_get(first, "change")), change);
}

/* An override alone is a change, wherever it is. */
static void told_what_changes(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *result = NULL;

	succeed(f, "attach", ATTACH);
	assert_change(f, APPLY(OVERRIDES(OVERRIDE("ann", "1") "," OVERRIDE("bob", "1"))), "configured");
	assert_change(f, APPLY(OVERRIDES(OVERRIDE("ann", "1") "," OVERRIDE("bob", "1"))), "unchanged");
	assert_change(f, APPLY(OVERRIDES(OVERRIDE("ann", "1") "," OVERRIDE("bob", "2"))), "configured");
	assert_int_equal(fake_override(&fake_nets[1], 0, 2, WEIR_KEY_USER, "bob")->burst, 2);
	assert_change(f, APPLY(OVERRIDES(OVERRIDE("ann", "1"))), "configured");
	assert_null(fake_override(&fake_nets[1], 0, 2, WEIR_KEY_USER, "bob"));
	assert_change(f, APPLY(OVERRIDES(OVERRIDE("cat", "1"))), "configured");
	assert_change(f, APPLY(OVERRIDES(OVERRIDE("cat", "1"))), "unchanged");
	result = run(f, "diff", APPLY(OVERRIDES(OVERRIDE("cat", "3"))));
	assert_false(json_equal(json_object_get(result, "before"), json_object_get(result, "after")));
	/* What files say is kept as it was said: the agent's own numbers are not put into it. */
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "\"priorityLevels\":[{\"name\":\"low\",\"shares\":3}]")));
	assert_change(f, APPLY(OBJECT(Throttle, "api", "\"priorityLevels\":[{\"name\":\"low\",\"shares\":3}]")),
		      "unchanged");
	end_agent(f);
	start_agent(f);
	assert_int_equal(f->agent.state.servers[0]->priorities.n_levels, 3);
}

/* How often the kernel was told anything by an apply. */
static unsigned int writes_of(struct fixture *f, const char *objects)
{
	unsigned int before = fake_nets[1].writes;

	succeed(f, "apply", objects);
	return fake_nets[1].writes - before;
}

/* The kernel is told of overrides that differ, and of no other. */
static void writes_what_changes(void **state)
{
	struct fixture *f = *state;
	unsigned int same;

	succeed(f, "attach", ATTACH);
	succeed(f, "apply", APPLY(OVERRIDES(OVERRIDE("ann", "1") "," OVERRIDE("bob", "1") "," OVERRIDE("cat", "1"))));
	same = writes_of(f, APPLY(OVERRIDES(OVERRIDE("ann", "1") "," OVERRIDE("bob", "1") "," OVERRIDE("cat", "1"))));
	assert_int_equal(
		writes_of(f, APPLY(OVERRIDES(OVERRIDE("cat", "1") "," OVERRIDE("bob", "1") "," OVERRIDE("ann", "1")))),
		same);
	assert_int_equal(
		writes_of(f, APPLY(OVERRIDES(OVERRIDE("cat", "1") "," OVERRIDE("bob", "2") "," OVERRIDE("ann", "1")))),
		same + 1);
	assert_int_equal(writes_of(f, APPLY(OVERRIDES(OVERRIDE("cat", "1") "," OVERRIDE("bob", "2")))), same + 1);
	assert_null(fake_override(&fake_nets[1], 0, 2, WEIR_KEY_USER, "ann"));
	assert_int_equal(fake_override(&fake_nets[1], 0, 2, WEIR_KEY_USER, "bob")->burst, 2);
	assert_int_equal(fake_override(&fake_nets[1], 0, 2, WEIR_KEY_USER, "cat")->burst, 1);
}

static void refused(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;

	refuse(f, "apply", APPLY(LIMITS(USER)), "attach it");
	refuse(f, "apply", APPLY(LEVEL), "no server");
	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}");
	before = saved_state(f);
	refuse(f, "apply", "{}", "objects");
	refuse(f, "apply", APPLY("{}"), "file");
	refuse(f, "apply", APPLY("{\"file\":\"x\",\"document\":{\"kind\":\"Pod\"}}"), "kind");
	refuse(f, "apply", APPLY(LIMITS(USER)), "command line");
	refuse(f, "apply", APPLY(LIMITS(WATCHES "," WATCHES)), "\"w\"");
	refuse(f, "apply", APPLY(LIMITS("{\"name\":\"w\",\"key\":\"user\"}")), "in_flight or deny are missing");
	refuse(f, "apply", APPLY(SCHEMA), "\"low\"");
	refuse(f, "apply", APPLY(OBJECT(Throttle, "api", "\"netns\":\"/netns/2\"")), "netns");
	refuse(f, "apply", APPLY(OBJECT(Throttle, "api", "\"keys\":7")), "keys");
	refuse(f, "delete", APPLY(LEVEL), "not applied");
	assert_saved(f, before);
}

#define OWN_LEVELS                                                                                                   \
	"\"priorityLevels\":[{\"name\":\"low\",\"shares\":3}],\"flowSchemas\":[{\"name\":\"all\",\"level\":\"low\"," \
	"\"rules\":[{\"groups\":[\"dev\"]}]}],\"maxInFlight\":{\"readOnly\":4,\"mutating\":0}"

static void levels_of_its_own(void **state)
{
	struct fixture *f = *state;
	const struct server *server;

	succeed(f, "attach", ATTACH);
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", OWN_LEVELS)));
	server = f->agent.state.servers[0];
	assert_int_equal(server->priorities.n_levels,
			 3); /* exempt and catch-all, too; the schemas for probes besides */
	assert_int_equal(server->priorities.n_schemas, 4);
	assert_int_equal(server_limit(server, "read-only-in-flight")->amount.seats, 4);
	assert_null(server_limit(server, "mutating-in-flight"));
	refuse(f, "max-in-flight", "{\"read_only\":5}", "/etc/p.yaml");
	refuse(f, "apply", APPLY(LEVEL), "priority level low of server \"api\" is in /etc/p.yaml and in /etc/p.yaml");
	refuse(f, "apply", APPLY(SCHEMA), "flow schema all");
	refuse(f, "apply", APPLY(OBJECT(Throttle, "api", "\"flowSchemas\":[{\"name\":\"all\",\"level\":\"low\"}]")),
	       "\"low\"");
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "")));
	assert_int_equal(f->agent.state.servers[0]->priorities.n_levels, 0);
}

/* What LISTs take is the server's to say, also while it is attached; what is not said any more is as it was. */
static void list_width(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *result = NULL;

	succeed(f, "attach", ATTACH);
	result = run(f, "apply", APPLY(OBJECT(Throttle, "api", "\"listWidth\":4,\"listObjectBytes\":250," OWN_LEVELS)));
	assert_int_equal(json_array_size(json_object_get(result, "levels")), 2); /* catch-all, too */
	assert_int_equal(fake_nets[1].servers[0].list_width, 4);
	assert_int_equal(fake_nets[1].servers[0].object_bytes, 250);
	fake_fail("datapath_lists_set", 1);
	refuse(f, "apply", APPLY(OBJECT(Throttle, "api", "\"listWidth\":5")), "datapath_lists_set");
	assert_int_equal(f->agent.state.servers[0]->list_width, 4);
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "")));
	assert_int_equal(fake_nets[1].servers[0].list_width, 0);
	assert_int_equal(fake_nets[1].servers[0].object_bytes, 0);
}

/* What attach sets is the Throttle's to say, too; what it does not say any more is what attach said. Nothing is half done. */
static void settings(void **state)
{
	static const char *const steps[] = { "datapath_known_groups_set", "datapath_groups_set", "datapath_server_set",
					     "datapath_links_sync" };
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];

	succeed(f, "attach", ATTACH);
	succeed(f, "apply",
		APPLY(OBJECT(Throttle, "api",
			     "\"listen\":[\"*:99\"],\"interfaces\":[\"lo\"],\"whenFull\":\"open\",\"xdp\":\"off\"")));
	assert_int_equal(dp->servers[0].n_listens, 1);
	assert_int_equal(dp->n_wanted, 1);
	assert_int_equal(dp->servers[0].flags, WEIR_SERVER_ACTIVE | WEIR_SERVER_SOME_INTERFACES);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		CLEANUP_FREE char *before = saved_state(f);

		fake_fail(steps[i], 1);
		refuse(f, "apply", APPLY(OBJECT(Throttle, "api", "\"identity\":{\"exemptUsers\":[\"ann\"]}")),
		       steps[i]);
		assert_saved(f, before);
		assert_int_equal(dp->servers[0].n_listens, 1);
	}
	end_agent(f);
	start_agent(f);
	succeed(f, "delete", APPLY(OBJECT(Throttle, "api", "")));
	assert_int_equal(dp->servers[0].n_listens, 2);
	assert_int_equal(dp->n_wanted, 0);
	assert_int_equal(dp->servers[0].flags, ACTIVE);
}

static bool paused(const struct fixture *f)
{
	return f->agent.state.servers[0]->paused && (fake_nets[1].servers[0].flags & WEIR_SERVER_PAUSED);
}

/* By the file, by a command, or both: it is until neither does. */
static void paused_by_both(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "\"paused\":true")));
	assert_true(paused(f));
	refuse(f, "resume", "{\"name\":\"api\"}", "is paused by /etc/p.yaml");
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "\"paused\":false")));
	assert_false(paused(f));
	succeed(f, "pause", "{}");
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "\"dryRun\":true")));
	assert_true(paused(f));
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "\"paused\":true")));
	succeed(f, "delete", APPLY(OBJECT(Throttle, "api", "")));
	assert_true(paused(f));
	succeed(f, "resume", "{}");
	assert_false(paused(f));
	fake_fail("datapath_server_flags", 1);
	refuse(f, "pause", "{}", "datapath_server_flags");
	assert_false(f->agent.state.servers[0]->paused);
}

static bool dry(struct fixture *f)
{
	return f->agent.state.servers[0]->dry_run;
}

/* A command may begin and end it, unless the file says what it is. */
static void dry_run_by_both(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	succeed(f, "dry-run", "{\"name\":\"api\",\"dry_run\":true}");
	assert_true(dry(f));
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "\"paused\":false")));
	assert_true(dry(f));
	succeed(f, "dry-run", "{\"name\":\"api\",\"dry_run\":false}");
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "\"paused\":false")));
	assert_false(dry(f));
	succeed(f, "apply", APPLY(OBJECT(Throttle, "api", "\"dryRun\":true")));
	refuse(f, "dry-run", "{\"name\":\"api\",\"dry_run\":false}", "/etc/p.yaml says dryRun: true");
	succeed(f, "delete", APPLY(OBJECT(Throttle, "api", "")));
	assert_false(dry(f));
	fake_fail("datapath_server_flags", 1);
	refuse(f, "dry-run", "{\"name\":\"api\",\"dry_run\":true}", "datapath_server_flags");
	assert_false(dry(f));
	refuse(f, "dry-run", "{\"name\":\"other\",\"dry_run\":true}", "other");
}

/* A level of no server's goes to the only one that there will be. */
static void for_which_server(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	refuse(f, "apply", APPLY(OBJECT(Throttle, "b", "\"listen\":[\"*:7\"]") "," LIMITS(USER) "," LEVEL),
	       "for 2 servers");
	succeed(f, "apply", APPLY(OBJECT(Throttle, "b", "\"listen\":[\"*:7\"]") "," LEVEL));
	assert_int_equal(f->agent.state.servers[0]->priorities.n_levels, 0);
	assert_true(f->agent.state.servers[1]->priorities.n_levels > 0);
	succeed(f, "apply", APPLY(OBJECT(Throttle, "b", "\"listen\":[\"*:7\"]") "," LEVEL));
}

static void attached_with_it(void **state)
{
	struct fixture *f = *state;
	const char *throttle = APPLY(OBJECT(Throttle, "b", "\"listen\":[\"*:7\"],\"limits\":[" USER "]"));

	fake_fail("datapath_rules_set", 1);
	refuse(f, "apply", throttle, "datapath_rules_set");
	assert_null(f->agent.state.servers[0]);
	succeed(f, "apply", throttle);
	assert_true(fake_nets[1].servers[0].set);
	end_agent(f);
	start_agent(f);
	succeed(f, "apply", throttle);
	succeed(f, "delete", throttle);
	assert_null(f->agent.state.servers[0]);
	assert_false(fake_nets[1].servers[0].set);
}

/* --- files that the client has not read */

#define AS_FILE(document) "{\"file\":\"/etc/p.json\",\"document\":" document "}"
#define THROTTLE(spec) \
	"{\"kind\":\"Throttle\",\"apiVersion\":\"weir/v1\",\"metadata\":{\"name\":\"api\"},\"spec\":{" spec "}}"
#define ANN "{\"name\":\"user\",\"qps\":5,\"burst\":9,\"overrides\":[" OVERRIDE("ann", "1") "]}"

/* The document of the only object that the server has. */
static json_t *kept_document(struct fixture *f)
{
	json_t *objects = json_object_get(f->agent.state.servers[0]->policy, "objects");

	return json_object_get(json_array_get(objects, 0), "document");
}

/* It comes to what its objects come to, also for the next agent. */
static void as_a_file(void **state)
{
	CLEANUP_JSON json_t *document = json_loads(THROTTLE("\"limits\":[" ANN "]"), 0, NULL);
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	assert_change(f, AS_FILE(THROTTLE("\"limits\":[" ANN "]")), "configured");
	assert_int_equal(fake_override(&fake_nets[1], 0, 2, WEIR_KEY_USER, "ann")->burst, 1);
	assert_string_equal(f->agent.state.servers[0]->limits[0].file, "/etc/p.json");
	assert_true(json_equal(kept_document(f), document));
	assert_change(f, AS_FILE(THROTTLE("\"limits\":[" ANN "]")), "unchanged");
	assert_change(f, APPLY(LIMITS(ANN)), "unchanged");
	end_agent(f);
	start_agent(f);
	assert_int_equal(f->agent.state.servers[0]->limits[0].n_overrides, 1);
}

/* What means nothing is not kept, and what may be shown has the members in the usual order. */
static void as_a_file_that_is_shown(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *text = NULL;

	succeed(f, "attach", ATTACH);
	assert_change(f, AS_FILE(THROTTLE("\"dryRun\":true,\"keys\":null")), "configured");
	assert_null(json_object_get(json_object_get(kept_document(f), "spec"), "keys"));
	assert_change(f, AS_FILE(THROTTLE("\"priorityLevels\":[{\"shares\":3,\"name\":\"low\"}]")), "configured");
	text = json_dumps(kept_document(f), JSON_COMPACT);
	assert_string_equal(text, "{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\",\"metadata\":{\"name\":\"api\"},"
				  "\"spec\":{\"priorityLevels\":[{\"name\":\"low\",\"shares\":3}]}}");
}

/* Where anything is to be said, or may be read in another way, nothing is done. */
static void left_to_the_client(void **state)
{
	static const char *const cases[] = {
		AS_FILE(THROTTLE("\"limits\":[{\"name\":\"user\",\"qps\":0.5,\"burst\":9}]")),
		AS_FILE(THROTTLE("\"limits\":[{\"name\":\"user\",\"qps\":1,\"brust\":9}]")),
		AS_FILE(THROTTLE("\"limits\":[{\"name\":\"user\",\"overrides\":[" OVERRIDE("ann", "1") "," OVERRIDE(
			"ann", "1") "]}]")),
		AS_FILE(THROTTLE("\"inside\":\"off\",\"insideShare\":5")),
		AS_FILE("{}"),
		AS_FILE("[]"),
		AS_FILE("{\"apiVersion\":\"apiserver.config.k8s.io/v1\",\"kind\":\"AdmissionConfiguration\","
			"\"plugins\":[{\"name\":\"EventRateLimit\",\"path\":\"/dev/zero\"}]}"),
		AS_FILE("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[]}"),
	};
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;

	succeed(f, "attach", ATTACH);
	succeed(f, "apply", APPLY(LIMITS(USER)));
	before = saved_state(f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_JSON json_t *result = run(f, "apply", cases[i]);

		assert_true(json_is_true(json_object_get(result, "client_reads")));
		assert_saved(f, before);
	}
	refuse(f, "apply", "{\"file\":\"/etc/p.json\"}", "either objects, or a file");
	refuse(f, "apply", "{\"document\":{}}", "either objects, or a file");
	refuse(f, "apply", "{\"objects\":[],\"file\":\"/etc/p.json\",\"document\":{}}", "either objects, or a file");
	assert_saved(f, before);
}

/* More overrides than this kernel has room for: it only gives a number, and all is as it was. */
static void error_without_words(void **state)
{
	static const char *const begin =
		"{\"objects\":[{\"file\":\"a.yaml\",\"document\":{\"apiVersion\":\"weir/v1\","
		"\"kind\":\"Throttle\",\"metadata\":{\"name\":\"api\"},\"spec\":{\"listen\":[\"*:80\"],"
		"\"limits\":[{\"name\":\"user\",\"qps\":1,\"burst\":1,\"overrides\":[";
	CLEANUP_FREE char *objects = NULL;
	struct fixture *f = *state;
	size_t size;
	FILE *out = open_memstream(&objects, &size);

	fputs(begin, out);
	for (int i = 0; i <= FAKE_OVERRIDES; i++)
		fprintf(out, "%s{\"subject\":\"%d\",\"qps\":1,\"burst\":1}", i ? "," : "", i);
	fputs("]}]}}}]}", out);
	fclose(out);
	refuse(f, "apply", objects, "No space left on device");
	assert_null(f->agent.state.servers[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(applied),
		with_agent(status_is_short),
		with_agent(files_are_read_first),
		with_agent(taken_back),
		with_agent(refused),
		with_agent(attached_with_it),
		with_agent(for_which_server),
		with_agent(levels_of_its_own),
		with_agent(list_width),
		with_agent(settings),
		with_agent(paused_by_both),
		with_agent(dry_run_by_both),
		with_agent(told_what_changes),
		with_agent(writes_what_changes),
		with_agent(as_a_file),
		with_agent(as_a_file_that_is_shown),
		with_agent(left_to_the_client),
		with_agent(error_without_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
