/* SPDX-License-Identifier: GPL-2.0 */
#include "request_reader.h"
#include "weir/http/request_line.h"

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

#include "../../array_size.h"

#define TCHAR "[!#$%&'*+.^_`|~0-9A-Za-z-]"
#define TEXT "([^[:cntrl:]]|\t)*"

static regex_t request_line, header_line, scheme, decimal, chunk_line;

int request_reader_start(void **state)
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

int request_reader_stop(void **state)
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

ssize_t request_reader_decode(const char *path, size_t length, char *decoded)
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

/* Could another server read it as another path? */
static bool is_odd(const char *path)
{
	if (strpbrk(path, "%\\#") || strstr(path, "//"))
		return true;
	for (const char *dot = strstr(path, "/."); dot; dot = strstr(dot + 1, "/."))
		if (!dot[2] || strchr("./;", dot[2]))
			return true;
	for (; *path; path++)
		if (*path & 0x80)
			return true;
	return false;
}

static bool is_health(const char *path, size_t length)
{
	static const char *const prefixes[] = { "/healthz", "/livez", "/readyz" };
	char text[STREAM_MAX];

	memcpy(text, path, length);
	text[length] = '\0';
	if (is_odd(text))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (!strncmp(text, prefixes[i], n) && (!text[n] || text[n] == '/'))
			return true;
	}
	return false;
}

static bool read_target(struct request_reading *r, const char *target)
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
	length = request_reader_decode(path, strcspn(path, "?"), decoded);
	if (length < 0)
		return false;
	decoded[length] = '\0';
	r->health = is_health(path, strcspn(path, "?"));
	find_namespace(decoded, r->namespace);
	return true;
}

static void read_list(struct request_reading *r, const char *name, char *value)
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

static bool read_length(struct request_reading *r, const char *value)
{
	if (r->has_length || r->chunked || regexec(&decimal, value, 0, NULL, 0))
		return false;
	errno = 0;
	r->has_length = true;
	r->content_length = strtoull(value, NULL, 10);
	return !errno && r->content_length <= INT64_MAX;
}

static bool read_header(struct request_reading *r, char *line, bool *users)
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

static bool read_lines(struct request_reading *r, char *text)
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

static enum request_verdict read_head(struct request_reading *r, const char *stream, size_t size)
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
static enum request_verdict next_line(const char *stream, size_t size, size_t *at, char *line)
{
	const char *end = memmem(stream + *at, size - *at, "\r\n", 2);
	size_t length;

	if (!end)
		return INCOMPLETE;
	length = end - (stream + *at);
	memcpy(line, stream + *at, length);
	line[length] = '\0';
	*at += length + 2;
	return strlen(line) == length ? GOOD : BAD;
}

static enum request_verdict read_trailers(struct request_reading *r, const char *stream, size_t size, size_t at)
{
	char line[STREAM_MAX];
	enum request_verdict verdict;

	while ((verdict = next_line(stream, size, &at, line)) == GOOD) {
		r->length = at;
		if (!*line)
			return GOOD;
		if (regexec(&header_line, line, 0, NULL, 0))
			return BAD;
	}
	return verdict;
}

static enum request_verdict read_chunks(struct request_reading *r, const char *stream, size_t size)
{
	size_t at = r->head_length;
	char line[STREAM_MAX];
	enum request_verdict verdict;

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

void request_reader_read(struct request_reading *r, const char *stream, size_t size)
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
