/* SPDX-License-Identifier: GPL-2.0 */
/* Settings that attach makes, and those that come with a server's limits. */
#include <errno.h>
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

/* A server of which the settings are otherwise than by default. */
static struct server *made(const char *settings)
{
	CLEANUP_JSON json_t *json = json_pack("{s:s, s:[s]}", "name", "api", "listen", "*:8080");
	CLEANUP_JSON json_t *more = json_loads(settings, 0, NULL);
	struct server *server = NULL;
	struct error err;

	json_object_update(json, more);
	if (server_from_json(json, &server, &err))
		fail_msg("%s: %s", settings, err.text);
	return server;
}

/* What commands set beside a Throttle is none of its settings. */
static void same(void **state)
{
	static const struct {
		const char *settings;
		bool same;
	} cases[] = {
		{ "{}", true },
		{ "{\"dry_run\":true,\"concurrency\":5,\"paused\":true}", true },
		{ "{\"hold\":\"drop\"}", false },
		{ "{\"bodies\":\"unread\"}", false },
		{ "{\"listen\":[\"*:8081\"]}", false },
		{ "{\"xdp\":\"off\"}", false },
		{ "{\"trusted_proxies\":[\"10.0.0.0/8\"]}", false },
		{ "{\"identity\":{\"user_header\":\"x-user\"}}", false },
	};
	CLEANUP_SERVER struct server *bare = made("{}");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_SERVER struct server *server = made(cases[i].settings);

		if (policy_same_settings(bare, server) != cases[i].same)
			fail_msg("%s", cases[i].settings);
	}
}

/* A server is attached before it has limits, or is in a dry run. */
static void attach(void **state)
{
	static const char *const later[] = { "limits",		"concurrency",	 "dry_run",    "exempt",
					     "paused",		"max_in_flight", "list_width", "list_object_bytes",
					     "priority_levels", "flow_schemas" };
	CLEANUP_JSON json_t *throttle = json_loads(
		"{\"spec\":{\"limits\":[],\"concurrency\":5,\"dryRun\":true,\"exempt\":[],\"paused\":true,\"maxInFlight\":{},"
		"\"priorityLevels\":[],\"flowSchemas\":[],\"listWidth\":2,\"listObjectBytes\":9,"
		"\"listen\":[\"*:80\"],\"whenFull\":\"open\",\"trustedProxies\":[\"10.0.0.0/8\"]}}",
		0, NULL);
	CLEANUP_JSON json_t *settings = policy_attach_settings(throttle);

	(void)state;
	for (size_t i = 0; i < sizeof(later) / sizeof(*later); i++)
		if (json_object_get(settings, later[i]))
			fail_msg("there is %s", later[i]);
	assert_string_equal(json_string_value(json_object_get(settings, "when_full")), "open");
	assert_string_equal(json_string_value(json_array_get(json_object_get(settings, "trusted_proxies"), 0)),
			    "10.0.0.0/8");
	assert_string_equal(json_string_value(json_array_get(json_object_get(settings, "listen"), 0)), "*:80");
}

/* What a Throttle sets ends with it, and what was there before is back: also the first of the settings there are. */
static void back(void **state)
{
	static const char objects[] =
		"[{\"file\":\"/t.yaml\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\","
		"\"metadata\":{\"name\":\"api\"},\"spec\":{\"concurrency\":7,\"dryRun\":true,\"hold\":\"pace\",\"xdp\":\"off\"}}}]";
	CLEANUP_SERVER struct server *server = made("{\"concurrency\":5,\"hold\":\"drop\"}"), *with = NULL,
				     *without = NULL;
	CLEANUP_JSON json_t *list = json_loads(objects, 0, NULL), *none = json_array();
	struct error err;

	(void)state;
	assert_int_equal(policy_server(server, list, &with, &err), 0);
	assert_int_equal(with->concurrency, 7);
	assert_int_equal(with->hold, HOLD_PACE);
	assert_true(with->dry_run);
	assert_false(policy_same_settings(server, with));
	assert_int_equal(policy_server(with, none, &without, &err), 0);
	assert_int_equal(without->concurrency, 5);
	assert_int_equal(without->hold, HOLD_DROP);
	assert_false(without->dry_run);
	assert_true(policy_same_settings(server, without));
}

/* A command does not undo what a file says, and what it does itself stays when the file is applied again. */
static void commands(void **state)
{
	CLEANUP_SERVER struct server *server = made("{}"),
				     *paused = policy_server_with(server, "{\"paused\":true,\"dryRun\":true}"),
				     *plain = policy_server_with(server, "{}"), *again = NULL;
	struct error err;

	(void)state;
	assert_int_equal(policy_pause(paused, false, &err), -EBUSY);
	assert_string_equal(err.text, "server \"api\" is paused by /t.yaml: change it there");
	assert_int_equal(policy_dry_run(paused, false, &err), -EBUSY);
	assert_string_equal(err.text, "server \"api\": /t.yaml says dryRun: true: change it there");
	assert_true(paused->paused && paused->dry_run);
	assert_int_equal(policy_pause(paused, true, &err), 0);
	assert_int_equal(policy_dry_run(paused, true, &err), 0);
	assert_int_equal(policy_pause(plain, true, &err), 0);
	assert_int_equal(policy_dry_run(plain, true, &err), 0);
	assert_true(plain->paused && plain->dry_run);
	again = policy_server_with(plain, "{\"hold\":\"drop\"}");
	assert_true(again->paused && again->dry_run);
	assert_int_equal(policy_pause(again, false, &err), 0);
	assert_int_equal(policy_dry_run(again, false, &err), 0);
	assert_false(again->paused || again->dry_run);
}

/* Buckets have their room, and in another namespace it is another server. */
static void fixed(void **state)
{
	static const struct {
		const char *throttle;
		int ret;
	} cases[] = {
		{ "{\"spec\":{}}", 0 },
		{ "{\"spec\":{\"keys\":4096,\"netns\":\"/run/netns/a\"}}", 0 },
		{ "{\"spec\":{\"keys\":4097}}", -EBUSY },
		{ "{\"spec\":{\"netns\":\"/run/netns/b\"}}", -EBUSY },
	};
	CLEANUP_SERVER struct server *server = made("{\"keys\":4096,\"netns\":\"/run/netns/a\"}");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_JSON json_t *throttle = json_loads(cases[i].throttle, 0, NULL);
		struct error err = { 0 };

		assert_int_equal(policy_check_fixed(server, throttle, &err), cases[i].ret);
		if (cases[i].ret)
			assert_non_null(strstr(err.text, "cannot be changed while it is attached: detach it first"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same),	    cmocka_unit_test(attach), cmocka_unit_test(back),
		cmocka_unit_test(commands), cmocka_unit_test(fixed),
	};

	return cmocka_run_group_tests_name("policy_settings", tests, NULL, NULL);
}
