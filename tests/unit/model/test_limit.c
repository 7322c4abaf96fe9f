/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "base/cleanup.h"
#include "base/rate.h"
#include "model/limit.h"

static int read_limit(const char *text, struct limit *limit, struct error *err)
{
	CLEANUP_JSON json_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return limit_from_json(json, limit, err);
}

static void round_trip(void **state)
{
	static const char *const texts[] = {
		"{\"name\":\"total\",\"qps\":\"0\",\"burst\":0,\"mode\":\"enforce\",\"keys\":0}",
		"{\"name\":\"user\",\"qps\":\"0.000000001\",\"burst\":1,\"overrides\":[{\"subject\":\"10.0.0.1\",\"qps\":\"5\","
		"\"burst\":2}],\"mode\":\"dry-run\",\"keys\":7}",
		"{\"name\":\"a\",\"key\":\"total\",\"number\":300,\"in_flight\":0,\"mode\":\"enforce\",\"keys\":0}",
		"{\"name\":\"user\",\"deny\":true,\"overrides\":[{\"subject\":\"alice\",\"qps\":\"5\",\"burst\":9},"
		"{\"subject\":\"bob\",\"deny\":true}],\"mode\":\"enforce\",\"keys\":0}",
		"{\"name\":\"b\",\"key\":\"user\",\"number\":301,\"deny\":true,"
		"\"overrides\":[{\"subject\":\"alice\",\"in_flight\":3}],\"mode\":\"enforce\",\"keys\":0}",
		"{\"name\":\"a.b\",\"key\":\"namespace,user\",\"number\":1,\"rules\":[{\"verbs\":[\"list\"]},{\"paths\":[\"/x\"]}],"
		"\"overrides\":[{\"subject\":\"ns1/alice\",\"in_flight\":3}],\"mode\":\"enforce\",\"keys\":0}",
		"{\"name\":\"c\",\"key\":\"source\",\"number\":1,\"qps\":\"20\",\"burst\":40,\"connections\":true,\"over\":\"reset\","
		"\"rules\":[{\"namespaces\":[\"a\"],\"sources\":[\"10.0.0.0/8\"]}],"
		"\"overrides\":[{\"subject\":\"10.0.0.1\",\"qps\":\"5\",\"burst\":2}],\"mode\":\"enforce\",\"keys\":0}",
		"{\"name\":\"o\",\"key\":\"source\",\"number\":1,\"open\":100,\"connections\":true,\"over\":\"drop\","
		"\"overrides\":[{\"subject\":\"10.0.0.1\",\"open\":2}],\"mode\":\"enforce\",\"keys\":0}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		CLEANUP_LIMIT struct limit limit = { 0 };
		CLEANUP_JSON json_t *json = NULL;
		CLEANUP_FREE char *text = NULL;
		struct error err = { 0 };

		if (read_limit(texts[i], &limit, &err))
			fail_msg("%s: %s", texts[i], err.text);
		json = limit_to_json(&limit);
		text = json_dumps(json, JSON_COMPACT);
		assert_string_equal(text, texts[i]);
	}
}

/* A number is as good as a text, as long as it says the same. */
static void rates(void **state)
{
	static const struct {
		const char *qps;
		__u64 per_ns;
		bool wrong;
	} cases[] = {
		{ "5", 5 * WEIR_QPS, false },
		{ "0.5", WEIR_QPS / 2, false },
		{ "0.1", WEIR_QPS / 10, false },
		{ "\"0.1\"", WEIR_QPS / 10, false },
		{ "1e9", WEIR_QPS * WEIR_QPS, false },
		{ "0.0000000001", 0, true },
		{ "-1", 0, true },
		{ "1e10", 0, true },
		{ "\"1e3\"", 0, true },
		{ "null", 0, true },
		{ "true", 0, true },
		{ "1e300", 0, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_LIMIT struct limit limit = { 0 };
		struct error err = { 0 };
		char text[128];
		int ret;

		snprintf(text, sizeof(text), "{\"name\":\"user\",\"qps\":%s,\"burst\":1}", cases[i].qps);
		ret = read_limit(text, &limit, &err);
		if (ret != (cases[i].wrong ? -EINVAL : 0))
			fail_msg("%s: %s", text, err.text);
		assert_true(limit.amount.per_ns == cases[i].per_ns);
	}
}

/* A limit's text, and a word of the error that it must give. */
static void wrong(void **state)
{
#define OWN(members) "{\"name\":\"x\"," members "}"
	static const char *const cases[][2] = {
		{ "[]", "object" },
		{ "{\"qps\":1}", "name" },
		{ "{\"name\":\"X\"}", "\"X\"" },
		{ OWN("\"key\":\"user\",\"colour\":1"), "\"colour\"" },
		{ OWN("\"qps\":1,\"burst\":1"), "key is missing" },
		{ OWN("\"key\":[\"user\"],\"in_flight\":1"), "key" },
		{ OWN("\"key\":\"users\",\"in_flight\":1"), "\"users\"" },
		{ OWN("\"key\":\"user\",\"in_flight\":1,\"qps\":1,\"burst\":1"), "in_flight" },
		{ OWN("\"key\":\"user\",\"qps\":1"), "burst is missing" },
		{ OWN("\"key\":\"user\",\"burst\":1"), "qps is missing" },
		{ OWN("\"key\":\"user\",\"in_flight\":-1"), "in_flight" },
		{ OWN("\"key\":\"user\",\"deny\":1"), "deny" },
		{ OWN("\"key\":\"user\",\"deny\":true,\"in_flight\":1"), "deny" },
		{ OWN("\"key\":\"user\",\"deny\":true,\"qps\":1,\"burst\":1"), "deny" },
		{ OWN("\"key\":\"user\",\"in_flight\":1.5"), "in_flight" },
		{ OWN("\"key\":\"user\",\"qps\":1,\"burst\":1000000001"), "burst" },
		{ OWN("\"key\":\"user\",\"in_flight\":1,\"mode\":\"off\""), "mode" },
		{ OWN("\"key\":\"user\",\"in_flight\":1,\"rules\":[{\"verb\":[\"get\"]}]"), "\"verb\"" },
		{ OWN("\"key\":\"user\",\"in_flight\":1,\"rules\":{}"), "rules" },
		{ OWN("\"key\":\"group\",\"in_flight\":1"), "rules that name groups" },
		{ OWN("\"key\":\"user\",\"overrides\":[{\"subject\":\"a\",\"in_flight\":1},{\"subject\":\"a\",\"in_flight\":2}]"),
		  "twice" },
		{ OWN("\"key\":\"source\",\"overrides\":[{\"subject\":\"2001:db8::1\",\"in_flight\":1},"
		      "{\"subject\":\"2001:db8::2\",\"in_flight\":2}]"),
		  "twice" },
		{ OWN("\"key\":\"user\",\"in_flight\":1,\"overrides\":[{\"subject\":\"a\",\"qps\":1,\"burst\":1}]"),
		  "in_flight" },
		{ OWN("\"key\":\"user\",\"qps\":1,\"burst\":1,\"overrides\":[{\"subject\":\"a\",\"in_flight\":1}]"),
		  "qps" },
		{ OWN("\"key\":\"user\",\"overrides\":[{\"subject\":\"a\",\"in_flight\":1},"
		      "{\"subject\":\"b\",\"qps\":1,\"burst\":1}]"),
		  "the limit is of" },
		{ OWN("\"key\":\"user\",\"overrides\":[{\"subject\":\"a\"}]"), "missing" },
		{ OWN("\"key\":\"user\",\"overrides\":[{\"in_flight\":1}]"), "subject" },
		{ OWN("\"key\":\"user\",\"overrides\":[{\"subject\":\"a\",\"in_flight\":1,\"keys\":1}]"), "\"keys\"" },
		{ OWN("\"key\":\"total\",\"overrides\":[{\"subject\":\"a\",\"in_flight\":1}]"), "total" },
		{ "{\"name\":\"user\",\"key\":\"user\",\"qps\":1,\"burst\":1}", "key" },
		{ "{\"name\":\"user\",\"in_flight\":1}", "another name" },
		{ "{\"name\":\"user\",\"connections\":true,\"qps\":1,\"burst\":1}", "another name" },
		{ OWN("\"key\":\"source\",\"open\":-1"), "open" },
		{ OWN("\"key\":\"source\",\"open\":1,\"in_flight\":1"), "open" },
		{ OWN("\"key\":\"source\",\"open\":1,\"qps\":1,\"burst\":1"), "open" },
		{ OWN("\"key\":\"source\",\"connections\":1,\"qps\":1,\"burst\":1"),
		  "connections: must be true or false" },
		{ OWN("\"key\":\"source\",\"connections\":null,\"qps\":1,\"burst\":1"),
		  "connections: must be true or false" },
		{ OWN("\"key\":\"source\",\"connections\":true,\"in_flight\":1"), "in_flight" },
		{ OWN("\"key\":\"source\",\"qps\":1,\"burst\":1,\"over\":\"reset\""), "over" },
		{ OWN("\"key\":\"source\",\"open\":1,\"over\":\"queue\""), "over" },
		{ OWN("\"key\":\"object\",\"open\":1"), "no object" },
		{ OWN("\"key\":\"source\",\"open\":1,\"rules\":[{\"verbs\":[\"get\"]}]"), "sources alone" },
		{ OWN("\"key\":\"source\",\"open\":1,\"overrides\":[{\"subject\":\"10.0.0.1\",\"qps\":1,\"burst\":1}]"),
		  "it has open" },
		{ "{\"name\":\"user\",\"qps\":1,\"burst\":1,\"rules\":[]}", "another name" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP_LIMIT struct limit limit = { 0 };
		struct error err = { 0 };

		if (read_limit(cases[i][0], &limit, &err) != -EINVAL)
			fail_msg("%s is taken", cases[i][0]);
		assert_string_equal(limit.name, "");
		if (!strstr(err.text, cases[i][1]))
			fail_msg("%s: %s", cases[i][0], err.text);
	}
}

/* Narrow keys before broad ones, then by name. */
static void order(void **state)
{
	static const struct limit sorted[] = {
		{ .name = "z", .key = WEIR_KEY_USER | WEIR_KEY_SOURCE | WEIR_KEY_NAMESPACE },
		{ .name = "z", .key = WEIR_KEY_OBJECT | WEIR_KEY_GROUP },
		{ .name = "z", .key = WEIR_KEY_USER | WEIR_KEY_NAMESPACE },
		{ .name = "z", .key = WEIR_KEY_OBJECT },
		{ .name = "z", .key = WEIR_KEY_USER },
		{ .name = "a", .key = WEIR_KEY_SOURCE },
		{ .name = "b", .key = WEIR_KEY_SOURCE },
		{ .name = "z", .key = WEIR_KEY_NAMESPACE },
		{ .name = "z", .key = WEIR_KEY_GROUP },
		{ .name = "a", .key = 0 },
		{ .name = "b", .key = 0 },
	};
	int n = sizeof(sorted) / sizeof(*sorted);

	(void)state;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			assert_int_equal((limit_compare(&sorted[i], &sorted[j]) > 0) -
						 (limit_compare(&sorted[i], &sorted[j]) < 0),
					 (i > j) - (i < j));
}

static void reasons(void **state)
{
	(void)state;
	assert_int_equal(limit_reason(WEIR_LIMIT_RATE, 0), WEIR_SHED_TOTAL);
	assert_int_equal(limit_reason(WEIR_LIMIT_RATE, WEIR_KEY_GROUP), WEIR_SHED_GROUP);
	assert_int_equal(limit_reason(WEIR_LIMIT_RATE, WEIR_KEY_GROUP | WEIR_KEY_USER), WEIR_SHED_COMBINED);
	assert_int_equal(limit_reason(WEIR_LIMIT_IN_FLIGHT, 0), WEIR_SHED_IN_FLIGHT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip), cmocka_unit_test(rates),	 cmocka_unit_test(wrong),
		cmocka_unit_test(order),      cmocka_unit_test(reasons),
	};

	return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
