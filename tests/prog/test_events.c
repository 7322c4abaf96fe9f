/* SPDX-License-Identifier: GPL-2.0 */
/* The limit source-and-object: what an Event is told apart by, and who pays where that is not known. */
#include <stdio.h>
#include <string.h>

#include "attached.h"

#define CORE "/api/v1/namespaces/shop/events"
#define EVENTS "/apis/events.k8s.io/v1/namespaces/shop/events"
#define EVENT_OF(name)                                                                  \
	"{\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"shop\",\"name\":\"" name \
	"\"},\"source\":{\"component\":"                                                \
	"\"kubelet\"},\"message\":\"m\"}"

static char text[3000];

static void append(const char *method, const char *target, const char *fields, const char *body)
{
	size_t length = strlen(text);

	assert_true(length + strlen(body) + 300 < sizeof(text));
	sprintf(text + length, "%s %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %zu\r\n\r\n%s", method, target, fields,
		strlen(body), body);
}

/* What is in `text`, as the first packet of a connection. */
static bool passes(void)
{
	struct spec spec = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = text };
	struct seen seen;

	connect_ends(false);
	assert_int_equal(run(ingress, &spec), PASS);
	packet_see(&packet, &seen);
	text[0] = 0;
	if (seen.from_server)
		assert_memory_equal(seen.text, "HTTP/1.1 429 ", 13);
	return !seen.from_server;
}

static bool request_passes(const char *method, const char *target, const char *body)
{
	append(method, target, "", body);
	return passes();
}

static void check_keys(__u64 keyed, __u64 patch, __u64 cut, __u64 unreadable)
{
	assert_int_equal(counter(WEIR_EVENT_KEYED), keyed);
	assert_int_equal(counter(WEIR_EVENT_PATCH), patch);
	assert_int_equal(counter(WEIR_EVENT_CUT), cut);
	assert_int_equal(counter(WEIR_EVENT_UNREADABLE), unreadable);
}

static void test_each_object_has_its_own(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_SOURCE_AND_OBJECT, "0", 2);
	assert_true(request_passes("POST", CORE, EVENT_OF("web-1")));
	assert_true(request_passes("PUT", CORE "/e1", EVENT_OF("web-1")));
	assert_false(request_passes("POST", CORE, EVENT_OF("web-1")));
	assert_false(request_passes("PUT", CORE "/e1", EVENT_OF("web-1")));
	assert_true(request_passes("POST", CORE, EVENT_OF("web-2")));
	assert_true(request_passes("POST", CORE, EVENT_OF("web-\\u0032")));
	assert_false(request_passes("POST", CORE, EVENT_OF("web-2")));
	assert_int_equal(counter(WEIR_SHED_SOURCE_AND_OBJECT), 3);
	assert_int_equal(counter(WEIR_PASSED), 4);
	check_keys(7, 0, 0, 0);
}

/* The same object by another schema, in the members that are the schema's own. */
static void test_both_groups(void **state)
{
	static const char body[] =
		"{\"regarding\":{\"name\":\"web-1\",\"kind\":\"Pod\",\"namespace\":\"shop\"},"
		"\"involvedObject\":{\"name\":\"x\"},\"deprecatedSource\":{\"component\":\"kubelet\"}}";

	(void)state;
	limit(WEIR_BUILTIN_SOURCE_AND_OBJECT, "0", 1);
	assert_true(request_passes("POST", EVENTS, body));
	assert_false(request_passes("POST", CORE, EVENT_OF("web-1")));
	assert_false(request_passes("PUT", "/apis/events.k8s.io/v1beta1/namespaces/shop/events/e1", body));
	assert_true(request_passes("POST", EVENTS, EVENT_OF("web-1")));
	assert_false(request_passes("POST", CORE, "{}"));
	check_keys(5, 0, 0, 0);
}

/* One bucket, that of the user, for whatever cannot be told apart. */
static void test_fallback_to_the_user(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_SOURCE_AND_OBJECT, "0", 6);
	assert_true(request_passes("PATCH", CORE "/e1", "{\"count\":2}"));
	assert_true(request_passes("POST", CORE, "k8s\x01protobuf"));
	assert_true(request_passes("POST", CORE, "{\"source\":{\"host\":\"\xff\"}}"));
	append("POST", CORE, "", EVENT_OF("web-1"));
	text[strlen(text) - 1] = 0;
	assert_true(passes());
	strcpy(text, "POST " CORE " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n");
	assert_true(passes());
	strcpy(text, "POST " CORE " HTTP/1.1\r\nContent-Length: 4097\r\n\r\n{}");
	assert_true(passes());
	assert_false(request_passes("POST", CORE, ""));
	assert_true(request_passes("POST", CORE, EVENT_OF("web-1")));
	check_keys(1, 1, 4, 2);
}

static void test_what_is_no_event(void **state)
{
	static const char *const requests[][2] = {
		{ "GET", CORE },
		{ "DELETE", CORE "/e1" },
		{ "DELETE", CORE },
		{ "POST", CORE "?dryRun=All" },
		{ "PUT", EVENTS "/e1?dryRun=All" },
		{ "PATCH", CORE "/e1?dryRun=All" },
		{ "POST", "/api/v1/namespaces/shop/pods" },
		{ "PUT", CORE "/e1/status" },
		{ "POST", "/apis/events.example.com/v1/namespaces/shop/events" },
		{ "POST", "/apis//v1/namespaces/shop/events" },
		{ "POST", "/events" },
	};

	(void)state;
	limit(WEIR_BUILTIN_SOURCE_AND_OBJECT, "0", 0);
	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		assert_true(request_passes(requests[i][0], requests[i][1], EVENT_OF("web-1")));
	check_keys(0, 0, 0, 0);
	assert_false(request_passes("POST", CORE, EVENT_OF("web-1")));
}

static void test_without_the_limit(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_USER, "0", 1);
	assert_true(request_passes("POST", CORE, EVENT_OF("web-1")));
	assert_false(request_passes("POST", CORE, EVENT_OF("web-1")));
	check_keys(0, 0, 0, 0);
}

/* Who refuses, and that the others get back what they gave. */
static void test_with_other_limits(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_SOURCE_AND_OBJECT, "0", 1);
	limit(WEIR_BUILTIN_USER, "0", 2);
	assert_true(request_passes("POST", CORE, EVENT_OF("web-1")));
	for (int i = 0; i < 5; i++)
		assert_false(request_passes("POST", CORE, EVENT_OF("web-1")));
	assert_true(request_passes("POST", CORE, EVENT_OF("web-2")));
	assert_int_equal(counter(WEIR_SHED_USER), 0);
	assert_false(request_passes("POST", CORE, EVENT_OF("web-3")));
	assert_int_equal(counter(WEIR_SHED_USER), 1);
	assert_int_equal(counter(WEIR_SHED_SOURCE_AND_OBJECT), 5);
	done(datapath_limit_delete(dp, 0, WEIR_BUILTIN_USER, &error));
	assert_true(request_passes("POST", CORE, EVENT_OF("web-3")));
}

/* Each head's own body is read; an Event that waits is not counted. */
static void test_several_in_a_packet(void **state)
{
	(void)state;
	limit(WEIR_BUILTIN_SOURCE_AND_OBJECT, "0", 1);
	append("POST", CORE, "", EVENT_OF("web-1"));
	append("GET", CORE, "", "");
	append("POST", CORE, "", EVENT_OF("web-2"));
	append("POST", CORE, "", EVENT_OF("web-2"));
	assert_true(passes());
	assert_int_equal(counter(WEIR_PASSED), 3);
	assert_int_equal(counter(WEIR_CUT_SHORT), 1);
	check_keys(2, 0, 0, 0);
	assert_false(request_passes("POST", CORE, EVENT_OF("web-1")));
	assert_false(request_passes("POST", CORE, EVENT_OF("web-2")));
	check_keys(4, 0, 0, 0);
}

static void test_names(void **state)
{
	struct datapath_subject_use top[4];
	char name[200];

	(void)state;
	limit(WEIR_BUILTIN_SOURCE_AND_OBJECT, "0", 0);
	assert_false(request_passes("POST", CORE, EVENT_OF("web-1")));
	assert_int_equal(datapath_top(dp, 0, top, 4, &error), 1);
	assert_int_equal(top[0].slot, WEIR_BUILTIN_SOURCE_AND_OBJECT);
	assert_int_equal(top[0].shed, 1);
	assert_int_equal(datapath_name(dp, top[0].subject, name, sizeof(name)), 0);
	assert_string_equal(name, "Pod/shop/web-1");
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(each_object_has_its_own), TEST(both_groups),
		TEST(fallback_to_the_user),    TEST(what_is_no_event),
		TEST(without_the_limit),       TEST(with_other_limits),
		TEST(several_in_a_packet),     TEST(names),
	};

	return cmocka_run_group_tests_name("events", tests, attached_open, attached_close);
}
