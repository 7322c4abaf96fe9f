/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Streams of requests and what the machine makes of them, written as one line of text each: `head` and `end` with the
 * offset behind their last byte, `lost` with the reason and the offset of the byte that did it, `more` when the stream
 * stops inside a message.
 */
#include "weir/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static const __u64 seed[2] = { 0x1122334455667788ULL, 0x99aabbccddeeff00ULL };

static const char *const labels[] = {
#define X(name, label, group) label,
	WEIR_REASONS(X)
#undef X
};

static const char *const methods[] = { "GET",	 "HEAD",    "POST",    "PUT",	"PATCH",
				       "DELETE", "OPTIONS", "CONNECT", "OTHER", "PRI" };

static const struct {
	__u16 flag;
	const char *text;
} flags[] = {
	{ WEIR_REQUEST_HTTP10, "http10" },	    { WEIR_REQUEST_CLOSE, "close" },
	{ WEIR_REQUEST_EXPECT, "expect" },	    { WEIR_REQUEST_UPGRADE, "upgrade" },
	{ WEIR_REQUEST_CHUNKED, "chunked" },	    { WEIR_REQUEST_HAS_LENGTH, "length" },
	{ WEIR_REQUEST_HEALTH, "health" },	    { WEIR_REQUEST_USER, "user" },
	{ WEIR_REQUEST_USER_REPEATED, "repeated" }, { WEIR_REQUEST_NAMESPACE_ENCODED, "encoded" },
};

struct trace {
	char text[512];
	size_t length;
};

__attribute__((format(printf, 2, 3))) static void say(struct trace *t, const char *format, ...)
{
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(t->text + t->length, sizeof(t->text) - t->length, format, arguments);
	va_end(arguments);
	assert_true(n >= 0 && (size_t)n < sizeof(t->text) - t->length);
	t->length += n;
}

static __u64 subject_of(__u8 kind, const char *name, size_t length)
{
	struct weir_subject_hash h;

	weir_subject_start(&h, seed, kind);
	for (size_t i = 0; i < length; i++)
		weir_subject_byte(&h, name[i]);
	return weir_subject_end(&h);
}

static void say_head(struct trace *t, const struct weir_request *r, const char *message)
{
	say(t, "%s", methods[r->method]);
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
		if (r->flags & flags[i].flag)
			say(t, " %s", flags[i].text);
	if (r->flags & WEIR_REQUEST_HAS_LENGTH)
		say(t, "=%llu", (unsigned long long)r->content_length);
	if (r->namespace_subject)
		say(t, " ns=%.*s", r->namespace_length, message + r->namespace_offset);
	else
		assert_true(!r->namespace_length && !r->namespace_offset);
	if (r->user_subject)
		say(t, " user=%.*s", r->user_length, message + r->user_offset);
	else
		assert_true(!r->user_length && !r->user_offset && !(r->flags & WEIR_REQUEST_USER));
}

/* What a head said, without where the machine is. */
static struct weir_request said(const struct weir_request *r)
{
	struct weir_request copy = *r;

	memset(&copy.framing, 0, sizeof(copy.framing));
	return copy;
}

/*
 * Feeds a stream. With `moved` the machine changes its place between any two bytes, and its old place is overwritten.
 * With `skipping` whatever may be skipped or passed over is. last: what the latest head said, which the body must not change.
 */
static void feed(struct trace *t, const char *stream, size_t length, bool moved, bool skipping,
		 struct weir_request *last)
{
	struct weir_request places[2], *r = &places[0];
	size_t start = 0, at = 0;

	t->length = 0;
	t->text[0] = '\0';
	weir_request_start(r);
	assert_true(weir_request_fresh(r));
	while (at < length) {
		enum weir_frame_event event;
		__u64 skip = weir_request_skippable(r);
		__u32 boring = weir_request_boring(r);

		if (moved) {
			struct weir_request *other = &places[r == &places[0]];

			*other = *r;
			memset(r, 0xa5, sizeof(*r));
			r = other;
		}
		if (skipping && boring && stream[at] >= ' ' && stream[at] < 0x7f) {
			size_t text = 0;

			while (text < boring && at + text < length && weir_is_text(stream[at + text]))
				text++;
			weir_request_pass(r, text);
			at += text;
			continue;
		}
		if (skipping && skip) {
			if (skip > length - at)
				skip = length - at;
			event = weir_request_skip(r, skip);
			at += skip;
		} else {
			event = weir_request_byte(r, seed, stream[at++]);
		}
		assert_false(weir_request_fresh(r));
		if (event == WEIR_FRAME_LOST) {
			say(t, "lost %s %zu", labels[r->lost], at - 1);
			assert_int_equal(weir_request_byte(r, seed, 'G'), WEIR_FRAME_LOST);
			assert_int_equal(weir_request_skippable(r), 0);
			return;
		}
		if (event == WEIR_FRAME_HEAD) {
			assert_int_equal(r->head_length, at - start);
			say_head(t, r, stream + start);
			say(t, " head %zu; ", at);
			*last = said(r);
		}
		assert_int_equal(event == WEIR_FRAME_MESSAGE || (event == WEIR_FRAME_HEAD && weir_request_ended(r)),
				 weir_request_ended(r));
		if (event == WEIR_FRAME_MESSAGE) {
			struct weir_request now = said(r);

			assert_memory_equal(&now, last, sizeof(now));
			say(t, "end %zu; ", at);
		}
		if (weir_request_ended(r)) {
			start = at;
			weir_request_start(r);
		}
	}
	if (start < at)
		say(t, "more");
	else if (t->length)
		t->text[t->length -= 2] = '\0';
}

/* Feeds a stream in every way, which must not make a difference. */
static void check(const char *stream, size_t length, const char *expected, struct weir_request *last)
{
	struct trace whole, other;
	struct weir_request request = { .lost = 0 };

	feed(&whole, stream, length, false, false, last);
	if (strcmp(whole.text, expected))
		print_error("stream: %.*s\n", length < 200 ? (int)length : 200, stream);
	assert_string_equal(whole.text, expected);
	for (int way = 1; way < 4; way++) {
		request = *last;
		feed(&other, stream, length, way & 1, way & 2, &request);
		assert_string_equal(other.text, whole.text);
		assert_memory_equal(&request, last, sizeof(request));
	}
}

struct example {
	const char *stream;
	const char *trace;
	const char *name; /* the namespace or user that must have been hashed, decoded */
};

#define END "\r\n\r\n"
#define V11 " HTTP/1.1" END
#define G "GET / HTTP/1.1\r\n"
#define P "POST / HTTP/1.1\r\n"

static void check_examples(const struct example *examples, size_t count, __u8 kind)
{
	for (size_t i = 0; i < count; i++) {
		struct weir_request last = { .lost = 0 };
		__u64 subject = 0;

		check(examples[i].stream, strlen(examples[i].stream), examples[i].trace, &last);
		if (examples[i].name)
			subject = subject_of(kind, examples[i].name, strlen(examples[i].name));
		if (kind == WEIR_NAME_NAMESPACE)
			assert_int_equal(last.namespace_subject, subject);
		else
			assert_int_equal(last.user_subject, subject);
	}
}

static const struct example paths[] = {
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
	{ "GET /api/v1/namespaces/p%72od/x" V11, "GET encoded ns=p%72od head 44", "prod" },
	{ "GET /api/v1/namespaces/%70%72%6f%64" V11, "GET encoded ns=%70%72%6f%64 head 48", "prod" },
	{ "GET /api/v1/namespaces/pro%64" V11, "GET encoded ns=pro%64 head 42", "prod" },
	{ "GET /api/v1/namespaces/prod%2Fpods" V11, "GET ns=prod head 47", "prod" },
	{ "GET /api/v1/namespaces/prod%2fpods" V11, "GET ns=prod head 47", "prod" },
	{ "GET /api%2fv1%2Fnamespaces%2Fprod" V11, "GET ns=prod head 46", "prod" },
	{ "GET /%2F%2fapi/v1/namespaces/prod%2F" V11, "GET ns=prod head 49", "prod" },
	{ "GET /api/v1/namespaces/%2Fprod" V11, "GET head 43", NULL },
	{ "GET /api/v1/namespaces/a%3Fb%20c%25%34" V11, "GET encoded ns=a%3Fb%20c%25%34 head 51", "a?b c%4" },
	{ "GET /api%00/v1/namespaces/prod" V11, "GET head 43", NULL },
	{ "GET /%00api/v1/namespaces/prod" V11, "GET head 43", NULL },
	{ "GET /api/v1/namespaces/%0d%0A" V11, "GET encoded ns=%0d%0A head 42", "\r\n" },
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
	{ "GET /livez/etcd//x.y" V11, "GET health head 33", NULL },
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
	check_examples(paths, ARRAY_SIZE(paths), WEIR_NAME_NAMESPACE);
}

static const struct example users[] = {
	{ G "X-Remote-User: ci" END, "GET user user=ci head 37", "ci" },
	{ G "x-REMOTE-user:ci" END, "GET user user=ci head 36", "ci" },
	{ G "X-Remote-User: \t ci \t\t " END, "GET user user=ci head 43", "ci" },
	{ G "X-Remote-User:  a  b\tc d  " END, "GET user user=a  b\tc d head 46", "a  b\tc d" },
	{ G "X-Remote-User: system:serviceaccount:a:b\r\nHost: x" END,
	  "GET user user=system:serviceaccount:a:b head 69", "system:serviceaccount:a:b" },
	{ G "X-Remote-User: \xc3\xb6, \"x\"" END, "GET user user=\xc3\xb6, \"x\" head 42", "\xc3\xb6, \"x\"" },
	{ G "X-Remote-User:" END, "GET head 34", NULL },
	{ G "X-Remote-User: \t" END, "GET head 36", NULL },
	{ G "X-Remote-User: a\r\nX-Remote-User: b" END, "GET user repeated user=a head 54", "a" },
	{ G "X-Remote-User: a\r\nx-remote-user: a" END, "GET user repeated user=a head 54", "a" },
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
	check_examples(users, ARRAY_SIZE(users), WEIR_NAME_USER);
}

static const struct example lines[] = {
	{ G "\r\n", "GET head 18", NULL },
	{ "\r\n\r\n\r\n\r\n" G "\r\n", "GET head 26", NULL },
	{ "\r\n\r\n\r\n\r\n\r\n" G "\r\n", "lost not_http 8", NULL },
	{ "\rG", "lost bare_cr 1", NULL },
	{ "\n" G, "lost bare_lf 0", NULL },
	{ " " G, "lost not_http 0", NULL },
	{ "\x16\x03\x01", "lost tls 0", NULL },
	{ "\x80", "lost not_http 0", NULL },
	{ "{\"a\":1}", "lost not_http 0", NULL },
	{ "GET", "more", NULL },
	{ "get / HTTP/1.1" END, "OTHER head 18", NULL },
	{ "PATCH / HTTP/1.1" END "PUT / HTTP/1.1" END "DELETE / HTTP/1.1" END,
	  "PATCH head 20; PUT head 38; DELETE head 59", NULL },
	{ "GETS / HTTP/1.1" END, "OTHER head 19", NULL },
	{ "ABCDEFGHIJKLMNOPQRSTUVWX / HTTP/1.1" END, "OTHER head 39", NULL },
	{ "ABCDEFGHIJKLMNOPQRSTUVWXY / HTTP/1.1" END, "lost bad_request_line 24", NULL },
	{ "G:T / HTTP/1.1" END, "lost bad_request_line 1", NULL },
	{ "SSH-2.0-x\r\n", "lost bad_request_line 9", NULL },
	{ "GET\n", "lost bare_lf 3", NULL },
	{ "GET\t/ HTTP/1.1" END, "lost bad_request_line 3", NULL },
	{ "GET  / HTTP/1.1" END, "lost bad_request_line 4", NULL },
	{ "GET /  HTTP/1.1" END, "lost bad_request_line 6", NULL },
	{ "GET / x HTTP/1.1" END, "lost bad_request_line 7", NULL },
	{ "GET / HTTP/1.1 " END, "lost bad_request_line 14", NULL },
	{ "GET /\r\n", "lost bad_request_line 5", NULL },
	{ "GET /\n", "lost bare_lf 5", NULL },
	{ "GET /\t HTTP/1.1" END, "lost bad_request_line 5", NULL },
	{ "GET /\x7f HTTP/1.1" END, "lost bad_request_line 5", NULL },
	{ "GET /?\x01 HTTP/1.1" END, "lost bad_request_line 6", NULL },
	{ "GET / HTTP/1.1\n", "lost bare_lf 14", NULL },
	{ "GET / HTTP/1.1\rX", "lost bare_cr 15", NULL },
	{ "GET / HTTP/1.2" END, "lost bad_version 14", NULL },
	{ "GET / HTTP/2.0" END, "lost bad_version 14", NULL },
	{ "GET / HTTP/1.10" END, "lost bad_version 14", NULL },
	{ "GET / HTTP/1." END, "lost bad_version 13", NULL },
	{ "GET / http/1.1" END, "lost bad_version 14", NULL },
	{ "GET / \r\n", "lost bad_version 6", NULL },
	{ "PRI * HTTP/2.0" END "SM" END, "lost http2 14", NULL },
	{ "PRI * HTTP/1.1" END, "PRI head 18", NULL },
	{ "GET / HTTP/1.0" END, "GET http10 close head 18", NULL },
};

static void test_request_lines(void **state)
{
	(void)state;
	check_examples(lines, ARRAY_SIZE(lines), WEIR_NAME_NAMESPACE);
}

static const struct example headers[] = {
	{ G "Host: x\r\nA:\r\nB: \r\nC:c" END, "GET head 41", NULL },
	{ G "A: \t\x80\xff!~" END, "GET head 28", NULL },
	{ G "A: x" END G "B: y" END, "GET head 24; GET head 48", NULL },
	{ G ": x" END, "lost bad_header 16", NULL },
	{ G "A : x" END, "lost bad_header 17", NULL },
	{ G "A\t: x" END, "lost bad_header 17", NULL },
	{ G " A: x" END, "lost folded_header 16", NULL },
	{ G "A: x\r\n y" END, "lost folded_header 22", NULL },
	{ G "A: x\r\n\ty" END, "lost folded_header 22", NULL },
	{ G "A(b): x" END, "lost bad_header 17", NULL },
	{ G "\x80: x" END, "lost bad_header 16", NULL },
	{ G "A" END, "lost bad_header 17", NULL },
	{ G "A\n", "lost bare_lf 17", NULL },
	{ G "\n", "lost bare_lf 16", NULL },
	{ G "A: x\n\r\n", "lost bare_lf 20", NULL },
	{ G "A: x\rB: y" END, "lost bare_cr 21", NULL },
	{ G "A: x\r\r\n", "lost bare_cr 21", NULL },
	{ G "\rx", "lost bare_cr 17", NULL },
	{ G "A: \x1f" END, "lost bad_header 19", NULL },
	{ G "A: \x7f" END, "lost bad_header 19", NULL },
	{ G "Connection: \x02" END, "lost bad_header 28", NULL },
	/* connection options, expectations */
	{ G "Connection: close" END, "GET close head 37", NULL },
	{ G "CONNECTION:CLOSE" END, "GET close head 36", NULL },
	{ G "Connection: a, close , b" END, "GET close head 44", NULL },
	{ G "Connection: ,,\tclose" END, "GET close head 40", NULL },
	{ G "Connection: a\r\nConnection: close" END, "GET close head 52", NULL },
	{ G "Connection: closed, xclose, clo se, close x, \"close\"" END, "GET head 72", NULL },
	{ G "Connection: closeabcdefghijklmnopqrstuvwxyz" END, "GET head 63", NULL },
	{ G "Connections: close" END, "GET head 38", NULL },
	{ G "Connection: keep-alive" END, "GET head 42", NULL },
	{ "GET / HTTP/1.0\r\nConnection: Keep-Alive" END, "GET http10 head 42", NULL },
	{ "GET / HTTP/1.0\r\nConnection: keep-alive, close" END, "GET http10 close head 49", NULL },
	{ G "Connection: Upgrade\r\nUpgrade: websocket" END, "GET upgrade head 59", NULL },
	{ G "Upgrade: h2c\r\nConnection: HTTP2-Settings, upgrade" END, "GET upgrade head 69", NULL },
	{ G "Connection: upgrade" END, "GET head 39", NULL },
	{ G "Upgrade: websocket" END, "GET head 38", NULL },
	{ P "Expect: 100-Continue\r\nContent-Length: 1" END, "POST expect length=1 head 60; more", NULL },
	{ P "Expect: 200-ok" END, "POST head 35", NULL },
};

static void test_headers(void **state)
{
	(void)state;
	check_examples(headers, ARRAY_SIZE(headers), WEIR_NAME_NAMESPACE);
}

#define CL P "Content-Length:"
#define TE P "Transfer-Encoding: chunked" END

static const struct example bodies[] = {
	{ CL " 5" END "hello" G "\r\n", "POST length=5 head 38; end 43; GET head 61", NULL },
	{ CL "5\t " END "\r\n\r\n\n" G "\r\n", "POST length=5 head 39; end 44; GET head 62", NULL },
	{ CL " 0" END G "\r\n", "POST length=0 head 38; GET head 56", NULL },
	{ CL " 0005" END "helloG", "POST length=5 head 41; end 46; more", NULL },
	{ CL " 000000000000000000000000000000000000000003" END "abc", "POST length=3 head 79; end 82", NULL },
	{ CL " 9223372036854775807" END "x", "POST length=9223372036854775807 head 56; more", NULL },
	{ CL " 9223372036854775808" END, "lost bad_content_length 51", NULL },
	{ CL " 18446744073709551621" END, "lost bad_content_length 52", NULL },
	{ CL " 92233720368547758070" END, "lost bad_content_length 52", NULL },
	{ CL END, "lost bad_content_length 32", NULL },
	{ CL " " END, "lost bad_content_length 33", NULL },
	{ CL " +5" END, "lost bad_content_length 33", NULL },
	{ CL " -5" END, "lost bad_content_length 33", NULL },
	{ CL " 0x5" END, "lost bad_content_length 34", NULL },
	{ CL " 1 2" END, "lost bad_content_length 35", NULL },
	{ CL " 5,5" END, "lost bad_content_length 34", NULL },
	{ CL " 5\x0b" END, "lost bad_header 34", NULL },
	{ CL " 5\r\n\t5" END, "lost folded_header 36", NULL },
	{ CL " 5\r\nContent-Length: 5" END, "lost length_conflict 50", NULL },
	{ CL " 5\r\nTransfer-Encoding: chunked" END, "lost length_conflict 53", NULL },
	{ P "Transfer-Encoding: chunked\r\nContent-Length: 5" END, "lost length_conflict 59", NULL },
	{ P "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked" END, "lost bad_transfer_encoding 62", NULL },
	{ P "Transfer-Encoding: gzip, chunked" END, "lost bad_transfer_encoding 49", NULL },
	{ P "Transfer-Encoding: chunked," END, "lost bad_transfer_encoding 44", NULL },
	{ P "Transfer-Encoding: xchunked" END, "lost bad_transfer_encoding 44", NULL },
	{ P "Transfer-Encoding: chunke" END, "lost bad_transfer_encoding 42", NULL },
	{ P "Transfer-Encoding: chunked chunked" END, "lost bad_transfer_encoding 51", NULL },
	{ P "Transfer-Encoding: \"chunked\"" END, "lost bad_transfer_encoding 45", NULL },
	{ P "Transfer-Encoding: \x0b"
	    "chunked" END,
	  "lost bad_header 36", NULL },
	{ P "Transfer-Encoding:" END, "lost bad_transfer_encoding 35", NULL },
	{ P "Transfer-Encoding: identity" END, "lost bad_transfer_encoding 44", NULL },
	{ "POST / HTTP/1.0\r\nTransfer-Encoding: chunked" END, "lost bad_transfer_encoding 34", NULL },
	{ P "transfer-ENCODING:\t CHUNKED \t" END "0" END, "POST chunked head 50; end 55", NULL },
	{ TE "5\r\nhello\r\n0" END G "\r\n", "POST chunked head 47; end 62; GET head 80", NULL },
	{ TE "a;x=\"y\"\t;z\r\n0123456789\r\n1\r\n\n\r\n000;q" END "G", "POST chunked head 47; end 86; more", NULL },
	{ TE "00000000000000A\r\n0123456789\r\n0" END, "POST chunked head 47; end 81", NULL },
	{ TE "000000000000000A\r\n", "POST chunked head 47; lost bad_chunk 62", NULL },
	{ TE "fffffffffffffff\r\nx", "POST chunked head 47; more", NULL },
	{ TE "\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE ";x\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE "g\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE "-1\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE "0x1\r\n", "POST chunked head 47; lost bad_chunk 48", NULL },
	{ TE " 1\r\n", "POST chunked head 47; lost bad_chunk 47", NULL },
	{ TE "1 \r\n", "POST chunked head 47; lost bad_chunk 48", NULL },
	{ TE "1\n", "POST chunked head 47; lost bad_chunk 48", NULL },
	{ TE "1\rx", "POST chunked head 47; lost bad_chunk 49", NULL },
	{ TE "1;a\nb\r\n", "POST chunked head 47; lost bad_chunk 50", NULL },
	{ TE "1;a\x01\r\n", "POST chunked head 47; lost bad_chunk 50", NULL },
	{ TE "1\r\nxy", "POST chunked head 47; lost bad_chunk 51", NULL },
	{ TE "1\r\nx\n", "POST chunked head 47; lost bad_chunk 51", NULL },
	{ TE "1\r\nx\r\r", "POST chunked head 47; lost bad_chunk 52", NULL },
	{ TE "0\r\nA: x\r\nContent-Length: 7\r\nTransfer-Encoding: y" END G "\r\n",
	  "POST chunked head 47; end 99; GET head 117", NULL },
	{ TE "0\r\n: x", "POST chunked head 47; lost bad_chunk 50", NULL },
	{ TE "0\r\nA: x\n", "POST chunked head 47; lost bad_chunk 54", NULL },
	{ TE "0\r\n A: x", "POST chunked head 47; lost bad_chunk 50", NULL },
	{ TE "0\r\n\rx", "POST chunked head 47; lost bad_chunk 51", NULL },
};

static void test_bodies(void **state)
{
	(void)state;
	check_examples(bodies, ARRAY_SIZE(bodies), WEIR_NAME_NAMESPACE);
}

/* Bytes that C strings can not hold, at every place of a request. */
static void test_nul(void **state)
{
	static const char valid[] = "GET /api/v1/namespaces/a?b HTTP/1.1\r\nX-Remote-User: c\r\nConnection: d" END;
	char stream[sizeof(valid)];

	(void)state;
	for (size_t at = 0; at < sizeof(valid) - 1; at++) {
		struct weir_request last = { .lost = 0 };
		const char *reason = !at ? "not_http" : valid[at - 1] == '\r' ? "bare_cr" : "nul_byte";
		char expected[64];

		memcpy(stream, valid, sizeof(valid));
		stream[at] = '\0';
		snprintf(expected, sizeof(expected), "lost %s %zu", reason, at);
		check(stream, sizeof(valid) - 1, expected, &last);
	}
}

/* head: text before and after `length` times `c` */
static void check_long(const char *before, char c, size_t length, const char *after, const char *expected,
		       struct weir_request *last)
{
	size_t size = strlen(before) + length + strlen(after);
	char *stream = malloc(size + 1);

	assert_non_null(stream);
	strcpy(stream, before);
	memset(stream + strlen(before), c, length);
	strcpy(stream + strlen(before) + length, after);
	check(stream, size, expected, last);
	free(stream);
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
		check_long("GET /api/v1/namespaces/", 'n', n, "/pods" V11, expected, &last);
		assert_int_equal(last.namespace_subject, subject_of(WEIR_NAME_NAMESPACE, name, n));
		snprintf(expected, sizeof(expected), "GET user user=%.*s head %d", n, name, 35 + n);
		check_long(G "X-Remote-User: ", 'n', n, END, expected, &last);
		assert_int_equal(last.user_subject, subject_of(WEIR_NAME_USER, name, n));
	}
}

static void test_head_limit(void **state)
{
	static const struct {
		const char *before, *after;
	} places[] = {
		{ "GET /", V11 }, { "GET /?", V11 }, { "GET /api/v1/", V11 },
		{ G, ":" END },	  { G "A: ", END },  { G "Connection: ", END },
	};
	char expected[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		size_t room = WEIR_HEAD_MAX - strlen(places[i].before) - strlen(places[i].after);
		struct weir_request last = { .lost = 0 };

		snprintf(expected, sizeof(expected), "GET head %d", WEIR_HEAD_MAX);
		check_long(places[i].before, 'x', room, places[i].after, expected, &last);
		snprintf(expected, sizeof(expected), "lost head_too_long %d", WEIR_HEAD_MAX);
		check_long(places[i].before, 'x', room + 1, places[i].after, expected, &last);
		check_long(places[i].before, 'x', 2 * WEIR_HEAD_MAX, places[i].after, expected, &last);
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
		weir_request_byte(&r, seed, before[i]);
	for (size_t i = 0; i < length; i++)
		weir_request_byte(&r, seed, name[i]);
	for (size_t i = 0; i < strlen(after); i++)
		event = weir_request_byte(&r, seed, after[i]);
	assert_int_equal(event, WEIR_FRAME_HEAD);
	assert_int_equal(r.namespace_offset, strlen(before));
	assert_int_equal(r.namespace_length, length);
	assert_int_equal(r.namespace_subject, subject_of(WEIR_NAME_NAMESPACE, name, length));
	free(name);
}

static void test_chunk_limits(void **state)
{
	struct weir_request last = { .lost = 0 };
	char expected[64];

	(void)state;
	snprintf(expected, sizeof(expected), "POST chunked head 47; end %d", 47 + 2 + WEIR_CHUNK_EXTENSION_MAX + 4);
	check_long(TE "0;", 'x', WEIR_CHUNK_EXTENSION_MAX, END, expected, &last);
	snprintf(expected, sizeof(expected), "POST chunked head 47; lost bad_chunk %d",
		 47 + 2 + WEIR_CHUNK_EXTENSION_MAX);
	check_long(TE "0;", 'x', WEIR_CHUNK_EXTENSION_MAX + 1, END, expected, &last);
	snprintf(expected, sizeof(expected), "POST chunked head 47; lost bad_chunk %d", 47 + 3 + WEIR_HEAD_MAX);
	check_long(TE "0\r\nA: ", 'x', WEIR_HEAD_MAX, END, expected, &last);
	snprintf(expected, sizeof(expected), "POST chunked head 47; end %d", 47 + 9 + WEIR_HEAD_MAX);
	check_long(TE "0;chunk\r\nA: ", 'x', WEIR_HEAD_MAX - 7, END, expected, &last);
}

/* A byte that follows a message without a new start belongs to none. */
static void test_no_start(void **state)
{
	static const char head[] = G "\r\n";
	struct weir_request r;

	(void)state;
	weir_request_start(&r);
	for (size_t i = 0; i < sizeof(head) - 1; i++)
		weir_request_byte(&r, seed, head[i]);
	assert_true(weir_request_ended(&r));
	assert_int_equal(weir_request_byte(&r, seed, 'G'), WEIR_FRAME_LOST);
	assert_int_equal(r.lost, WEIR_MID_STREAM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),	      cmocka_unit_test(test_users),
		cmocka_unit_test(test_request_lines), cmocka_unit_test(test_headers),
		cmocka_unit_test(test_bodies),	      cmocka_unit_test(test_nul),
		cmocka_unit_test(test_long_names),    cmocka_unit_test(test_head_limit),
		cmocka_unit_test(test_longest_names), cmocka_unit_test(test_chunk_limits),
		cmocka_unit_test(test_no_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
