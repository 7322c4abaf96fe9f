/* SPDX-License-Identifier: GPL-2.0 */
/* How much an agent takes: of each the last one that there is room for, one more, and far more than that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent_fixture.h"
#include "base/cleanup.h"
#include "base/shared_text.h"
#include "fake_datapath.h"

static char *dump(json_t *json)
{
	char *text = json_dumps(json, JSON_COMPACT);

	json_decref(json);
	assert_non_null(text);
	return text;
}

/* --- servers */

static json_t *throttle(int number)
{
	return json_pack("{s:s, s:{s:s, s:s, s:{s:o}, s:{s:[o]}}}", "file", "/etc/p.yaml", "document", "apiVersion",
			 "weir/v1", "kind", "Throttle", "metadata", "name", json_sprintf("s%d", number), "spec",
			 "listen", json_sprintf("*:%d", 1000 + number));
}

/* Throttles of the servers [from, to). */
static void add_throttles(json_t *objects, int from, int to)
{
	for (int i = from; i < to; i++)
		json_array_append_new(objects, throttle(i));
}

static void attach(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++) {
		CLEANUP_FREE char *arguments = dump(json_pack("{s:{s:o, s:[o]}}", "server", "name",
							      json_sprintf("s%d", i), "listen",
							      json_sprintf("*:%d", 1000 + i)));

		succeed(f, "attach", arguments);
	}
}

/* Two servers are attached, and the Throttle of one of them stands where all places are taken. */
static char *two_and_throttles(int n)
{
	json_t *objects = json_array();

	add_throttles(objects, 2, n <= WEIR_MAX_SERVERS ? n : WEIR_MAX_SERVERS + 2);
	add_throttles(objects, 0, 1);
	add_throttles(objects, WEIR_MAX_SERVERS + 2, n);
	return dump(json_pack("{s:o}", "objects", objects));
}

static void servers(void **state)
{
	static const int too_many[] = { WEIR_MAX_SERVERS + 1, 2 * WEIR_MAX_SERVERS + 1, 195, 4000 };
	CLEANUP_FREE char *most = two_and_throttles(WEIR_MAX_SERVERS), *before = NULL;
	struct fixture *f = *state;

	attach(f, 2);
	before = saved_state(f);
	for (size_t i = 0; i < sizeof(too_many) / sizeof(*too_many); i++) {
		CLEANUP_FREE char *objects = two_and_throttles(too_many[i]);

		refuse(f, "diff", objects, "room for 64 servers");
		refuse(f, "apply", objects, "room for 64 servers");
		assert_saved(f, before);
	}
	succeed(f, "diff", most);
	succeed(f, "apply", most);
	assert_non_null(f->agent.state.servers[WEIR_MAX_SERVERS - 1]);
	succeed(f, "apply", most);
	succeed(f, "metrics", "{}");
	succeed(f, "status", "{}");
	refuse(f, "attach", "{\"server\":{\"name\":\"more\",\"listen\":[\"*:1\"]}}", "64 servers");
}

/* --- seats of many subjects */

/* What the metrics say, where every limit in the kernel has so many seats taken. */
static bool says_taken(struct fixture *f, __u64 kernel, __u64 said)
{
	CLEANUP_FREE char *text = NULL, *line = NULL;
	CLEANUP_JSON json_t *result = NULL;

	for (size_t i = 0; i < WEIR_SERVER_LIMITS; i++)
		fake_nets[1].servers[0].taken[i] = kernel;
	result = run(f, "metrics", "{}");
	text = metrics_text(json_object_get(result, "metrics"));
	assert_true(asprintf(&line, "\nweir_limit_in_flight{server=\"s0\",limit=\"slow\"} %llu\n", said) > 0);
	return strstr(text, line);
}

/* What takes no time is read whenever somebody asks; what took 100 ms not for 10 s, or until it may be another's. */
static void seats_taken(void **state)
{
	struct fixture *f = *state;

	attach(f, 1);
	succeed(f, "limit set", "{\"server\":\"s0\",\"limit\":{\"name\":\"slow\",\"key\":\"user\",\"in_flight\":9}}");
	assert_true(says_taken(f, 1, 1));
	assert_true(says_taken(f, 2, 2));
	fake_nets[1].taken_ms = 100;
	assert_true(says_taken(f, 3, 3));
	assert_true(says_taken(f, 4, 3));
	succeed(f, "limit delete", "{\"server\":\"s0\",\"limit\":\"slow\"}");
	succeed(f, "limit set", "{\"server\":\"s0\",\"limit\":{\"name\":\"slow\",\"key\":\"user\",\"in_flight\":9}}");
	assert_true(says_taken(f, 5, 5));
}

/* --- what a namespace's maps hold */

static char *listening(const char *name, int from, int n)
{
	json_t *listen = json_array();

	for (int i = from; i < from + n; i++)
		json_array_append_new(listen, json_sprintf("10.0.%d.%d:80", i / 256, i % 256));
	return dump(json_pack("{s:{s:s, s:o}}", "server", "name", name, "listen", listen));
}

static void listeners(void **state)
{
	CLEANUP_FREE char *most = listening("api", 0, WEIR_MAX_LISTENERS - 1);
	CLEANUP_FREE char *over = listening("api", 0, WEIR_MAX_LISTENERS + 1), *far = listening("api", 0, 5000);
	CLEANUP_FREE char *one = listening("one", 5000, 1), *two = listening("two", 5000, 2);
	struct fixture *f = *state;

	refuse(f, "attach", over, "1025 addresses to listen on: a network namespace has room for 1024");
	refuse(f, "attach", far, "room for 1024");
	assert_int_equal(fake_nets[1].writes, 0);
	succeed(f, "attach", most);
	refuse(f, "attach", two, "its other servers have 1023");
	succeed(f, "attach", one);
	succeed(f, "attach", "{\"server\":{\"name\":\"any\",\"listen\":[\"*:99\"]}}");
}

static char *proxied(int n)
{
	json_t *proxies = json_array();

	for (int i = 0; i < n; i++)
		json_array_append_new(proxies, json_sprintf("10.%d.%d.0/24", i / 256, i % 256));
	return dump(json_pack("{s:{s:s, s:[s], s:o}}", "server", "name", "api", "listen", "*:80", "trusted_proxies",
			      proxies));
}

static void proxies(void **state)
{
	CLEANUP_FREE char *most = proxied(WEIR_MAX_PROXIES), *over = proxied(WEIR_MAX_PROXIES + 1);
	struct fixture *f = *state;

	refuse(f, "attach", over, "4097 trusted proxies: a network namespace has room for 4096");
	succeed(f, "attach", most);
}

static char *exempting(int groups, int users)
{
	json_t *names[2] = { json_array(), json_array() };

	for (int i = 0; i < groups; i++)
		json_array_append_new(names[0], json_sprintf("g%d", i));
	for (int i = 0; i < users; i++)
		json_array_append_new(names[1], json_sprintf("u%d", i));
	return dump(json_pack("{s:{s:s, s:[s], s:{s:o, s:o}}}", "server", "name", "api", "listen", "*:80", "identity",
			      "exempt_groups", names[0], "exempt_users", names[1]));
}

/* A group takes the room of two. */
static void names(void **state)
{
	CLEANUP_FREE char *most = exempting(2, WEIR_MAX_GROUP_KEYS - 4), *over = exempting(2, WEIR_MAX_GROUP_KEYS - 3);
	struct fixture *f = *state;

	refuse(f, "attach", over, "65537 names of groups and exempt users: a network namespace has room for 65536");
	succeed(f, "attach", most);
}

/* The server s0 has a limit for so many users, of whom the kernel in memory and the file know nothing: only their number counts. */
static void fill_overrides(struct fixture *f, size_t n)
{
	struct limit *limit = server_limit(f->agent.state.servers[0], "user");

	free(limit->overrides);
	limit->overrides = calloc(n, sizeof(*limit->overrides));
	limit->n_overrides = n;
	for (size_t i = 0; i < n; i++)
		limit->overrides[i].subject = shared_text("u");
}

static void empty_overrides(struct fixture *f)
{
	struct limit *limit = server_limit(f->agent.state.servers[0], "user");

	while (limit->n_overrides)
		shared_text_free(limit->overrides[--limit->n_overrides].subject);
}

/* Of another server in the same namespace. */
static char *overridden(size_t n)
{
	json_t *overrides = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(overrides, json_pack("{s:o, s:i, s:i}", "subject", json_sprintf("u%zu", i), "qps",
							   1, "burst", 1));
	return dump(json_pack("{s:[{s:s, s:{s:s, s:s, s:{s:s}, s:{s:[{s:s, s:o}]}}}]}", "objects", "file",
			      "/etc/p.yaml", "document", "apiVersion", "weir/v1", "kind", "Throttle", "metadata",
			      "name", "s1", "spec", "limits", "name", "user", "overrides", overrides));
}

static void overrides(void **state)
{
	CLEANUP_FREE char *one = overridden(1), *two = overridden(2), *thousand = overridden(1000), *before = NULL;
	struct fixture *f = *state;

	attach(f, 2);
	succeed(f, "limit set", "{\"server\":\"s0\",\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}");
	before = saved_state(f);
	fill_overrides(f, WEIR_MAX_OVERRIDES - 1);
	succeed(f, "diff", one);
	refuse(f, "apply", two, "2 limits for single subjects: a network namespace has room for 131072");
	refuse(f, "apply", thousand, "has room for 131072");
	empty_overrides(f);
	fill_overrides(f, WEIR_MAX_OVERRIDES);
	refuse(f, "apply", one, "has 1 limit for a single subject: a network namespace has room for 131072");
	empty_overrides(f);
	assert_saved(f, before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(servers), with_agent(seats_taken), with_agent(listeners),
		with_agent(proxies), with_agent(names),	      with_agent(overrides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
