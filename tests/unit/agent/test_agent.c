/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's commands over a kernel side in memory: what they do, and that what fails changes nothing. */
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

#include "agent_fixture.h"
#include "base/cleanup.h"
#include "base/rate.h"
#include "fake_datapath.h"

static void attach(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];

	succeed(f, "attach", ATTACH);
	assert_true(dp->open);
	assert_int_equal(dp->servers[0].flags, ACTIVE);
	assert_int_equal(dp->servers[0].n_listens, 2);
	assert_int_equal(dp->servers[0].n_proxies, 1);
	assert_int_equal(dp->n_wanted, 0);
}

static void attach_refused(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;
	unsigned int writes;

	succeed(f, "attach", ATTACH);
	before = saved_state(f);
	writes = fake_nets[1].writes;
	refuse(f, "attach", ATTACH, "attached already");
	refuse(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:80\"]}}", "\"api\"");
	refuse(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:90\"],\"netns\":\"/nowhere\"}}", "/nowhere");
	refuse(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:90\"],\"interfaces\":[\"nosuch0\"]}}",
	       "nosuch0");
	refuse(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:90\"],\"cgroup\":\"/nowhere\"}}", "/nowhere");
	refuse(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:90\"],\"cgroup\":\"/\"}}", "cgroup2");
	refuse(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:90\"]},\"netns_inode\":1}", "--netns");
	refuse(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:0\"]}}", "\"0\"");
	refuse(f, "attach", "{}", "server");
	assert_saved(f, before);
	assert_int_equal(fake_nets[1].writes, writes);
}

#define WITH_FILE(file) "{\"server\":{\"name\":\"api\",\"listen\":[\"*:80\"],\"identity\":{\"" file "\":\"%s\"}}}"

static void refuse_file(struct fixture *f, const char *format, const char *path, const char *word)
{
	char arguments[256];

	snprintf(arguments, sizeof(arguments), format, path);
	refuse(f, "attach", arguments, word);
	assert_null(f->agent.state.servers[0]);
	assert_null(f->agent.nets);
}

/* What the files say is known before anything is loaded, and not found out when all is there. */
static void files_are_read_first(void **state)
{
	struct fixture *f = *state;
	char path[64];

	snprintf(path, sizeof(path), "%s/file", f->state_dir);
	refuse_file(f, WITH_FILE("token_file"), path, "No such file");
	refuse_file(f, WITH_FILE("address_file"), path, "No such file");
	refuse_file(f, WITH_FILE("token_file"), "/proc/self/mem", "/proc/self/mem");
	refuse_file(f, WITH_FILE("token_file"), "/proc/version", "more than the 0 bytes of its size");
	write_file(path, "too,few\n");
	refuse_file(f, WITH_FILE("token_file"), path, "file:1:1: ");
	refuse_file(f, WITH_FILE("address_file"), path, "file:1:1: ");
	assert_int_equal(fake_nets[1].opened, 0);
	assert_int_equal(unlink(path), 0);
}

/* Kubernetes takes it, too: there is nobody whom a token names. That is most likely a mistake. */
static void no_token_is_warned_of(void **state)
{
	static const char *const contents[] = { "", "\n\n", ",nobody,1\n" };
	char arguments[256], path[64], warning[128];
	struct fixture *f = *state;

	snprintf(path, sizeof(path), "%s/file", f->state_dir);
	snprintf(arguments, sizeof(arguments), WITH_FILE("token_file"), path);
	snprintf(warning, sizeof(warning), "the token file %s has no tokens: no user is known by one", path);
	for (size_t i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		CLEANUP_JSON json_t *result = NULL;

		write_file(path, contents[i]);
		result = run(f, "attach", arguments);
		assert_string_equal(json_string_value(json_array_get(json_object_get(result, "warnings"), 0)), warning);
		assert_string_equal(f->agent.servers[0].warning.text, warning);
		write_file(path, "sesame,alice,1\n");
		assert_int_equal(chmod(path, 0600), 0);
		succeed(f, "reload", "{}");
		assert_string_equal(f->agent.servers[0].warning.text, "");
		succeed(f, "detach", "{\"name\":\"api\"}");
	}
	assert_int_equal(unlink(path), 0);
}

static void nothing_to_reload(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *result = NULL;

	refuse(f, "reload", "{}", "no server is attached");
	refuse(f, "pause", "{}", "no server is attached");
	refuse(f, "resume", "{}", "no server is attached");
	result = run(f, "detach", "{\"all\":true}");
	assert_int_equal(json_array_size(json_object_get(result, "servers")), 0);
	succeed(f, "attach", ATTACH);
	succeed(f, "reload", "{}");
}

/* One that is not in force has read nothing: that is told, and the others' files are read. */
static void reload_of_what_is_not_in_force(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	succeed(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:80\"],\"netns\":\"/netns/2\"}}");
	end_agent(f);
	fake_fail("datapath_open", 1);
	start_agent(f);
	refuse(f, "reload", "{}", "server \"api\" is not in force: ");
	assert_non_null(strstr(f->err.text, "(servers for which it is done: 1)"));
	refuse(f, "reload", "{\"name\":\"api\"}", "server \"api\" is not in force: ");
	succeed(f, "reload", "{\"name\":\"b\"}");
}

/* Wherever the kernel refuses, nothing is left of the server: here with no other beside it, then with one. */
static void attach_undone(void **state)
{
	static const char *const steps[] = { "datapath_open", "datapath_server_set", "datapath_links_sync" };
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		fake_fail(steps[i], 1);
		refuse(f, "attach", ATTACH, steps[i]);
		assert_null(f->agent.state.servers[0]);
		assert_null(f->agent.nets);
		assert_false(fake_nets[1].pinned);
		assert_false(fake_nets[1].servers[0].set);
	}
	succeed(f, "attach", ATTACH);
	for (size_t i = 1; i < sizeof(steps) / sizeof(*steps); i++) {
		CLEANUP_FREE char *before = saved_state(f);

		fake_fail(steps[i], 1);
		refuse(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:90\"]}}", steps[i]);
		assert_saved(f, before);
		assert_false(fake_nets[1].servers[1].set);
		assert_true(fake_nets[1].servers[0].set);
	}
}

static void interfaces_are_united(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:1\"],\"interfaces\":[\"lo\"]}}");
	assert_int_equal(fake_nets[1].n_wanted, 1);
	succeed(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:2\"],\"interfaces\":[\"lo\"]}}");
	assert_int_equal(fake_nets[1].n_wanted, 2);
	succeed(f, "attach", "{\"server\":{\"name\":\"c\",\"listen\":[\"*:3\"]}}");
	assert_int_equal(fake_nets[1].n_wanted, 0);
	succeed(f, "detach", "{\"name\":\"c\"}");
	assert_int_equal(fake_nets[1].n_wanted, 2);
}

static void namespaces(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:80\"]}}");
	succeed(f, "attach",
		"{\"server\":{\"name\":\"b\",\"listen\":[\"*:80\"],\"netns\":\"/netns/2\"},\"netns_inode\":1}");
	assert_true(fake_nets[1].servers[0].set);
	assert_true(fake_nets[2].servers[1].set);
	refuse(f, "attach", "{\"server\":{\"name\":\"c\",\"listen\":[\"*:80\"],\"netns\":\"/netns/2\"}}", "\"b\"");
	succeed(f, "detach", "{\"name\":\"a\"}");
	assert_false(fake_nets[1].pinned || fake_nets[1].open);
	assert_true(fake_nets[2].pinned && fake_nets[2].open);
}

/* What is pinned for a namespace without any server of the state is an agent's whose state was lost. */
static void leftovers_are_removed(void **state)
{
	struct fixture *f = *state;
	char path[64];

	fake_nets[1].pinned = true;
	fake_nets[1].servers[9].set = true;
	snprintf(path, sizeof(path), "%s/net-1", f->pin_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	succeed(f, "attach", ATTACH);
	assert_false(fake_nets[1].servers[9].set);
	assert_true(fake_nets[1].servers[0].set);
	/* Of a namespace with servers nothing is removed. */
	fake_nets[1].servers[9].set = true;
	succeed(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:90\"]}}");
	assert_true(fake_nets[1].servers[9].set);
	assert_int_equal(rmdir(path), 0);
}

static void limits(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];
	CLEANUP_FREE char *list_text = NULL;
	CLEANUP_JSON json_t *list = NULL;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"total\",\"qps\":\"100\",\"burst\":10}}");
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"0.5\",\"burst\":3,\"keys\":64}}");
	succeed(f, "limit set",
		"{\"server\":\"api\",\"limit\":{\"name\":\"user\",\"qps\":\"7\",\"burst\":1},\"subject\":\"alice\"}");
	assert_true(fake_limit(dp, 0, WEIR_BUILTIN_TOTAL)->amount.per_ns == 100 * WEIR_QPS);
	assert_true(fake_limit(dp, 0, WEIR_BUILTIN_TOTAL)->amount.burst == 10);
	assert_int_equal(fake_limit(dp, 0, WEIR_BUILTIN_TOTAL)->key, 0);
	assert_int_equal(fake_limit(dp, 0, WEIR_BUILTIN_TOTAL)->reason, WEIR_SHED_TOTAL);
	assert_true(fake_limit(dp, 0, WEIR_BUILTIN_USER)->amount.per_ns == WEIR_QPS / 2);
	assert_int_equal(fake_limit(dp, 0, WEIR_BUILTIN_USER)->keys, 64);
	assert_int_equal(fake_limit(dp, 0, WEIR_BUILTIN_USER)->key, WEIR_KEY_USER);
	assert_int_equal(fake_limit(dp, 0, WEIR_BUILTIN_USER)->reason, WEIR_SHED_USER);
	assert_true(fake_override(dp, 0, WEIR_BUILTIN_USER, WEIR_KEY_USER, "alice")->per_ns == 7 * WEIR_QPS);
	assert_false(dp->servers[0].has_rules);
	list = run(f, "limit list", "{}");
	list_text = json_dumps(list, JSON_COMPACT);
	assert_string_equal(list_text,
			    "{\"limits\":["
			    "{\"server\":\"api\",\"name\":\"total\",\"qps\":100,\"burst\":10,\"mode\":\"enforce\","
			    "\"file\":\"command line\"},"
			    "{\"server\":\"api\",\"name\":\"user\",\"qps\":0.5,\"burst\":3,"
			    "\"overrides\":[{\"subject\":\"alice\",\"qps\":7,\"burst\":1}],\"mode\":\"enforce\","
			    "\"keys\":64,\"file\":\"command line\"}]}");
	succeed(f, "limit delete", "{\"limit\":\"user\"}");
	assert_false(fake_limit(dp, 0, WEIR_BUILTIN_USER)->amount.set);
	assert_non_null(fake_override(dp, 0, WEIR_BUILTIN_USER, WEIR_KEY_USER, "alice"));
	refuse(f, "limit delete", "{\"limit\":\"user\"}", "no default");
	succeed(f, "limit delete", "{\"limit\":\"user\",\"subject\":\"alice\"}");
	assert_null(fake_override(dp, 0, WEIR_BUILTIN_USER, WEIR_KEY_USER, "alice"));
	assert_null(fake_limit(dp, 0, WEIR_BUILTIN_USER));
	refuse(f, "limit delete", "{\"limit\":\"user\",\"subject\":\"alice\"}", "no limit \"user\"");
	assert_non_null(fake_limit(dp, 0, WEIR_BUILTIN_TOTAL));
}

/* Whoever gives a rate alone keeps the burst, and the other way round; of a subject its own, and only where it has one. */
static void half_a_rate(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];
	const struct datapath_amount *amount;

	succeed(f, "attach", ATTACH);
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"5\"}}", "burst is missing");
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":3}}");
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"5\"}}");
	amount = &fake_limit(dp, 0, WEIR_BUILTIN_USER)->amount;
	assert_true(amount->per_ns == 5 * WEIR_QPS && amount->burst == 3);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"burst\":4}}");
	assert_true(amount->per_ns == 5 * WEIR_QPS && amount->burst == 4);
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"7\"},\"subject\":\"alice\"}",
	       "burst is missing");
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"deny\":true},\"subject\":\"alice\"}");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"7\"},\"subject\":\"alice\"}",
	       "burst is missing");
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"7\",\"burst\":9},\"subject\":\"alice\"}");
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"8\"},\"subject\":\"alice\"}");
	amount = fake_override(dp, 0, WEIR_BUILTIN_USER, WEIR_KEY_USER, "alice");
	assert_true(amount->per_ns == 8 * WEIR_QPS && amount->burst == 9);
}

/* One subject, however its address is written. */
static void address_subjects(void **state)
{
	static const __u8 cut[16] = { 0x20, 0x01, 0x0d, 0xb8 };
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set",
		"{\"limit\":{\"name\":\"user\",\"qps\":\"7\",\"burst\":1},\"subject\":\"2001:db8::1\"}");
	succeed(f, "limit set",
		"{\"limit\":{\"name\":\"user\",\"qps\":\"8\",\"burst\":1},\"subject\":\"2001:DB8::/64\"}");
	assert_int_equal(f->agent.state.servers[0]->limits[0].n_overrides, 1);
	assert_false(fake_limit(dp, 0, WEIR_BUILTIN_USER)->amount.set);
	assert_true(dp->overrides[0].subject == datapath_subject(dp, WEIR_NAME_ADDRESS, cut, sizeof(cut)));
	assert_true(dp->overrides[0].amount.per_ns == 8 * WEIR_QPS);
	assert_false(dp->overrides[1].there);
	succeed(f, "limit delete", "{\"limit\":\"user\",\"subject\":\"2001:db8::2\"}");
	assert_false(dp->overrides[0].there);
}

static bool warns(struct fixture *f, const char *arguments)
{
	CLEANUP_JSON json_t *result = run(f, "limit set", arguments);
	const char *text = json_string_value(json_array_get(json_object_get(result, "warnings"), 0));

	assert_non_null(result);
	return text && strstr(text, "use TLS");
}

static json_t *warnings_of(json_t *result)
{
	return json_object_get(result, "warnings");
}

/* What is wrong is most likely the number. */
static void nobody_listens(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *heard = run(f, "attach", ATTACH), *unheard = NULL, *status = NULL;
	const char *text;

	assert_null(warnings_of(heard));
	unheard = run(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:10000\",\"*:82\",\"[::1]:20000\"]}}");
	text = json_string_value(json_array_get(warnings_of(unheard), 0));
	assert_non_null(text);
	assert_non_null(strstr(text, "nobody listens on port 10000, 20000 in"));
	status = run(f, "status", "{}");
	assert_true(
		json_is_null(json_object_get(json_array_get(json_object_get(status, "servers"), 0), "nobody_listens")));
	assert_string_equal(json_string_value(json_object_get(json_array_get(json_object_get(status, "servers"), 1),
							      "nobody_listens")),
			    text);
}

/* One warning for each port, also where it is named for two addresses. */
static void takes_udp(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *before = run(f, "attach", ATTACH), *attached = NULL, *status = NULL;
	const char *text;

	assert_null(warnings_of(before));
	fake_udp_port = 443;
	attached = run(f, "attach",
		       "{\"server\":{\"name\":\"b\",\"listen\":[\"127.0.0.1:443\",\"[::1]:443\",\"*:444\"]}}");
	fake_udp_port = 0;
	assert_int_equal(json_array_size(warnings_of(attached)), 1);
	text = json_string_value(json_array_get(warnings_of(attached), 0));
	assert_non_null(strstr(text, "somebody takes it on port 443: turn"));
	status = run(f, "status", "{}");
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(json_object_get(status, "servers"), 1), "takes_udp")),
		text);
}

/* Whatever the server: one such program of the kernel may be for all sockets. */
static void data_without_packets(void **state)
{
	static const char text[] =
		"what BPF programs hand from one local socket to another is in no packet, and is limited only inside a server: redirect (id 12)";
	struct fixture *f = *state;
	CLEANUP_JSON json_t *attached = NULL, *status = NULL;

	fake_sockmap = true;
	attached = run(f, "attach", ATTACH);
	status = run(f, "status", "{}");
	fake_sockmap = false;
	assert_int_equal(json_array_size(warnings_of(attached)), 1);
	assert_string_equal(json_string_value(json_array_get(warnings_of(attached), 0)), text);
	assert_string_equal(json_string_value(json_object_get(json_object_get(status, "agent"), "sockmap")), text);
}

/* Where all is TLS, nobody is seen but by address. */
static void limits_unseen(void **state)
{
	static const char alice[] = "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1},\"subject\":\"alice\"}";
	static const char address[] =
		"{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1},\"subject\":\"10.0.0.9\"}";
	static const char all[] = "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}";
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	assert_false(warns(f, alice));
	fake_nets[1].counters[0][WEIR_TLS] = 3;
	assert_true(warns(f, alice));
	assert_false(warns(f, address));
	assert_false(warns(f, all));
	fake_nets[1].counters[0][WEIR_PASSED] = 1;
	assert_false(warns(f, alice));
}

static void limits_refused(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;
	unsigned int writes;

	refuse(f, "limit set", "{\"limit\":{\"name\":\"total\",\"qps\":\"1\",\"burst\":1}}", "no server");
	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}");
	before = saved_state(f);
	writes = fake_nets[1].writes;
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"12abc\",\"burst\":1}}", "12abc");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1,\"keys\":9}}", "keys");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1,\"keys\":9},\"subject\":\"a\"}",
	       "keys");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"total\",\"qps\":\"1\",\"burst\":1},\"subject\":\"a\"}", "total");
	refuse(f, "limit set", "{\"server\":\"b\",\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}", "\"b\"");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"in_flight\":1}}", "in_flight");
	refuse(f, "limit list", "{\"server\":\"b\"}", "\"b\"");
	refuse(f, "limit delete", "{\"limit\":\"total\"}", "no limit \"total\"");
	assert_saved(f, before);
	assert_int_equal(fake_nets[1].writes, writes);
	succeed(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:90\"]}}");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}", "api, b");
}

static void limits_undone(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}");
	before = saved_state(f);
	fake_fail("datapath_limit_set", 1);
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"2\",\"burst\":2}}", fake_failing);
	fake_fail("datapath_limit_set", 1);
	refuse(f, "limit set", "{\"limit\":{\"name\":\"total\",\"qps\":\"2\",\"burst\":2}}", fake_failing);
	fake_fail("datapath_override_set", 1);
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"2\",\"burst\":2},\"subject\":\"a\"}",
	       fake_failing);
	fake_fail("datapath_limit_delete", 1);
	refuse(f, "limit delete", "{\"limit\":\"user\"}", fake_failing);
	assert_saved(f, before);
	assert_int_equal(f->agent.state.servers[0]->n_limits, 1);
	assert_true(f->agent.state.servers[0]->limits[0].amount.burst == 1);
	assert_true(fake_limit(&fake_nets[1], 0, WEIR_BUILTIN_USER)->amount.burst == 1);
}

static void pause_and_resume(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];

	refuse(f, "pause", "{}", "no server");
	succeed(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:1\"],\"dry_run\":true}}");
	succeed(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:2\"],\"framing\":\"pass\"}}");
	succeed(f, "pause", "{\"name\":\"a\"}");
	assert_int_equal(dp->servers[0].flags, ACTIVE | WEIR_SERVER_DRY_RUN | WEIR_SERVER_PAUSED);
	assert_int_equal(dp->servers[1].flags, ACTIVE | WEIR_SERVER_PASS_AMBIGUOUS);
	succeed(f, "pause", "{}");
	assert_int_equal(dp->servers[1].flags, ACTIVE | WEIR_SERVER_PASS_AMBIGUOUS | WEIR_SERVER_PAUSED);
	fake_fail("datapath_server_flags", 1);
	refuse(f, "resume", "{\"name\":\"a\"}", fake_failing);
	assert_true(f->agent.state.servers[0]->paused);
	succeed(f, "resume", "{}");
	assert_int_equal(dp->servers[0].flags, ACTIVE | WEIR_SERVER_DRY_RUN);
	assert_int_equal(dp->servers[1].flags, ACTIVE | WEIR_SERVER_PASS_AMBIGUOUS);
}

static void status(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *result = NULL;
	CLEANUP_FREE char *top = NULL, *ports = NULL, *unread = NULL;
	json_t *server;

	succeed(f, "attach", ATTACH);
	fake_nets[1].counters[0][WEIR_PASSED] = 10;
	fake_nets[1].counters[0][WEIR_SHED] = 4;
	fake_nets[1].counters[0][WEIR_TLS] = 2;
	fake_nets[1].counters[0][WEIR_CONN_OPENED] = 3;
	fake_nets[1].counters[0][WEIR_CONN_CLOSED] = 1;
	result = run(f, "status", "{}");
	server = json_array_get(json_object_get(result, "servers"), 0);
	assert_int_equal(json_integer_value(json_object_get(server, "connections")), 2);
	assert_int_equal(json_integer_value(json_object_get(server, "passed")), 10);
	assert_int_equal(json_integer_value(json_object_get(server, "shed")), 4);
	assert_string_equal(json_string_value(json_object_get(server, "mode")), "limiting");
	assert_string_equal(json_string_value(json_object_get(server, "warning")),
			    "it has no limits: nothing is refused");
	ports = json_dumps(json_object_get(server, "ports"), JSON_COMPACT);
	assert_string_equal(ports, "[80,81]");
	unread = json_dumps(json_object_get(server, "unread"), JSON_COMPACT);
	assert_string_equal(unread, "{\"tls\":2}");
	top = json_dumps(json_object_get(server, "top"), JSON_COMPACT);
	assert_string_equal(
		top,
		"[{\"limit\":\"user\",\"subject\":\"mal\\\\x1bory\",\"passed\":1,\"shed\":30,\"dry_run_shed\":0},"
		"{\"limit\":\"namespace\",\"subject\":\"#00000000000000ab\",\"passed\":2,\"shed\":20,\"dry_run_shed\":0},"
		"{\"limit\":\"total\",\"subject\":null,\"passed\":3,\"shed\":10,\"dry_run_shed\":0}]");
}

static bool is_warned(struct fixture *f, const char *of)
{
	CLEANUP_JSON json_t *result = run(f, "status", "{}");
	json_t *server = json_array_get(json_object_get(result, "servers"), 0);
	const char *warning = json_string_value(json_object_get(server, "warning"));

	return warning && strstr(warning, of);
}

static bool is_said_half_blind(struct fixture *f, __u64 unreadable, __u64 seen)
{
	fake_nets[1].counters[0][WEIR_INSIDE_UNREADABLE] = unreadable;
	fake_nets[1].counters[0][WEIR_INSIDE_SEEN] = seen;
	return is_warned(f, "one request in 10,000");
}

static void half_blind(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	assert_false(is_said_half_blind(f, 0, 0));
	assert_false(is_said_half_blind(f, 1, 9999));
	assert_true(is_said_half_blind(f, 1, 9998));
	assert_true(is_said_half_blind(f, 1, 0));
	assert_false(is_said_half_blind(f, 0, 1000000));
}

/* Limits of addresses and of all together are what they seem to be. */
static void limits_of_users_behind_tls(void **state)
{
	static const char warning[] = "users are known by their addresses alone";
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"total\",\"qps\":\"100\",\"burst\":10}}");
	fake_nets[1].counters[0][WEIR_TLS] = 2;
	assert_false(is_warned(f, warning));
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"100\",\"burst\":10}}");
	assert_true(is_warned(f, warning));
	fake_nets[1].counters[0][WEIR_PASSED] = 1;
	assert_false(is_warned(f, warning));
}

static void metrics(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *result = NULL;
	CLEANUP_FREE char *text = NULL;

	succeed(f, "attach", ATTACH);
	refuse(f, "attach", ATTACH, "already");
	fake_nets[1].counters[0][WEIR_SHED_USER] = 4;
	result = run(f, "metrics", "{}");
	text = metrics_text(json_object_get(result, "metrics"));
	assert_non_null(strstr(text, "weir_shed_total{server=\"api\",key=\"user\",reason=\"rate\"} 4\n"));
	assert_non_null(strstr(text, "weir_server_mode{server=\"api\",mode=\"limiting\"} 1\n"));
	assert_non_null(strstr(text, "\nweir_control_requests_total 2\n"));
	assert_non_null(strstr(text, "\nweir_control_errors_total 1\n"));
}

static void no_such_command(void **state)
{
	refuse(*state, "reboot", "{}", "\"reboot\"");
	refuse(*state, "limit set", "[]", "limit");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(attach),
		with_agent(attach_refused),
		with_agent(files_are_read_first),
		with_agent(no_token_is_warned_of),
		with_agent(nothing_to_reload),
		with_agent(reload_of_what_is_not_in_force),
		with_agent(attach_undone),
		with_agent(interfaces_are_united),
		with_agent(namespaces),
		with_agent(leftovers_are_removed),
		with_agent(limits),
		with_agent(half_a_rate),
		with_agent(address_subjects),
		with_agent(nobody_listens),
		with_agent(takes_udp),
		with_agent(data_without_packets),
		with_agent(limits_unseen),
		with_agent(limits_refused),
		with_agent(limits_undone),
		with_agent(pause_and_resume),
		with_agent(status),
		with_agent(half_blind),
		with_agent(limits_of_users_behind_tls),
		with_agent(metrics),
		with_agent(no_such_command),
	};

	return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
