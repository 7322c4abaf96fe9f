/* SPDX-License-Identifier: GPL-2.0 */
/* A server as it is saved and sent: written, read, and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "server_fixture.h"

static void server_round_trip(void **state)
{
	CLEANUP_SERVER struct server *server = make_server(server_with_all);
	CLEANUP_JSON json_t *json = server_to_json(server);
	CLEANUP_FREE char *text = json_dumps(json, JSON_COMPACT);

	(void)state;
	assert_string_equal(text, server_with_all);
	assert_int_equal(server->n_listens, 2);
	assert_true(server->listens[0].any);
	assert_int_equal(server->proxies[0].bits, 104);
	assert_int_equal(server->n_balancers, 1);
	assert_int_equal(server->balancers[0].bits, 120);
	assert_string_equal(server->interfaces[1], "lo");
	assert_int_equal(server->loopback, LOOPBACK_CLOSE);
	assert_int_equal(server->framing, FRAMING_PASS);
	assert_int_equal(server->bodies, BODIES_UNREAD);
	assert_int_equal(server->tenancy.paths, WEIR_PATHS_NGINX);
	assert_int_equal(server->tenancy.segments, 2);
	assert_int_equal(server->hold, HOLD_DROP);
	assert_int_equal(server->when_full, FULL_CLOSED);
	assert_int_equal(server->syn_cookies, SYN_COOKIES_XDP);
	assert_int_equal(server->inside, INSIDE_SEE);
	assert_true(server->limits[0].amount.per_ns == WEIR_QPS / 2);
	assert_int_equal(server->limits[0].keys, 5);
	assert_int_equal(limit_slot(&server->limits[0]), WEIR_BUILTIN_USER);
	assert_int_equal(limit_slot(&server->limits[1]), WEIR_BUILTIN_LIMITS + 17);
	assert_int_equal(server->limits[1].kind, WEIR_LIMIT_IN_FLIGHT);
	assert_int_equal(server->limits[1].key, WEIR_KEY_NAMESPACE | WEIR_KEY_USER);
}

static void defaults(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"],\"netns\":null}");

	(void)state;
	assert_null(server->netns);
	assert_null(server->cgroup);
	assert_int_equal(server->n_interfaces, 0);
	assert_null(server->interfaces);
	assert_int_equal(server->loopback, LOOPBACK_AUTO);
	assert_int_equal(server->framing, FRAMING_REJECT);
	assert_int_equal(server->tenancy.paths, WEIR_PATHS_KUBERNETES);
	assert_int_equal(server->tenancy.tenant, WEIR_TENANT_PATH);
	assert_int_equal(server->hold, HOLD_AUTO);
	assert_int_equal(server->when_full, FULL_KNOWN);
	assert_int_equal(server->inside, INSIDE_OFF);
	assert_false(server->dry_run || server->paused || server->draining);
	assert_int_equal(server->concurrency, 600);
	assert_int_equal(server->list_width, 0);
	assert_int_equal(server->list_object_bytes, 0);
}

/* What versions without the default have saved says nothing, and stays what it was. Who attaches says nothing, and gets the default. */
static void looked_into_by_default(void **state)
{
	static const struct {
		const char *given;
		enum inside_mode read, attached;
	} cases[] = {
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"]}", INSIDE_OFF, INSIDE_AUTO },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"inside\":\"off\"}", INSIDE_OFF, INSIDE_OFF },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"inside\":\"hold\"}", INSIDE_HOLD, INSIDE_HOLD },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_JSON json_t *json = json_loads(cases[i].given, 0, NULL);
		CLEANUP_SERVER struct server *read = make_server(cases[i].given), *attached = NULL;
		CLEANUP_JSON json_t *chosen = NULL;

		assert_int_equal(read->inside, cases[i].read);
		server_attach_defaults(json);
		assert_int_equal(server_from_json(json, &attached, NULL), 0);
		assert_int_equal(attached->inside, cases[i].attached);
		chosen = server_settings_chosen(attached);
		assert_int_equal(!!json_object_get(chosen, "inside"), attached->inside != INSIDE_OFF);
	}
}

/* A server's text and a word of the error that it must give. */
static void bad_servers(void **state)
{
	static const char *const cases[][2] = {
		{ "[]", "object" },
		{ "{\"listen\":[\"*:80\"]}", "name" },
		{ "{\"name\":\"A\",\"listen\":[\"*:80\"]}", "\"A\"" },
		{ "{\"name\":\"a\",\"listen\":[]}", "listen" },
		{ "{\"name\":\"a\",\"listen\":\"*:80\"}", "listen" },
		{ "{\"name\":\"a\",\"listen\":[80]}", "listen" },
		{ "{\"name\":\"a\",\"listen\":[\"*:0\"]}", "\"0\"" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"lisden\":[]}", "lisden" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"netns\":5}", "netns" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"trusted_proxies\":[\"10/8\"]}", "10/8" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"proxy_protocol\":true}", "proxy_protocol: must be a list" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"interfaces\":[\"a/b\"]}", "a/b" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"loopback\":\"maybe\"}", "maybe" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"framing\":\"guess\"}", "guess" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"bodies\":\"skimmed\"}", "skimmed" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"paths\":\"apache\"}", "apache" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"namespace_from\":\"host\"}", "host" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"hold\":\"still\"}", "still" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"hold\":1}", "string" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"when_full\":\"ajar\"}", "ajar" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"inside\":\"peek\"}", "peek" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"refusals\":\"loud\"}", "loud" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"xdp\":\"fast\"}", "fast" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"syn_cookies\":\"tc\"}", "tc" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"max_retry_after\":3601}", "max_retry_after" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"inside_share\":101}", "inside_share" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"hold_max\":26}", "hold_max" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"keys\":-1}", "keys" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"keys\":16777217}", "keys" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"dry_run\":1}", "dry_run" },
		{ "{\"name\":\"a\",\"listen\":[\"*:80\"],\"limits\":{}}", "limits" },
#define WITH(members) "{\"name\":\"a\",\"listen\":[\"*:80\"]," members "}"
#define LIMIT(name, number) "{\"name\":\"" name "\",\"key\":\"user\",\"in_flight\":1,\"number\":" number "}"
		{ WITH("\"limits\":[{\"name\":\"user\",\"qps\":\"5\"}]"), "burst" },
		{ WITH("\"limits\":[{\"name\":\"user\"}]"), "in_flight or deny are missing" },
		{ WITH("\"limits\":[" LIMIT("x", "1") "," LIMIT("x", "2") "]"), "twice" },
		{ WITH("\"limits\":[" LIMIT("x", "1") "," LIMIT("y", "253") "]"), "place" },
		{ WITH("\"exempt\":[{\"path\":[\"/x\"]}]"), "path" },
		{ WITH("\"concurrency\":-1"), "concurrency" },
		{ WITH("\"list_width\":11"), "list_width" },
		{ WITH("\"list_object_bytes\":1073741825"), "list_object_bytes" },
		{ WITH("\"flow_schemas\":[{\"name\":\"s\",\"level\":\"low\",\"rules\":[]}]"),
		  "no priority level \"low\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct server *server = NULL;
		struct error err = { 0 };

		assert_int_equal(read_server(cases[i][0], &server, &err), -EINVAL);
		assert_null(server);
		if (!strstr(err.text, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(server_round_trip),
		cmocka_unit_test(defaults),
		cmocka_unit_test(looked_into_by_default),
		cmocka_unit_test(bad_servers),
	};

	return cmocka_run_group_tests_name("server json", tests, NULL, NULL);
}
