/* SPDX-License-Identifier: GPL-2.0 */
/* A server as state.json has it: what is written, and that it is the same server when it is read again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "policy/objects.h"
#include "saved/text.h"

#define THROTTLE(spec)                                                                                           \
	"{\"file\":\"/etc/t.yaml\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\",\"metadata\":" \
	"{\"name\":\"c\"},\"spec\":" spec "}}"

static json_t *parsed(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return json;
}

static struct server *server_of(const json_t *json)
{
	struct server *server = NULL;
	struct error err;

	if (server_from_json((json_t *)json, &server, &err))
		fail_msg("%s", err.text);
	return server;
}

static json_t *written(struct server *server)
{
	CLEANUP_TEXT struct text text = { 0 };
	json_t *json;

	assert_int_equal(server_write(server, &text), 0);
	assert_false(text.failed);
	json = json_loadb(text.bytes, text.used, 0, NULL);
	assert_non_null(json);
	return json;
}

/* The server with what these objects say, and not what others said before. */
static struct server *with_objects(struct server *server, const char *text)
{
	CLEANUP_JSON json_t *objects = parsed(text);
	struct server *made = NULL;
	struct error err;

	if (policy_server(server, objects, &made, &err))
		fail_msg("%s", err.text);
	server_free(server);
	return made;
}

static struct server *read_again(struct server *server)
{
	CLEANUP_JSON json_t *json = written(server);

	server_free(server);
	return server_of(json);
}

/* A version that knows fewer settings has to read what does not use the others: what was not chosen is not written. */
static void only_what_was_chosen(void **state)
{
	static const char *const chosen[] = {
		"{\"name\":\"p\",\"listen\":[\"*:80\"],\"cgroup\":null,\"limits\":[]}",
		"{\"name\":\"c\",\"listen\":[\"*:80\"],\"cgroup\":\"/c\",\"xdp\":\"off\",\"max_retry_after\":7,"
		"\"identity\":{\"user_header\":\"x-user\"},\"limits\":[]}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(chosen) / sizeof(*chosen); i++) {
		CLEANUP_JSON json_t *wanted = parsed(chosen[i]), *found = NULL;
		CLEANUP_SERVER struct server *server = server_of(wanted);

		found = written(server);
		assert_true(json_equal(found, wanted));
	}
}

/* What applied objects cover is there again behind them: a default, too, and after it was read from a file. */
static void default_behind_objects(void **state)
{
	CLEANUP_JSON json_t *plain = parsed("{\"name\":\"c\",\"listen\":[\"*:80\"],\"hold\":\"drop\"}");
	CLEANUP_SERVER struct server *server = server_of(plain);

	(void)state;
	for (int i = 0; i < 2; i++) {
		server = with_objects(server, "[" THROTTLE("{\"paused\":true,\"xdp\":\"off\",\"hold\":\"pace\"}") "]");
		assert_true(server->paused && server->xdp == XDP_OFF && server->hold == HOLD_PACE);
		server = i ? read_again(server) : server;
		server = with_objects(server, "[" THROTTLE("{}") "]");
		assert_true(!server->paused && server->xdp == XDP_AUTO && server->hold == HOLD_DROP);
		server = with_objects(server, "[]");
		assert_true(!server->paused && server->xdp == XDP_AUTO && server->hold == HOLD_DROP);
	}
}

/* What is written without a tree is what the tree would be, whatever is in a subject. */
static void written_as_json(void **state)
{
	static const char *const subjects[] = { "ann", "a\"b\\c", "\303\274n /\302\205" };
	static const char limits[] =
		"[{\"name\":\"user\",\"overrides\":[]},{\"name\":\"slow\",\"key\":\"user\",\"number\":1,"
		"\"in_flight\":1,\"overrides\":[{\"subject\":\"x\",\"in_flight\":7},{\"subject\":\"y\",\"deny\":true}]},"
		"{\"name\":\"open\",\"key\":\"source\",\"number\":2,\"open\":3,"
		"\"overrides\":[{\"subject\":\"10.0.0.1\",\"open\":7}]},"
		"{\"name\":\"new\",\"key\":\"source\",\"number\":3,\"connections\":true,\"qps\":\"1\",\"burst\":3,"
		"\"overrides\":[{\"subject\":\"10.0.0.1\",\"qps\":\"0.5\",\"burst\":7}]},"
		"{\"name\":\"total\",\"qps\":\"0.25\",\"burst\":4}]";
	CLEANUP_JSON json_t *given = parsed(limits), *plain = parsed("{\"name\":\"c\",\"listen\":[\"*:80\"]}");
	CLEANUP_SERVER struct server *server = with_objects(server_of(plain), "[" THROTTLE("{}") "]");
	json_t *overrides = json_object_get(json_array_get(given, 0), "overrides"), *item;
	struct error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(subjects) / sizeof(*subjects); i++)
		json_array_append_new(overrides, json_pack("{s:s, s:s, s:i}", "subject", subjects[i], "qps",
							   i ? "7" : "0.000000001", "burst", (int)i));
	json_array_foreach (given, i, item) {
		struct limit limit = { 0 };

		if (limit_from_json(item, &limit, &err))
			fail_msg("%s", err.text);
		assert_int_equal(server_limit_add(server, &limit), 0);
	}
	for (int again = 0; again < 2; again++) {
		CLEANUP_JSON json_t *wanted = server_to_json(server), *found = NULL;

		server = read_again(server);
		found = server_to_json(server);
		assert_true(json_equal(found, wanted));
		policy_pause(server, true, NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_was_chosen),
		cmocka_unit_test(default_behind_objects),
		cmocka_unit_test(written_as_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
