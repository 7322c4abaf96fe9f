/* SPDX-License-Identifier: GPL-2.0 */
/* What `weir export` writes: what makes the server again, and no more. */
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

#define EVENTS                                                                                             \
	"{\"file\":\"/e.yaml\",\"document\":{\"apiVersion\":\"eventratelimit.admission.k8s.io/v1alpha1\"," \
	"\"kind\":\"Configuration\",\"limits\":[{\"type\":\"User\",\"qps\":10,\"burst\":50}]}}"
#define THROTTLE                                                                                \
	"{\"file\":\"/t.yaml\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\"," \
	"\"metadata\":{\"name\":\"api\"},\"spec\":{\"paused\":true,"                            \
	"\"limits\":[{\"name\":\"total\",\"qps\":7,\"burst\":7}]}}}"

static struct server *made(const char *limits, const char *objects)
{
	CLEANUP_JSON json_t *json = json_pack("{s:s, s:[s], s:o}", "name", "api", "listen", "*:8080", "limits",
					      json_loads(limits, 0, NULL));
	CLEANUP_JSON json_t *list = json_loads(objects, 0, NULL);
	struct server *server = NULL, *applied = NULL;
	struct error err;

	if (server_from_json(json, &server, &err) || policy_server(server, list, &applied, &err))
		fail_msg("%s", err.text);
	server_free(server);
	return applied;
}

static json_t *spec_of(json_t *documents)
{
	return json_object_get(json_array_get(documents, 0), "spec");
}

static void check(json_t *json, const char *expected)
{
	CLEANUP_FREE char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

	assert_non_null(text);
	assert_string_equal(text, expected);
}

/* By name; whole rates as numbers; numbers and files of limits are weir's own, and so is how many keys there are by default. */
static void limits(void **state)
{
	CLEANUP_SERVER struct server *server = made(
		"[{\"name\":\"user\",\"qps\":\"15\",\"burst\":10,\"overrides\":["
		"{\"subject\":\"bob\",\"qps\":\"2\",\"burst\":3},{\"subject\":\"eve\",\"qps\":\"0.5\",\"burst\":3}]},"
		"{\"name\":\"lists\",\"key\":\"user\",\"in_flight\":9,\"keys\":4096},"
		"{\"name\":\"total\",\"qps\":\"0.25\",\"burst\":1}]",
		"[]");
	CLEANUP_JSON json_t *all = policy_export(server), *bare = policy_export_settings(server);

	(void)state;
	check(json_object_get(spec_of(all), "limits"),
	      "[{\"inFlight\":9,\"key\":\"user\",\"keys\":4096,\"mode\":\"enforce\",\"name\":\"lists\"},"
	      "{\"burst\":1,\"mode\":\"enforce\",\"name\":\"total\",\"qps\":\"0.25\"},"
	      "{\"burst\":10,\"mode\":\"enforce\",\"name\":\"user\",\"overrides\":["
	      "{\"burst\":3,\"qps\":2,\"subject\":\"bob\"},{\"burst\":3,\"qps\":\"0.5\",\"subject\":\"eve\"}],\"qps\":15}]");
	assert_int_equal(json_array_size(json_object_get(spec_of(bare), "limits")), 3);
	assert_null(json_object_get(json_array_get(json_object_get(spec_of(bare), "limits"), 2), "overrides"));
}

/* What is as it is without being said is left out; that nobody's group is exempt makes a difference. */
static void without_what_is_empty(void **state)
{
	static const char *const left_out[] = { "name",	  "interfaces", "dryRun",      "paused",
						"limits", "exempt",	"insideShare", "holdMax",
						"netns",  "groups",	"flowSchemas", "priorityLevels" };
	CLEANUP_SERVER struct server *server = made("[]", "[]");
	CLEANUP_JSON json_t *all = NULL;

	(void)state;
	server->paused = true;
	all = policy_export(server);
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		if (json_object_get(spec_of(all), left_out[i]))
			fail_msg("there is %s", left_out[i]);
	check(json_object_get(spec_of(all), "listen"), "[\"*:8080\"]");
	check(json_object_get(spec_of(all), "hold"), "\"auto\"");
	texts_clear(&server->identity.exempt_groups);
	json_decref(all);
	all = policy_export(server);
	check(json_object_get(json_object_get(spec_of(all), "identity"), "exemptGroups"), "[]");
}

/* The Throttle is written anew, with what commands have set; other objects as they were applied, and their limits are in them. */
static void with_its_objects(void **state)
{
	CLEANUP_SERVER struct server *server = made("[{\"name\":\"user\",\"qps\":\"5\",\"burst\":10}]",
						    "[" EVENTS "," THROTTLE "]");
	CLEANUP_JSON json_t *all = policy_export(server);

	(void)state;
	assert_int_equal(json_array_size(all), 2);
	check(json_object_get(json_array_get(all, 0), "kind"), "\"Throttle\"");
	check(json_object_get(json_array_get(all, 1), "kind"), "\"Configuration\"");
	check(json_object_get(spec_of(all), "paused"), "true");
	check(json_object_get(spec_of(all), "limits"),
	      "[{\"burst\":7,\"mode\":\"enforce\",\"name\":\"total\",\"qps\":7},"
	      "{\"burst\":10,\"mode\":\"enforce\",\"name\":\"user\",\"qps\":5}]");
}

/* Of thousands it is only told whether there is a difference. */
static void overrides(void **state)
{
#define USER(overrides) "{\"name\":\"user\",\"qps\":\"5\",\"burst\":10,\"overrides\":[" overrides "]}"
#define OF(name, qps) "{\"subject\":\"" name "\",\"qps\":\"" qps "\",\"burst\":3}"
#define TOTAL "{\"name\":\"total\",\"qps\":\"5\",\"burst\":10}"
	static const struct {
		const char *a, *b;
		bool same;
	} cases[] = {
		{ "[]", "[]", true },
		{ "[" USER("") "]", "[" TOTAL "]", true },
		{ "[" TOTAL "," USER(OF("bob", "2")) "]", "[" USER(OF("bob", "2")) "]", true },
		{ "[" USER(OF("bob", "2")) "]", "[" USER(OF("bob", "3")) "]", false },
		{ "[" USER(OF("bob", "2")) "]", "[" USER(OF("eve", "2")) "]", false },
		{ "[" USER(OF("bob", "2")) "]", "[]", false },
		{ "[" USER(OF("bob", "2")) "]", "[" USER("") "]", false },
		{ "[]", "[" USER(OF("bob", "2")) "]", false },
		{ "[" USER("") "]", "[" TOTAL "," USER(OF("bob", "2")) "]", false },
		{ "[" USER(OF("bob", "2")) "]", "[" USER(OF("bob", "2") "," OF("eve", "2")) "]", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_SERVER struct server *a = made(cases[i].a, "[]"), *b = made(cases[i].b, "[]");

		if (policy_same_overrides(a, b) != cases[i].same)
			fail_msg("%s, %s", cases[i].a, cases[i].b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(limits),
		cmocka_unit_test(without_what_is_empty),
		cmocka_unit_test(with_its_objects),
		cmocka_unit_test(overrides),
	};

	return cmocka_run_group_tests_name("policy_export", tests, NULL, NULL);
}
