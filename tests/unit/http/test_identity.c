/* SPDX-License-Identifier: GPL-2.0 */
/* Whose requests are: the headers that say so, and the order of what is believed. */
#include "weir/http/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "request_trace.h"

#define GROUPS_MAX 8
#define A "Authorization: "

static const struct weir_known_groups known = {
	.authenticated = { { 1 << 0 } },
	.unauthenticated = { { 1 << 1 } },
	.service_accounts = { { 1 << 2 } },
	.exempt = { { 1 << 3, 1ULL << 63 } },
};

static struct weir_reading reading; /* every header there can be */

static int set_reading(void **state)
{
	(void)state;
	reading = request_reading;
	assert_int_equal(weir_reading_name(&reading, WEIR_HEADER_TOKEN, "authorization", 13), 0);
	assert_int_equal(weir_reading_name(&reading, WEIR_HEADER_NAMESPACE, "x-tenant", 8), 0);
	return 0;
}

/* A head, and the subjects of the groups it named. */
struct head {
	struct weir_request request;
	enum weir_frame_event event;
	__u64 groups[GROUPS_MAX];
	size_t n_groups;
};

/* moved: the machine is copied to another place between any two bytes. */
static void feed(struct head *h, const char *text, bool moved)
{
	struct weir_request places[2], *r = &places[0];

	memset(h, 0, sizeof(*h));
	weir_request_start(r);
	for (; *text && h->event != WEIR_FRAME_LOST && h->event != WEIR_FRAME_HEAD; text++) {
		if (moved) {
			struct weir_request *other = &places[r == &places[0]];

			*other = *r;
			memset(r, 0xa5, sizeof(*r));
			r = other;
		}
		h->event = weir_request_byte(r, &reading, *text);
		if (h->event != WEIR_FRAME_GROUP)
			continue;
		assert_true(h->n_groups < GROUPS_MAX);
		h->groups[h->n_groups++] = r->group_subject;
	}
	h->request = *r;
}

/* The head with these lines of header. */
static struct head read_head(const char *lines)
{
	char text[1024];
	struct head whole, moved;

	snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n%s\r\n\r\n", lines);
	feed(&whole, text, false);
	feed(&moved, text, true);
	assert_memory_equal(&whole, &moved, sizeof(whole));
	return whole;
}

static __u64 subject(__u8 kind, const char *name)
{
	return name ? request_subject(kind, name, strlen(name)) : 0;
}

static void test_groups(void **state)
{
	static const struct {
		const char *lines;
		const char *groups[4];
	} cases[] = {
		{ "X-Remote-Group: dev", { "dev" } },
		{ "x-REMOTE-group:dev", { "dev" } },
		{ "X-Remote-Group: \t dev \t ", { "dev" } },
		{ "X-Remote-Group: a b", { "a b" } },
		{ "X-Remote-Group: a,b", { "a,b" } },
		{ "X-Remote-Group: a\r\nHost: x\r\nX-Remote-Group: b\r\nX-Remote-Group: a", { "a", "b", "a" } },
		{ "X-Remote-Group:\r\nX-Remote-Group: \t\r\nX-Remote-Group: b", { "b" } },
		{ "X-Remote-Groups: a\r\nX-Remote-Grou: b\r\nX_Remote_Group: c", { NULL } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct head h = read_head(cases[i].lines);
		size_t n = 0;

		assert_int_equal(h.event, WEIR_FRAME_HEAD);
		for (; cases[i].groups[n]; n++)
			assert_int_equal(h.groups[n], subject(WEIR_NAME_GROUP, cases[i].groups[n]));
		assert_int_equal(h.n_groups, n);
		assert_int_equal(weir_request_repeats(&h.request, WEIR_HEADER_GROUP), false);
	}
}

/* A service account's namespace is the group that its name begins with; NULL: it is none. */
static void test_service_accounts(void **state)
{
	static const struct {
		const char *user, *prefix;
	} cases[] = {
		{ "system:serviceaccount:dev:builder", "system:serviceaccount:dev" },
		{ "system:serviceaccount:a:b  ", "system:serviceaccount:a" },
		{ "system:serviceaccount:dev", NULL },
		{ "system:serviceaccount:dev:", NULL },
		{ "system:serviceaccount::builder", NULL },
		{ "system:serviceaccount:", NULL },
		{ "system:serviceaccount:dev:builder:more", NULL },
		{ "system:serviceaccount:dev:builder:", NULL },
		{ "system:serviceaccount:dev:a builder", NULL },
		{ "system:service account:dev:builder", NULL },
		{ "system: serviceaccount:dev:builder", NULL },
		{ "system:serviceaccounts:dev:builder", NULL },
		{ "System:serviceaccount:dev:builder", NULL },
		{ "x:system:serviceaccount:dev:builder", NULL },
		{ "system:serviceaccountt:dev:builder", NULL },
		{ ":::", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char line[128];
		struct head h;

		snprintf(line, sizeof(line), "X-Remote-User: %s", cases[i].user);
		h = read_head(line);
		assert_int_equal(h.n_groups, cases[i].prefix != NULL);
		assert_int_equal(h.groups[0], subject(WEIR_NAME_USER, cases[i].prefix));
		assert_int_equal(h.request.account == WEIR_ACCOUNT_NAME, cases[i].prefix != NULL);
	}
}

static void test_tokens(void **state)
{
	static const struct {
		const char *lines, *token;
	} cases[] = {
		{ A "Bearer secret", "secret" },
		{ A "bEARER secret", "secret" },
		{ "AUTHORIZATION:BEARER secret  ", "secret" },
		{ A "  \t Bearer secret\t", "secret" },
		{ A "Bearer secret more words", "secret" },
		{ A "Bearer a.b-c_d~e+f/g=", "a.b-c_d~e+f/g=" },
		{ A "Bearer", NULL },
		{ A "Bearer ", NULL },
		{ A "Bearer  secret", NULL },
		{ A "Bearer\tsecret", NULL },
		{ A "Bearer \tsecret", NULL },
		{ A "Bearers secret", NULL },
		{ A "Bear secret", NULL },
		{ A "Bearer:secret", NULL },
		{ A "Basic Bearer secret", NULL },
		{ A "Negotiate-with-a-very-long-scheme secret", NULL },
		{ A "secret", NULL },
		{ A, NULL },
		{ "Proxy-Authorization: Bearer secret", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct head h = read_head(cases[i].lines);

		assert_int_equal(h.event, WEIR_FRAME_HEAD);
		assert_int_equal(weir_request_token(&h.request), subject(WEIR_NAME_TOKEN, cases[i].token));
		/* Nothing of its text stays with the connection. */
		for (size_t word = 0; word < ARRAY_SIZE(h.request.framing.token); word++)
			assert_int_equal(h.request.framing.token[word], 0);
	}
}

static void test_repeated(void **state)
{
	struct head h;

	(void)state;
	h = read_head(A "Bearer one\r\n" A "Bearer two");
	assert_int_equal(weir_request_token(&h.request), 0);
	h = read_head(A "Basic one\r\n" A "Bearer two");
	assert_int_equal(weir_request_token(&h.request), 0);
	h = read_head("X-Tenant: a\r\nX-Tenant: a");
	assert_int_equal(h.event, WEIR_FRAME_LOST);
	assert_int_equal(h.request.lost, WEIR_REPEATED_NAMESPACE);
	h = read_head("Impersonate-User: a\r\nImpersonate-User: b");
	assert_int_equal(h.event, WEIR_FRAME_HEAD);
	assert_true(weir_request_says(&h.request, WEIR_HEADER_IMPERSONATE));
}

static void test_namespace_header(void **state)
{
	struct head h = read_head("Host: x\r\nX-Tenant:  shop 1 \r\nX-Remote-User: a");

	(void)state;
	assert_int_equal(h.request.namespace_subject, subject(WEIR_NAME_NAMESPACE, "shop 1"));
	assert_int_equal(h.request.namespace_offset, 16 + 9 + 11);
	assert_int_equal(h.request.namespace_length, 6);
	assert_int_equal(h.request.user_length, 1);
	h = read_head("X-Tenant: \t");
	assert_int_equal(h.request.namespace_subject, 0);
}

static void test_values_are_text(void **state)
{
	static const char *const starts[] = { A, A "Bearer ", A "Bearer x", "X-Tenant: ", "X-Remote-Group: a" };
	static const struct {
		const char *byte;
		enum weir_reason reason;
	} cases[] = {
		{ "\x01", WEIR_BAD_HEADER }, { "\x7f", WEIR_BAD_HEADER },      { "\n", WEIR_BARE_LF },
		{ "\rx", WEIR_BARE_CR },     { "\r\n x", WEIR_FOLDED_HEADER },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(cases); j++) {
			char lines[64];
			struct head h;

			snprintf(lines, sizeof(lines), "%s%s", starts[i], cases[j].byte);
			h = read_head(lines);
			assert_int_equal(h.event, WEIR_FRAME_LOST);
			assert_int_equal(h.request.lost, cases[j].reason);
		}
	}
}

/* A header is read under the name that the server gave it, of up to 24 bytes. */
static void test_other_names(void **state)
{
	static const char long_name[] = "abcdefghijklmnopqrstuvwx"; /* 24 */
	struct head h;

	(void)state;
	assert_int_equal(weir_reading_name(&reading, WEIR_HEADER_USER, long_name, 24), 0);
	assert_int_equal(weir_reading_name(&reading, WEIR_HEADER_USER, "abcdefghijklmnopqrstuvwxy", 25), -1);
	assert_int_equal(weir_reading_name(&reading, WEIR_HEADER_TOKEN, "", 0), 0);
	h = read_head("X-Remote-User: a\r\nABCdefghijklmnopqrstuvWX: b\r\n" A "Bearer c");
	assert_int_equal(h.request.user_subject, subject(WEIR_NAME_USER, "b"));
	assert_int_equal(h.request.token_subject, 0);
	h = read_head("abcdefghijklmnopqrstuvwxy: b\r\nxabcdefghijklmnopqrstuvwx: c");
	assert_int_equal(h.request.user_subject, 0);
}

static void test_trailers_name_nobody(void **state)
{
	static const char text[] = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
				   "0\r\nX-Remote-User: a\r\nX-Remote-Group: b\r\n" A "Bearer c\r\n\r\n";
	struct weir_request r;
	enum weir_frame_event event = WEIR_FRAME_MORE;

	(void)state;
	weir_request_start(&r);
	for (size_t i = 0; text[i]; i++) {
		event = weir_request_byte(&r, &reading, text[i]);
		assert_int_not_equal(event, WEIR_FRAME_GROUP);
	}
	assert_int_equal(event, WEIR_FRAME_MESSAGE);
	assert_int_equal(r.headers_seen, 0);
}

#define USER "X-Remote-User: alice\r\n"
#define GROUP "X-Remote-Group: g"
#define TOKEN "\r\n" A "Bearer t"
#define NOTE(name) (1U << (WEIR_##name - WEIR_UNTRUSTED_IDENTITY))

/* What each way says is believed in its turn, and nothing that is ambiguous. */
static void test_order(void **state)
{
	static const struct weir_principal token = { .user = 100, .groups = { { 1 << 4 } } };
	static const struct weir_principal address = { .user = 200, .namespace = 201, .groups = { { 1 << 5 } } };
	static const struct {
		const char *lines;
		bool trusted, has_token, has_address;
		enum weir_identified_by by;
		__u32 notes;
	} cases[] = {
		{ USER GROUP TOKEN, true, true, true, WEIR_IDENTIFIED_BY_REQUEST_HEADER, 0 },
		{ USER GROUP, true, false, false, WEIR_IDENTIFIED_BY_REQUEST_HEADER, 0 },
		{ USER GROUP TOKEN, false, true, true, WEIR_IDENTIFIED_BY_TOKEN, NOTE(UNTRUSTED_IDENTITY) },
		{ GROUP TOKEN, true, true, true, WEIR_IDENTIFIED_BY_TOKEN, 0 },
		{ "X-Remote-User:" TOKEN, true, true, true, WEIR_IDENTIFIED_BY_TOKEN, 0 },
		{ USER USER GROUP TOKEN, true, true, true, WEIR_IDENTIFIED_BY_TOKEN, NOTE(REPEATED_USER) },
		{ USER USER GROUP TOKEN, false, true, true, WEIR_IDENTIFIED_BY_TOKEN, NOTE(UNTRUSTED_IDENTITY) },
		{ USER USER GROUP, true, false, true, WEIR_IDENTIFIED_BY_ADDRESS_TABLE, NOTE(REPEATED_USER) },
		{ USER USER GROUP, true, false, false, WEIR_IDENTIFIED_BY_NOBODY, NOTE(REPEATED_USER) },
		{ "A: b" TOKEN, false, true, true, WEIR_IDENTIFIED_BY_TOKEN, 0 },
		{ "A: b" TOKEN TOKEN, false, false, true, WEIR_IDENTIFIED_BY_ADDRESS_TABLE, NOTE(REPEATED_TOKEN) },
		{ USER GROUP TOKEN TOKEN, true, false, true, WEIR_IDENTIFIED_BY_REQUEST_HEADER, 0 },
		{ "A: b", false, false, true, WEIR_IDENTIFIED_BY_ADDRESS_TABLE, 0 },
		{ "A: b", true, false, false, WEIR_IDENTIFIED_BY_NOBODY, 0 },
		{ USER "Impersonate-User: bob", true, false, false, WEIR_IDENTIFIED_BY_REQUEST_HEADER,
		  NOTE(IMPERSONATED) },
		{ "Impersonate-User: bob" TOKEN, false, true, false, WEIR_IDENTIFIED_BY_TOKEN, NOTE(IMPERSONATED) },
	};
	const __u64 users[] = { subject(WEIR_NAME_USER, "alice"), 100, 200, 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct head h = read_head(cases[i].lines);
		struct weir_identity id;
		static const __u64 bits[] = { 1 << 0 | 1 << 6, 1 << 4, 1 << 5, 1 << 1 };

		weir_groups_add(&h.request.groups, 6);
		weir_identify(&id, &h.request, h.request.namespace_subject, &known, cases[i].trusted,
			      cases[i].has_token ? &token : NULL, cases[i].has_address ? &address : NULL);
		assert_int_equal(id.by, cases[i].by);
		assert_int_equal(id.notes, cases[i].notes);
		assert_int_equal(id.user, users[id.by]);
		assert_int_equal(id.namespace, cases[i].has_address ? 201 : 0);
		assert_int_equal(id.groups.bits[0], bits[id.by]);
		assert_int_equal(id.groups.bits[1], 0);
		assert_false(weir_identity_exempt(&id, &known));
	}
}

static void test_own_namespace_before_the_address(void **state)
{
	static const struct weir_principal address = { .user = 200, .namespace = 201 };
	struct head h = read_head("X-Tenant: shop");
	struct weir_identity id;

	(void)state;
	weir_identify(&id, &h.request, h.request.namespace_subject, &known, false, NULL, &address);
	assert_int_equal(id.namespace, subject(WEIR_NAME_NAMESPACE, "shop"));
}

static void test_implicit_and_exempt_groups(void **state)
{
	struct head h = read_head("X-Remote-User: system:serviceaccount:dev:builder");
	struct weir_identity id;

	(void)state;
	weir_identify(&id, &h.request, h.request.namespace_subject, &known, true, NULL, NULL);
	assert_int_equal(id.groups.bits[0], known.authenticated.bits[0] | known.service_accounts.bits[0]);
	assert_false(weir_identity_exempt(&id, &known));
	for (__u32 bit = 0; bit < WEIR_GROUPS_MAX + 8; bit++) {
		struct weir_groups one = { { 0 } };

		weir_groups_add(&one, bit);
		assert_int_equal(weir_groups_meet(&one, &known.exempt), bit == 3 || bit == 127);
	}
	weir_groups_add(&h.request.groups, 127);
	weir_identify(&id, &h.request, h.request.namespace_subject, &known, true, NULL, NULL);
	assert_true(weir_identity_exempt(&id, &known));
	weir_identify(&id, &h.request, h.request.namespace_subject, &known, false, NULL, NULL);
	assert_false(weir_identity_exempt(&id, &known));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_groups, set_reading),
		cmocka_unit_test_setup(test_service_accounts, set_reading),
		cmocka_unit_test_setup(test_tokens, set_reading),
		cmocka_unit_test_setup(test_repeated, set_reading),
		cmocka_unit_test_setup(test_namespace_header, set_reading),
		cmocka_unit_test_setup(test_values_are_text, set_reading),
		cmocka_unit_test_setup(test_other_names, set_reading),
		cmocka_unit_test_setup(test_trailers_name_nobody, set_reading),
		cmocka_unit_test_setup(test_order, set_reading),
		cmocka_unit_test_setup(test_own_namespace_before_the_address, set_reading),
		cmocka_unit_test_setup(test_implicit_and_exempt_groups, set_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
