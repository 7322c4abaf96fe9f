/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Random requests, most of them damaged, read by the machine and by a second reader that works in another way: it waits
 * for the whole head and takes it apart with regular expressions and string functions. Where both have read a head they
 * must agree on what it says, and on where the message ends; what one refuses the other must refuse.
 */
#include "weir/request.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define STREAM_MAX 2048
#define ROUNDS 60000

static const __u64 seed[2] = { 0x1122334455667788ULL, 0x99aabbccddeeff00ULL };

/* --- The second reader */

enum verdict {
	INCOMPLETE,
	GOOD,
	BAD,
};

struct reading {
	enum verdict head, body;
	size_t head_length, length; /* of the message; valid with GOOD */
	char method[32];
	bool http10, chunked, has_length, user_repeated, health;
	bool close, keep_alive, upgrade_option, upgrade, expect;
	unsigned long long content_length;
	char namespace[STREAM_MAX];
	char user[STREAM_MAX];
};

#define TCHAR "[!#$%&'*+.^_`|~0-9A-Za-z-]"
#define TEXT "([^[:cntrl:]]|\t)*"

static regex_t request_line, header_line, scheme, decimal, chunk_line;

static int compile_all(void **state)
{
	(void)state;
	assert_int_equal(regcomp(&request_line, "^(" TCHAR "{1,24}) ([^[:cntrl:] ]+) HTTP/1\\.([01])$", REG_EXTENDED),
			 0);
	assert_int_equal(regcomp(&header_line, "^(" TCHAR "+):(" TEXT ")$", REG_EXTENDED), 0);
	assert_int_equal(regcomp(&scheme, "^[A-Za-z][A-Za-z0-9+.-]*://", REG_EXTENDED), 0);
	assert_int_equal(regcomp(&decimal, "^[0-9]+$", REG_EXTENDED), 0);
	assert_int_equal(regcomp(&chunk_line, "^([0-9A-Fa-f]{1,15})(;" TEXT ")?$", REG_EXTENDED), 0);
	return 0;
}

static int free_all(void **state)
{
	(void)state;
	regfree(&request_line);
	regfree(&header_line);
	regfree(&scheme);
	regfree(&decimal);
	regfree(&chunk_line);
	return 0;
}

static char *trim(char *text, const char *what)
{
	size_t length;

	text += strspn(text, what);
	for (length = strlen(text); length && strchr(what, text[length - 1]); length--)
		text[length - 1] = '\0';
	return text;
}

/* Decoded bytes may be NUL: the length is what counts. -1: not encoded right */
static ssize_t decode(const char *path, size_t length, char *decoded)
{
	size_t n = 0;

	for (size_t i = 0; i < length; i++) {
		char digits[3] = { 0 };

		decoded[n++] = path[i];
		if (path[i] != '%')
			continue;
		if (length - i < 3 || !isxdigit((unsigned char)path[i + 1]) || !isxdigit((unsigned char)path[i + 2]))
			return -1;
		memcpy(digits, path + i + 1, 2);
		decoded[n - 1] = strtoul(digits, NULL, 16);
		i += 2;
	}
	return n;
}

/* Kubernetes' RequestInfo, with the parts in an array. NUL bytes do not occur (the generator encodes none). */
static void find_namespace(char *decoded, char *namespace)
{
	char *parts[STREAM_MAX], *rest = trim(decoded, "/"), *part;
	size_t count = 0, at = 1;

	namespace[0] = '\0';
	while ((part = strsep(&rest, "/")))
		parts[count++] = part;
	if (count < 3 || (strcmp(parts[0], "api") && strcmp(parts[0], "apis")))
		return;
	if (!strcmp(parts[0], "apis"))
		at++;
	at++;
	if (count <= at)
		return;
	if (!strcmp(parts[at], "watch") || !strcmp(parts[at], "proxy"))
		at++;
	if (count > at + 1 && !strcmp(parts[at], "namespaces"))
		strcpy(namespace, parts[at + 1]);
}

static bool is_health(const char *path, size_t length)
{
	static const char *const prefixes[] = { "/healthz", "/livez", "/readyz" };
	char text[STREAM_MAX];

	memcpy(text, path, length);
	text[length] = '\0';
	if (strchr(text, '%') || strchr(text, '\\') || strstr(text, "/."))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (!strncmp(text, prefixes[i], n) && (!text[n] || text[n] == '/'))
			return true;
	}
	return false;
}

static bool read_target(struct reading *r, const char *target)
{
	char decoded[STREAM_MAX];
	const char *path = target;
	regmatch_t match[1];
	ssize_t length;

	if (*target != '/') {
		if (!strcmp(r->method, "CONNECT") || !strcmp(target, "*"))
			return true;
		if (regexec(&scheme, target, 1, match, 0))
			return false;
		path = target + match[0].rm_eo;
		path += strcspn(path, "/?");
	}
	length = decode(path, strcspn(path, "?"), decoded);
	if (length < 0)
		return false;
	decoded[length] = '\0';
	r->health = is_health(path, strcspn(path, "?"));
	find_namespace(decoded, r->namespace);
	return true;
}

static void read_list(struct reading *r, const char *name, char *value)
{
	char *element;

	while ((element = strsep(&value, ","))) {
		element = trim(element, " \t");
		if (!strcasecmp(name, "Expect")) {
			r->expect |= !strcasecmp(element, "100-continue");
			continue;
		}
		r->close |= !strcasecmp(element, "close");
		r->keep_alive |= !strcasecmp(element, "keep-alive");
		r->upgrade_option |= !strcasecmp(element, "upgrade");
	}
}

static bool read_length(struct reading *r, const char *value)
{
	if (r->has_length || r->chunked || regexec(&decimal, value, 0, NULL, 0))
		return false;
	errno = 0;
	r->has_length = true;
	r->content_length = strtoull(value, NULL, 10);
	return !errno && r->content_length <= INT64_MAX;
}

static bool read_header(struct reading *r, char *line, bool *users)
{
	regmatch_t match[3];
	char *value;

	if (regexec(&header_line, line, ARRAY_SIZE(match), match, 0))
		return false;
	line[match[1].rm_eo] = '\0';
	value = trim(line + match[2].rm_so, " \t");
	if (!strcasecmp(line, "Content-Length"))
		return read_length(r, value);
	if (!strcasecmp(line, "Transfer-Encoding")) {
		if (r->has_length || r->chunked || r->http10)
			return false;
		r->chunked = true;
		return !strcasecmp(value, "chunked");
	}
	if (!strcasecmp(line, "X-Remote-User")) {
		r->user_repeated |= *users;
		if (!*users)
			strcpy(r->user, value);
		*users = true;
	}
	if (!strcasecmp(line, "Connection") || !strcasecmp(line, "Expect"))
		read_list(r, line, value);
	r->upgrade |= !strcasecmp(line, "Upgrade");
	return true;
}

static bool read_lines(struct reading *r, char *text)
{
	regmatch_t match[4];
	bool users = false;
	char *next;

	for (char *line = text; *line; line = next) {
		next = strstr(line, "\r\n");
		*next = '\0';
		next += 2;
		if (line != text) {
			if (!read_header(r, line, &users))
				return false;
			continue;
		}
		if (regexec(&request_line, line, ARRAY_SIZE(match), match, 0))
			return false;
		line[match[1].rm_eo] = line[match[2].rm_eo] = '\0';
		strcpy(r->method, line);
		r->http10 = line[match[3].rm_so] == '0';
		if (!read_target(r, line + match[2].rm_so))
			return false;
	}
	return true;
}

static enum verdict read_head(struct reading *r, const char *stream, size_t size)
{
	char text[STREAM_MAX];
	size_t skip = 0, length;
	const char *end;

	while (skip < 2 * WEIR_REQUEST_EMPTY_LINES && size - skip >= 2 && !memcmp(stream + skip, "\r\n", 2))
		skip += 2;
	end = memmem(stream + skip, size - skip, "\r\n\r\n", 4);
	if (!end)
		return INCOMPLETE;
	r->head_length = end + 4 - stream;
	length = r->head_length - skip - 2;
	memcpy(text, stream + skip, length);
	text[length] = '\0';
	return strlen(text) == length && read_lines(r, text) ? GOOD : BAD;
}

/* The line at `at`, without its CRLF. */
static enum verdict next_line(const char *stream, size_t size, size_t *at, char *line)
{
	const char *end = memmem(stream + *at, size - *at, "\r\n", 2);
	size_t length = end - (stream + *at);

	if (!end)
		return INCOMPLETE;
	memcpy(line, stream + *at, length);
	line[length] = '\0';
	*at += length + 2;
	return strlen(line) == length ? GOOD : BAD;
}

static enum verdict read_trailers(struct reading *r, const char *stream, size_t size, size_t at)
{
	char line[STREAM_MAX];
	enum verdict verdict;

	while ((verdict = next_line(stream, size, &at, line)) == GOOD) {
		r->length = at;
		if (!*line)
			return GOOD;
		if (regexec(&header_line, line, 0, NULL, 0))
			return BAD;
	}
	return verdict;
}

static enum verdict read_chunks(struct reading *r, const char *stream, size_t size)
{
	size_t at = r->head_length;
	char line[STREAM_MAX];
	enum verdict verdict;

	while ((verdict = next_line(stream, size, &at, line)) == GOOD) {
		unsigned long long chunk = strtoull(line, NULL, 16);

		if (regexec(&chunk_line, line, 0, NULL, 0))
			return BAD;
		if (!chunk)
			return read_trailers(r, stream, size, at);
		if (chunk > size - at || size - at - chunk < 2)
			return INCOMPLETE;
		at += chunk + 2;
		if (memcmp(stream + at - 2, "\r\n", 2))
			return BAD;
	}
	return verdict;
}

static void read_message(struct reading *r, const char *stream, size_t size)
{
	memset(r, 0, sizeof(*r));
	r->head = read_head(r, stream, size);
	if (r->head != GOOD)
		return;
	if (r->chunked) {
		r->body = read_chunks(r, stream, size);
		return;
	}
	r->body = r->content_length <= size - r->head_length ? GOOD : INCOMPLETE;
	r->length = r->head_length + r->content_length;
}

/* --- Comparison */

static const char *const methods[] = { "GET",	 "HEAD",    "POST",    "PUT", "PATCH",
				       "DELETE", "OPTIONS", "CONNECT", NULL,  "PRI" };

static __u64 subject_of(__u8 kind, const char *name)
{
	struct weir_subject_hash h;

	if (!*name)
		return 0;
	weir_subject_start(&h, seed, kind);
	while (*name)
		weir_subject_byte(&h, *name++);
	return weir_subject_end(&h);
}

static enum weir_method method_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (methods[i] && !strcmp(methods[i], name))
			return i;
	return WEIR_METHOD_OTHER;
}

static unsigned int flags_of(const struct reading *r)
{
	return (r->http10 ? WEIR_REQUEST_HTTP10 : 0) |
	       (r->close || (r->http10 && !r->keep_alive) ? WEIR_REQUEST_CLOSE : 0) |
	       (r->expect ? WEIR_REQUEST_EXPECT : 0) | (r->upgrade && r->upgrade_option ? WEIR_REQUEST_UPGRADE : 0) |
	       (r->chunked ? WEIR_REQUEST_CHUNKED : 0) | (r->has_length ? WEIR_REQUEST_HAS_LENGTH : 0) |
	       (r->health ? WEIR_REQUEST_HEALTH : 0) | (*r->user ? WEIR_REQUEST_USER : 0) |
	       (r->user_repeated ? WEIR_REQUEST_USER_REPEATED : 0);
}

static void compare_head(const struct reading *expected, const struct weir_request *r, const char *stream)
{
	char namespace[STREAM_MAX];
	ssize_t length = decode(stream + r->namespace_offset, r->namespace_length, namespace);

	assert_int_equal(r->head_length, expected->head_length);
	assert_int_equal(r->method, method_of(expected->method));
	assert_int_equal(r->flags & ~WEIR_REQUEST_NAMESPACE_ENCODED, flags_of(expected));
	assert_int_equal(r->content_length, expected->content_length);
	assert_int_equal(r->namespace_subject, subject_of(WEIR_NAME_NAMESPACE, expected->namespace));
	assert_int_equal(r->user_subject, subject_of(WEIR_NAME_USER, expected->user));
	assert_int_equal(length, strlen(expected->namespace));
	assert_memory_equal(namespace, expected->namespace, length);
	assert_int_equal(!!(r->flags & WEIR_REQUEST_NAMESPACE_ENCODED), length != r->namespace_length);
	assert_int_equal(r->user_length, strlen(expected->user));
	assert_memory_equal(stream + r->user_offset, expected->user, r->user_length);
}

static void compare(const struct reading *expected, const char *stream, size_t size)
{
	enum weir_frame_event event = WEIR_FRAME_MORE;
	bool head = false, ended = false;
	struct weir_request r;
	size_t at = 0;

	weir_request_start(&r);
	while (at < size && event != WEIR_FRAME_LOST && !ended) {
		event = weir_request_byte(&r, seed, stream[at++]);
		ended = weir_request_ended(&r);
		if (event != WEIR_FRAME_HEAD)
			continue;
		assert_false(head);
		head = true;
		assert_int_equal(expected->head, GOOD);
		compare_head(expected, &r, stream);
	}
	assert_int_equal(head, expected->head == GOOD);
	if (expected->head == BAD || (expected->head == GOOD && expected->body == BAD))
		assert_int_equal(event, WEIR_FRAME_LOST);
	assert_int_equal(ended, expected->head == GOOD && expected->body == GOOD);
	if (ended)
		assert_int_equal(at, expected->length);
}

/* --- Requests */

static __u64 random_state;

static unsigned int random_below(unsigned int n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (random_state >> 32) % n;
}

static const char *const starts[] = { "GET ",	  "GET ", "GET ", "POST ",    "HEAD ", "OPTIONS ",
				      "CONNECT ", "PRI ", "get ", "\r\nPUT ", "X-Y ",  "DELETE " };
static const char *const forms[] = {
	"/", "/", "/", "/", "/", "//", "http://h/", "a+b://h:1/", "http://h?", "*", "h:1"
};
static const char *const parts[] = { "api",
				     "api",
				     "apis",
				     "v1",
				     "v1",
				     "namespaces",
				     "namespaces",
				     "watch",
				     "proxy",
				     "a",
				     "",
				     "%61pi",
				     "n%61mespaces",
				     "a%2Fb",
				     "b%20",
				     "healthz",
				     "livez",
				     ".",
				     "..",
				     "x\\y",
				     "p\xc3\xb6",
				     "name-of-some-length-that-is-not-short" };
static const char *const ends[] = { " HTTP/1.1\r\n", " HTTP/1.1\r\n", "/ HTTP/1.1\r\n", "?a=%zz/b HTTP/1.1\r\n",
				    " HTTP/1.0\r\n" };
static const char *const lines[] = { "Host: x\r\n",
				     "A:\r\n",
				     "Accept: */*\r\n",
				     "X-Remote-User: ci\r\n",
				     "x-remote-user:  a b\t c \t\r\n",
				     "X-Remote-User: \r\n",
				     "X-Remote-Users: x\r\n",
				     "Content-Length: 5\r\n",
				     "Content-Length: 5\r\n",
				     "content-length:\t007 \r\n",
				     "Content-Length: 0\r\n",
				     "Transfer-Encoding: chunked\r\n",
				     "Transfer-Encoding: chunked\r\n",
				     "Transfer-Encoding: \tCHUNKED \r\n",
				     "Transfer-Encoding: gzip\r\n",
				     "Connection: close\r\n",
				     "Connection: keep-alive, Upgrade\r\n",
				     "Connection: a b, clos e,close\t,\r\n",
				     "Upgrade: x\r\n",
				     "Expect: 100-continue\r\n",
				     "Expect: x, 100-Continue\r\n" };
static const char *const bodies[] = { "",
				      "hello",
				      "hello, world",
				      "0\r\n\r\n",
				      "5\r\nhello\r\n0\r\n\r\n",
				      "a;x=\"y\"\r\n0123456789\r\n00\r\nA: b\r\nContent-Length: 5\r\n\r\nGET",
				      "1\r\nx\r\nfff\r\ny" };

/* A list's random entry, at the stream's end. */
#define APPEND(list) (size += sprintf(stream + size, "%s", (list)[random_below(ARRAY_SIZE(list))]))

static size_t make_stream(char *stream)
{
	size_t size = 0;

	APPEND(starts);
	APPEND(forms);
	for (unsigned int n = random_below(7); n; n--) {
		APPEND(parts);
		if (n > 1)
			stream[size++] = '/';
	}
	APPEND(ends);
	for (unsigned int n = random_below(5); n; n--)
		APPEND(lines);
	size += sprintf(stream + size, "\r\n");
	APPEND(bodies);
	return size;
}

/* A Kubernetes path with some noise, so that namespaces are frequent. */
static size_t make_namespaced(char *stream)
{
	static const char *const roots[] = { "GET /api/v1/",	     "GET /apis/apps/v1/", "GET /api/v1/watch/",
					     "GET /apis/a/b/proxy/", "GET ///api//",	   "GET /%61pi/%761%2F" };
	static const char *const middles[] = { "namespaces/", "namespaces/", "namespace%73/", "namespaces%2f",
					       "namespaces//" };
	size_t size = 0;

	APPEND(roots);
	APPEND(middles);
	for (unsigned int n = 1 + random_below(3); n; n--)
		APPEND(parts);
	APPEND(ends);
	for (unsigned int n = random_below(4); n; n--)
		APPEND(lines);
	return size + sprintf(stream + size, "\r\n");
}

static char random_byte(void)
{
	static const char special[] = "\r\n\r\n\t  :/?%,;.0159afgGX-_\"\x01\x16\x7f\x80\xff";

	return random_below(8) ? special[random_below(sizeof(special))] : (char)random_below(256);
}

/* Overwrites, inserts, removes or repeats something. */
static size_t damage(char *stream, size_t size)
{
	size_t at = random_below(size), n = 1 + random_below(size - at < 12 ? size - at : 12);

	switch (random_below(4)) {
	case 0:
		stream[at] = random_byte();
		return size;
	case 1:
		memmove(stream + at + 1, stream + at, size - at);
		stream[at] = random_byte();
		return size + 1;
	case 2:
		n = 1 + random_below(2);
		if (n >= size - at)
			return size;
		memmove(stream + at, stream + at + n, size - at - n);
		return size - n;
	default:
		memmove(stream + at + n, stream + at, size - at);
		return size + n;
	}
}

/* %00 is for test_request.c: the second reader's names are C strings. */
static bool has_encoded_nul(const char *stream, size_t size)
{
	return memmem(stream, size, "%00", 3);
}

static void test_random_requests(void **state)
{
	static char stream[STREAM_MAX];
	unsigned int good = 0, bad = 0, namespaces = 0, users = 0, chunked = 0, ended = 0, bad_bodies = 0;
	static struct reading expected;

	(void)state;
	random_state = 0x5eed5eed5eed5eedULL;
	for (unsigned int round = 0; round < ROUNDS; round++) {
		size_t size = round % 2 ? make_stream(stream) : make_namespaced(stream);

		for (unsigned int n = random_below(4); n; n--)
			size = damage(stream, size);
		if (has_encoded_nul(stream, size))
			continue;
		read_message(&expected, stream, size);
		compare(&expected, stream, size);
		good += expected.head == GOOD;
		bad += expected.head == BAD;
		if (expected.head != GOOD)
			continue;
		namespaces += *expected.namespace != '\0';
		users += *expected.user != '\0';
		chunked += expected.chunked;
		ended += expected.body == GOOD;
		bad_bodies += expected.body == BAD;
	}
	/* The generator must reach what it is for. */
	assert_true(good > ROUNDS / 10 && bad > ROUNDS / 10 && namespaces > ROUNDS / 20 && users > ROUNDS / 50);
	assert_true(chunked > ROUNDS / 100 && ended > ROUNDS / 20 && bad_bodies > ROUNDS / 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_requests),
	};

	return cmocka_run_group_tests(tests, compile_all, free_all);
}
