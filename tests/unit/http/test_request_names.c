/* SPDX-License-Identifier: GPL-2.0 */
/* Whose requests are: namespaces, users, health checks. */
#include "request_trace.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct request_example paths[] = {
	{ "GET /api/v1/namespaces/prod/pods" V11, "GET ns=prod head 45", "prod" },
	{ "GET /api/v1/namespaces/prod" V11, "GET ns=prod head 40", "prod" },
	{ "GET /api/v1/namespaces/prod/" V11, "GET ns=prod head 41", "prod" },
	{ "GET /api/v1/namespaces/prod?watch=1" V11, "GET ns=prod head 48", "prod" },
	{ "GET /api/v1/namespaces/prod/?a=/b%zz" V11, "GET ns=prod head 49", "prod" },
	{ "GET ///api/v1/namespaces/prod///" V11, "GET ns=prod head 45", "prod" },
	{ "GET /api/v1/namespaces" V11, "GET head 35", NULL },
	{ "GET /api/v1/namespaces/" V11, "GET head 36", NULL },
	{ "GET /api/v1/namespaces//" V11, "GET head 37", NULL },
	{ "GET /api/v1/namespaces//pods" V11, "GET head 41", NULL },
	{ "GET /api//namespaces/prod" V11, "GET ns=prod head 38", "prod" },
	{ "GET /api/v1//namespaces/prod" V11, "GET head 41", NULL },
	{ "GET /api/namespaces/prod" V11, "GET head 37", NULL },
	{ "GET /api/v1/pods" V11, "GET head 29", NULL },
	{ "GET /api/v1/nodes/namespaces/prod" V11, "GET head 46", NULL },
	{ "GET /apis/apps/v1/namespaces/prod/deployments" V11, "GET ns=prod head 58", "prod" },
	{ "GET /apis/apps/namespaces/prod/x" V11, "GET head 45", NULL },
	{ "GET /apis/namespaces/namespaces/namespaces/namespaces" V11, "GET ns=namespaces head 66", "namespaces" },
	{ "GET /apis/v1/namespaces/prod" V11, "GET head 41", NULL },
	{ "GET /api/v1/watch/namespaces/prod/pods" V11, "GET ns=prod head 51", "prod" },
	{ "GET /api/v1/proxy/namespaces/prod/pods" V11, "GET ns=prod head 51", "prod" },
	{ "GET /apis/a/v1/watch/namespaces/prod" V11, "GET ns=prod head 49", "prod" },
	{ "GET /api/v1/watch/watch/namespaces/prod" V11, "GET head 52", NULL },
	{ "GET /api/v1/watch/proxy/namespaces/prod" V11, "GET head 52", NULL },
	{ "GET /api/watch/namespaces/prod" V11, "GET ns=prod head 43", "prod" },
	{ "GET /API/v1/namespaces/prod" V11, "GET head 40", NULL },
	{ "GET /api/v1/Namespaces/prod" V11, "GET head 40", NULL },
	{ "GET /api/v1/namespaces/Prod" V11, "GET ns=Prod head 40", "Prod" },
	{ "GET /xapi/v1/namespaces/prod" V11, "GET head 41", NULL },
	{ "GET /apiss/g/v1/namespaces/prod" V11, "GET head 44", NULL },
	{ "GET /x/api/v1/namespaces/prod" V11, "GET head 42", NULL },
	{ "GET /api/v1/namespacesx/prod" V11, "GET head 41", NULL },
	{ "GET /api/v1/./namespaces/prod" V11, "GET head 42", NULL },
	{ "GET /api/v1/namespaces/../namespaces/b" V11, "GET ns=.. head 51", ".." },
	{ "GET /api/v1/namespaces/a#b?c" V11, "GET ns=a#b head 41", "a#b" },
	{ "GET /api/v1/namespaces/a+b" V11, "GET ns=a+b head 39", "a+b" },
	{ "GET /api/v1/namespaces/pr\xc3\xb6"
	  "d" V11,
	  "GET ns=pr\xc3\xb6"
	  "d head 41",
	  "pr\xc3\xb6"
	  "d" },
	/* percent-encoding */
	{ "GET /%61pi/v1/n%61mespaces/prod" V11, "GET ns=prod head 44", "prod" },
	{ "GET /api/v1/namespaces/p%72od/x" V11, "GET ns=p%72od head 44", "prod" },
	{ "GET /api/v1/namespaces/%70%72%6f%64" V11, "GET ns=%70%72%6f%64 head 48", "prod" },
	{ "GET /api/v1/namespaces/pro%64" V11, "GET ns=pro%64 head 42", "prod" },
	{ "GET /api/v1/namespaces/prod%2Fpods" V11, "GET ns=prod head 47", "prod" },
	{ "GET /api/v1/namespaces/prod%2fpods" V11, "GET ns=prod head 47", "prod" },
	{ "GET /api%2fv1%2Fnamespaces%2Fprod" V11, "GET ns=prod head 46", "prod" },
	{ "GET /%2F%2fapi/v1/namespaces/prod%2F" V11, "GET ns=prod head 49", "prod" },
	{ "GET /api/v1/namespaces/%2Fprod" V11, "GET head 43", NULL },
	{ "GET /api/v1/namespaces/a%3Fb%20c%25%34" V11, "GET ns=a%3Fb%20c%25%34 head 51", "a?b c%4" },
	{ "GET /api%00/v1/namespaces/prod" V11, "GET head 43", NULL },
	{ "GET /%00api/v1/namespaces/prod" V11, "GET head 43", NULL },
	{ "GET /api/v1/namespaces/%0d%0A" V11, "GET ns=%0d%0A head 42", "\r\n" },
	{ "GET /a%" V11, "lost bad_request_line 7", NULL },
	{ "GET /a%4" V11, "lost bad_request_line 8", NULL },
	{ "GET /a%4g" V11, "lost bad_request_line 8", NULL },
	{ "GET /a%g4" V11, "lost bad_request_line 7", NULL },
	{ "GET /a%-1" V11, "lost bad_request_line 7", NULL },
	{ "GET /a?%4g" V11, "GET head 23", NULL },
	/* other forms of the target */
	{ "GET http://host:80/api/v1/namespaces/prod" V11, "GET ns=prod head 54", "prod" },
	{ "GET hTTp+x-y.1://[::1]/api/v1/namespaces/prod" V11, "GET ns=prod head 58", "prod" },
	{ "GET http://host?/api/v1/namespaces/prod" V11, "GET head 52", NULL },
	{ "GET http://host" V11, "GET head 28", NULL },
	{ "GET http:///api/v1/namespaces/prod" V11, "GET ns=prod head 47", "prod" },
	{ "GET http:/api/v1/namespaces/prod" V11, "lost bad_request_line 10", NULL },
	{ "GET http:" V11, "lost bad_request_line 9", NULL },
	{ "GET host" V11, "lost bad_request_line 8", NULL },
	{ "GET h_st://x" V11, "lost bad_request_line 5", NULL },
	{ "GET ?x" V11, "lost bad_request_line 4", NULL },
	{ "OPTIONS *" V11, "OPTIONS head 22", NULL },
	{ "GET *" V11, "GET head 18", NULL },
	{ "GET *x" V11, "lost bad_request_line 5", NULL },
	{ "CONNECT host:443" V11, "CONNECT head 29", NULL },
	{ "CONNECT [::1]:443" V11, "CONNECT head 30", NULL },
	{ "CONNECT /api/v1/namespaces/prod" V11, "CONNECT ns=prod head 44", "prod" },
	/* health */
	{ "GET /healthz" V11, "GET health head 25", NULL },
	{ "HEAD /livez" V11, "HEAD health head 24", NULL },
	{ "GET /readyz?verbose" V11, "GET health head 32", NULL },
	{ "GET /readyz/" V11, "GET health head 25", NULL },
	{ "GET /livez/etcd/x.y" V11, "GET health head 32", NULL },
	{ "GET /livez/.well-known" V11, "GET health head 35", NULL },
	{ "GET /livez/etcd//x.y" V11, "GET head 33", NULL },
	{ "GET http://h/healthz/ping" V11, "GET health head 38", NULL },
	{ "GET /healthzz" V11, "GET head 26", NULL },
	{ "GET /health" V11, "GET head 24", NULL },
	{ "GET /Healthz" V11, "GET head 25", NULL },
	{ "GET //healthz" V11, "GET head 26", NULL },
	{ "GET /%68ealthz" V11, "GET head 27", NULL },
	{ "GET /x/healthz" V11, "GET head 27", NULL },
	{ "GET /healthz;x" V11, "GET head 27", NULL },
	{ "GET /healthz/../api/v1/namespaces/prod" V11, "GET head 51", NULL },
	{ "GET /healthz/x/..;/api" V11, "GET head 35", NULL },
	{ "GET /healthz/x\\..\\..\\api" V11, "GET head 37", NULL },
	{ "GET /healthz/%2e%2e/api" V11, "GET head 36", NULL },
	{ "GET /healthz%2f..%2fapi" V11, "GET head 36", NULL },
};

static void test_paths(void **state)
{
	(void)state;
	request_check_examples(paths, ARRAY_SIZE(paths), WEIR_NAME_NAMESPACE);
}

static const struct request_example users[] = {
	{ G "X-Remote-User: ci" END, "GET user=ci head 37", "ci" },
	{ G "x-REMOTE-user:ci" END, "GET user=ci head 36", "ci" },
	{ G "X-Remote-User: \t ci \t\t " END, "GET user=ci head 43", "ci" },
	{ G "X-Remote-User:  a  b\tc d  " END, "GET user=a  b\tc d head 46", "a  b\tc d" },
	{ G "X-Remote-User: system:serviceaccount:a:b\r\nHost: x" END, "GET user=system:serviceaccount:a:b head 69",
	  "system:serviceaccount:a:b" },
	{ G "X-Remote-User: \xc3\xb6, \"x\"" END, "GET user=\xc3\xb6, \"x\" head 42", "\xc3\xb6, \"x\"" },
	{ G "X-Remote-User:" END, "GET head 34", NULL },
	{ G "X-Remote-User: \t" END, "GET head 36", NULL },
	{ G "X-Remote-User: a\r\nX-Remote-User: b" END, "GET repeated user=a head 54", "a" },
	{ G "X-Remote-User: a\r\nx-remote-user: a" END, "GET repeated user=a head 54", "a" },
	{ G "X-Remote-User:\r\nX-Remote-User: b" END, "GET repeated head 52", NULL },
	{ G "X-Remote-Use: a\r\nX-Remote-Users: b\r\nX_Remote_User: c\r\nXX-Remote-User: d" END, "GET head 91", NULL },
	{ G "X-Remote-User: a\x01" END, "lost bad_header 32", NULL },
	{ G "X-Remote-User: a\x7f" END, "lost bad_header 32", NULL },
	{ G "X-Remote-User: a\n" END, "lost bare_lf 32", NULL },
	{ G "X-Remote-User: a\rb" END, "lost bare_cr 33", NULL },
	{ G "X-Remote-User: a\r\n b" END, "lost folded_header 34", NULL },
	{ P "Transfer-Encoding: chunked" END "0\r\nX-Remote-User: a" END, "POST chunked head 47; end 70", NULL },
};

static void test_users(void **state)
{
	(void)state;
	request_check_examples(users, ARRAY_SIZE(users), WEIR_NAME_USER);
}

static void test_long_names(void **state)
{
	static const size_t lengths[] = { 1, 7, 8, 120, 254, 255, 256, 257, 339, 400 };
	char name[400], expected[512];

	(void)state;
	memset(name, 'n', sizeof(name));
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		int n = lengths[i];
		struct weir_request last = { .lost = 0 };

		snprintf(expected, sizeof(expected), "GET ns=%.*s head %d", n, name, 41 + n);
		request_check_long("GET /api/v1/namespaces/", 'n', n, "/pods" V11, expected, &last);
		assert_int_equal(request_namespace(&last), request_subject(WEIR_NAME_NAMESPACE, name, n));
		snprintf(expected, sizeof(expected), "GET user=%.*s head %d", n, name, 35 + n);
		request_check_long(G "X-Remote-User: ", 'n', n, END, expected, &last);
		assert_int_equal(last.user_subject, request_subject(WEIR_NAME_USER, name, n));
	}
}

/* Names that only just fit, too long for a trace. */
static void test_longest_names(void **state)
{
	static const char before[] = "GET /api/v1/namespaces/", after[] = V11;
	size_t length = WEIR_HEAD_MAX - strlen(before) - strlen(after);
	enum weir_frame_event event = WEIR_FRAME_MORE;
	char *name = malloc(length);
	struct weir_request r;

	(void)state;
	assert_non_null(name);
	memset(name, 'n', length);
	weir_request_start(&r);
	for (size_t i = 0; i < strlen(before); i++)
		weir_request_byte(&r, &request_reading, before[i]);
	for (size_t i = 0; i < length; i++)
		weir_request_byte(&r, &request_reading, name[i]);
	for (size_t i = 0; i < strlen(after); i++)
		event = weir_request_byte(&r, &request_reading, after[i]);
	assert_int_equal(event, WEIR_FRAME_HEAD);
	assert_int_equal(r.path.segments[3].offset, strlen(before));
	assert_int_equal(r.path.segments[3].length, length);
	assert_int_equal(request_namespace(&r), request_subject(WEIR_NAME_NAMESPACE, name, length));
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_users),
		cmocka_unit_test(test_long_names),
		cmocka_unit_test(test_longest_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
