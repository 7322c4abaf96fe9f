/* SPDX-License-Identifier: GPL-2.0 */
/* What servers were told is kept whole, whatever becomes of them, or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/view.h"
#include "base/cleanup.h"

#define SERVER                                                                                             \
	"{\"name\":\"%s\",\"listen\":[\"*:%d\"],\"limits\":[{\"name\":\"user\",\"qps\":\"1\",\"burst\":1," \
	"\"overrides\":[{\"subject\":\"ann\",\"qps\":\"2\",\"burst\":2}]},"                                \
	"{\"name\":\"slow\",\"key\":\"user\",\"number\":1,\"in_flight\":2,\"rules\":[{\"verbs\":[\"list\"]}]}]}"

static struct server *server_at(const char *name, int port)
{
	CLEANUP_JSON json_t *json = NULL;
	struct server *server = NULL;
	char text[512];
	struct error err;

	snprintf(text, sizeof(text), SERVER, name, port);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	if (server_from_json(json, &server, &err))
		fail_msg("%s", err.text);
	return server;
}

static void outlives_servers(void **state)
{
	struct state before = { .servers = { server_at("a", 1), server_at("b", 2) } }, after = { 0 };
	CLEANUP_AUDIT_VIEW struct audit_view was = { 0 }, is = { 0 };
	CLEANUP_JSON json_t *changes = NULL;

	(void)state;
	assert_int_equal(audit_view(&before, NULL, &was), 0);
	state_clear(&before);
	after.servers[0] = server_at("a", 1);
	after.servers[0]->limits[0].overrides[0].amount.burst = 7;
	assert_int_equal(audit_view_now(&after, &is), 0);
	changes = audit_changes(&was, &is);
	assert_string_equal(json_string_value(json_object_get(json_array_get(changes, 0), "what")),
			    "limit user for ann");
	assert_string_equal(json_string_value(json_object_get(json_array_get(changes, 1), "what")), "server");
	state_clear(&after);
}

/* A rule that cannot be copied is like one for which there is no memory. */
static void whole_or_not_at_all(void **state)
{
	struct state now = { .servers = { server_at("a", 1), server_at("b", 2) } };
	CLEANUP_AUDIT_VIEW struct audit_view view = { 0 };

	(void)state;
	strcpy(now.servers[0]->limits[1].rules[0].verbs.items[0], "?");
	assert_true(audit_view(&now, NULL, &view) < 0);
	assert_null(view.servers);
	assert_int_equal(view.n, 0);
	state_clear(&now);
}

/* Of overrides nothing else is kept, and nothing else is told. */
static void of_one_subject(void **state)
{
	const struct datapath_amount amount = { .set = true, .deny = true };
	struct state now = { .servers = { server_at("a", 1) } };
	CLEANUP_AUDIT_VIEW struct audit_view was = { 0 }, is = { 0 };
	CLEANUP_JSON json_t *changes = NULL;

	(void)state;
	assert_int_equal(audit_view(&now, "new", &was), 0);
	assert_int_equal(was.servers[0].limits[0].n_overrides, 0);
	assert_int_equal(limit_override_add(&now.servers[0]->limits[0], "new", &amount), 0);
	assert_int_equal(audit_view(&now, "new", &is), 0);
	assert_int_equal(is.servers[0].limits[0].n_overrides, 1);
	changes = audit_changes(&was, &is);
	assert_int_equal(json_array_size(changes), 1);
	assert_string_equal(json_string_value(json_object_get(json_array_get(changes, 0), "what")),
			    "limit user for new");
	state_clear(&now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outlives_servers),
		cmocka_unit_test(whole_or_not_at_all),
		cmocka_unit_test(of_one_subject),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
