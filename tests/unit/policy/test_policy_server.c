/* SPDX-License-Identifier: GPL-2.0 */
/* What a server is with its objects: exemptions beside those that commands have set, and levels that go on with the seats that are taken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/policy.h"
#include "state/state.h"

#include "policy_scene.h"

static struct server *bare(const char *settings)
{
	CLEANUP_JSON json_t *json = json_loads(settings, 0, NULL);
	struct server *server = NULL;
	struct error err;

	if (server_from_json(json, &server, &err))
		fail_msg("%s", err.text);
	return server;
}

/* A command's stay beside the file's, and one that both have is one. */
static void exemptions(void **state)
{
	CLEANUP_SERVER struct server *server = bare(
		"{\"name\":\"api\",\"listen\":[\"*:80\"],\"exempt\":[{\"paths\":[\"/healthz\"]}]}");
	CLEANUP_SERVER struct server *both = policy_server_with(
		server, "{\"exempt\":[{\"paths\":[\"/healthz\"]},{\"users\":[\"probe\"]}]}");
	CLEANUP_SERVER struct server *gone = policy_server_with(both, "{}");

	(void)state;
	assert_int_equal(both->n_exempt, 2);
	assert_string_equal(both->exempt[0].paths.items[0], "/healthz");
	assert_string_equal(both->exempt[1].users.items[0], "probe");
	assert_int_equal(gone->n_exempt, 1);
	assert_string_equal(gone->exempt[0].paths.items[0], "/healthz");
}

static void levels(void **state)
{
	CLEANUP_SERVER struct server *server = bare("{\"name\":\"api\",\"listen\":[\"*:80\"]}");
	CLEANUP_SERVER struct server *first = policy_server_with(
		server, "{\"priorityLevels\":[{\"name\":\"low\",\"shares\":1},{\"name\":\"high\",\"shares\":9}]}");
	CLEANUP_SERVER struct server *changed = policy_server_with(
		first, "{\"priorityLevels\":[{\"name\":\"new\",\"shares\":1},{\"name\":\"high\",\"shares\":5},"
		       "{\"name\":\"low\",\"shares\":2}]}");
	__u32 low = priority_level(&first->priorities, "low")->number,
	      high = priority_level(&first->priorities, "high")->number;

	(void)state;
	assert_int_not_equal(low, high);
	assert_int_equal(priority_level(&changed->priorities, "low")->number, low);
	assert_int_equal(priority_level(&changed->priorities, "high")->number, high);
	assert_int_not_equal(priority_level(&changed->priorities, "new")->number, low);
	assert_int_not_equal(priority_level(&changed->priorities, "new")->number, high);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exemptions),
		cmocka_unit_test(levels),
	};

	return cmocka_run_group_tests_name("policy_server", tests, NULL, NULL);
}
