/* SPDX-License-Identifier: GPL-2.0 */
/* What was asked for: the limits of a server, the numbers and groups that it gives, and servers beside each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "server_fixture.h"

static void limit_lists(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"]}");

	(void)state;
	for (__u32 i = 0; i < 100; i++) {
		struct limit limit = { .number = i + 1 };

		snprintf(limit.name, sizeof(limit.name), "limit%u", i);
		assert_int_equal(server_limit_add(server, &limit), 0);
	}
	assert_int_equal(server_limit(server, "limit63")->number, 64);
	assert_null(server_limit(server, "limit100"));
	for (int i = 0; i < 100; i += 2) {
		char name[32];

		snprintf(name, sizeof(name), "limit%d", i);
		server_limit_remove(server, server_limit(server, name));
	}
	assert_int_equal(server->n_limits, 50);
	assert_null(server_limit(server, "limit62"));
	assert_int_equal(server_limit(server, "limit63")->number, 64);
}

/* A place in the kernel is used again only when all others have been, and then under another number. */
static void numbers(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"]}");
	const __u32 room = WEIR_SERVER_LIMITS - WEIR_BUILTIN_LIMITS;
	char name[SLOT_NAME_SIZE];
	struct error err;
	__u32 slot;

	(void)state;
	server->last_number = 1000;
	assert_int_equal(server_limit_add(server, &(struct limit){ .name = "user" }), 0);
	for (__u32 i = 0; i < room; i++) {
		struct limit limit = { 0 };

		snprintf(limit.name, sizeof(limit.name), "limit%u", i);
		assert_int_equal(server_limit_add(server, &limit), 0);
		assert_int_equal(server_give_numbers(server, &err), 0);
		assert_int_equal(server->limits[server->n_limits - 1].number, 1001 + i);
	}
	assert_int_equal(server->limits[0].number, 0);
	assert_int_equal(server_limit_add(server, &(struct limit){ .name = "more" }), 0);
	assert_int_equal(server_give_numbers(server, &err), -ENOSPC);
	slot = limit_slot(server_limit(server, "limit5"));
	server_slot_name(server, slot, name);
	assert_string_equal(name, "limit5");
	server_limit_remove(server, server_limit(server, "limit5"));
	assert_int_equal(server_give_numbers(server, &err), 0);
	assert_int_equal(limit_slot(server_limit(server, "more")), slot);
	assert_int_equal(server_limit(server, "more")->number, 1001 + room + 5);
}

/* A group that rules go on naming keeps its bit, whatever becomes of the others. */
static void groups(void **state)
{
	CLEANUP_SERVER struct server *server = make_server(
		"{\"name\":\"a\",\"listen\":[\"*:80\"],\"identity\":{\"exempt_groups\":[\"ops\"]},"
		"\"exempt\":[{\"groups\":[\"b\",\"ops\"]}],\"limits\":["
		"{\"name\":\"x\",\"key\":\"user\",\"in_flight\":1,\"rules\":[{\"groups\":[\"c\",\"b\"]}]},"
		"{\"name\":\"y\",\"key\":\"group\",\"overrides\":[{\"subject\":\"d\",\"in_flight\":1}]}]}");
	struct texts *named = &server->identity.rule_groups;

	(void)state;
	assert_int_equal(server_name_groups(server, NULL), 1);
	assert_int_equal(named->n, 3);
	assert_string_equal(named->items[0], "b");
	assert_string_equal(named->items[1], "c");
	assert_string_equal(named->items[2], "d");
	assert_int_equal(server_name_groups(server, NULL), 0);
	server_limit_remove(server, server_limit(server, "x"));
	assert_int_equal(server_name_groups(server, NULL), 1);
	assert_string_equal(named->items[0], "b");
	assert_string_equal(named->items[1], "");
	assert_string_equal(named->items[2], "d");
}

static void exempt(struct server *server, const char *array)
{
	CLEANUP_JSON json_t *groups = json_loads(array, 0, NULL);

	texts_clear(&server->identity.exempt_groups);
	assert_int_equal(texts_from_json(groups, "exempt_groups", copy_text, &server->identity.exempt_groups, NULL), 0);
}

/* A group that becomes exempt has a place among the exempt ones only, and nobody keeps a place that these need. */
static void groups_become_exempt(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"],\"limits\":["
							   "{\"name\":\"y\",\"key\":\"group\",\"overrides\":["
							   "{\"subject\":\"b\",\"in_flight\":1},"
							   "{\"subject\":\"c\",\"in_flight\":1}]}]}");
	struct texts *named = &server->identity.rule_groups;
	char many[WEIR_GROUPS_MAX * 8] = "[\"x\"";

	(void)state;
	assert_int_equal(server_name_groups(server, NULL), 1);
	exempt(server, "[\"b\"]");
	assert_int_equal(server_name_groups(server, NULL), 1);
	assert_string_equal(named->items[0], "");
	assert_string_equal(named->items[1], "c");
	for (int i = 0; i < WEIR_GROUPS_MAX - 3; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), ",\"x%d\"", i);
	strncat(many, "]", sizeof(many) - strlen(many) - 1);
	exempt(server, many);
	assert_int_equal(server_name_groups(server, NULL), -E2BIG);
	exempt(server, "[\"x\"]");
	assert_int_equal(server_name_groups(server, NULL), 1);
}

static void too_many_groups(void **state)
{
	CLEANUP_SERVER struct server *server = make_server("{\"name\":\"a\",\"listen\":[\"*:80\"]}");
	struct limit limit = { .name = "g", .key = WEIR_KEY_GROUP };
	struct datapath_amount amount = { .set = true };
	struct error err = { 0 };
	char name[16];

	(void)state;
	for (int i = 0; i < 127; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		assert_int_equal(limit_override_add(&limit, name, &amount), 0);
	}
	assert_int_equal(server_limit_add(server, &limit), 0);
	assert_int_equal(server_name_groups(server, &err), -E2BIG); /* system:masters is exempt */
	assert_non_null(strstr(err.text, "127"));
	limit_override_remove(&server->limits[0], &server->limits[0].overrides[3]);
	assert_true(server_name_groups(server, NULL) >= 0);
	assert_int_equal(server->identity.rule_groups.n, 126);
}

static void conflicts(void **state)
{
	static const struct {
		const char *name;
		__u64 cookie;
		const char *listens;
		int ret;
		const char *word;
	} cases[] = {
		{ "b", 1, "[\"*:81\"]", 0, "" },
		{ "b", 2, "[\"*:80\"]", 0, "" },
		{ "b", 1, "[\"10.0.0.1:80\"]", 0, "" },
		{ "b", 1, "[\"10.0.0.1:90\"]", -EEXIST, "\"a\"" },
		{ "b", 1, "[\"*:81\",\"0.0.0.0:80\"]", -EEXIST, "\"a\"" },
		{ "b", 1, "[\"*:81\",\"*:81\"]", -EEXIST, "twice" },
		{ "a", 2, "[\"*:81\"]", -EEXIST, "attached already" },
	};
	struct state s = { 0 };

	(void)state;
	s.servers[5] = server_at("a", 1, "[\"*:80\",\"10.0.0.1:90\"]");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_SERVER struct server *server = server_at(cases[i].name, cases[i].cookie, cases[i].listens);
		struct error err = { 0 };

		assert_int_equal(state_check(&s, server, &err), cases[i].ret);
		assert_non_null(strstr(err.text, cases[i].word));
		if (cases[i].ret)
			assert_non_null(strstr(err.text, cases[i].name));
	}
	assert_int_equal(state_check(&s, s.servers[5], NULL), 0);
	state_clear(&s);
}

static void the_only_one(void **state)
{
	struct state s = { 0 };
	struct error err;

	(void)state;
	assert_int_equal(state_find_only(&s, &err), -ENOENT);
	s.servers[9] = server_at("a", 1, "[\"*:80\"]");
	assert_int_equal(state_find_only(&s, &err), 9);
	s.servers[3] = server_at("b", 1, "[\"*:81\"]");
	assert_int_equal(state_find_only(&s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "b, a"));
	s.servers[3]->draining = true;
	assert_int_equal(state_find_only(&s, &err), 9);
	s.servers[9]->draining = true;
	assert_true(state_find_only(&s, &err) >= 0);
	assert_int_equal(state_find(&s, "a"), 9);
	assert_int_equal(state_find(&s, "c"), -ENOENT);
	state_clear(&s);
}

/* Whoever misspells a name sees what there is, one that is draining as well: its state can be asked for. */
static void unknown(void **state)
{
	struct state s = { 0 };
	struct error err;

	(void)state;
	assert_int_equal(state_unknown(&s, "web", &err), -ENOENT);
	assert_string_equal(err.text, "there is no server \"web\": none is attached");
	s.servers[9] = server_at("api", 1, "[\"*:80\"]");
	assert_int_equal(state_unknown(&s, "web", &err), -ENOENT);
	assert_string_equal(err.text, "there is no server \"web\", only api");
	s.servers[3] = server_at("metrics", 1, "[\"*:81\"]");
	s.servers[3]->draining = true;
	assert_int_equal(state_unknown(&s, "web", &err), -ENOENT);
	assert_string_equal(err.text, "there is no server \"web\", only metrics, api");
	assert_int_equal(state_unknown(&s, "apa", &err), -ENOENT);
	assert_string_equal(err.text, "there is no server \"apa\": is \"api\" meant?");
	state_clear(&s);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		char name[16];

		snprintf(name, sizeof(name), "api-%02d", slot);
		s.servers[slot] = server_at(name, 1, "[\"*:80\"]");
	}
	assert_int_equal(state_unknown(&s, "web.example", &err), -ENOENT);
	assert_non_null(strstr(err.text, "only api-00, api-01, "));
	assert_non_null(strstr(err.text, "api-17 and 46 more"));
	state_clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limit_lists),		cmocka_unit_test(numbers),	   cmocka_unit_test(groups),
		cmocka_unit_test(groups_become_exempt), cmocka_unit_test(too_many_groups), cmocka_unit_test(conflicts),
		cmocka_unit_test(the_only_one),		cmocka_unit_test(unknown),
	};

	return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
