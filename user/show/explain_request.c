/* SPDX-License-Identifier: GPL-2.0 */
#include "show/explain_request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/parse.h"

/* --- what may stand where */

static bool is_word(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c <= ' ' || *c == 0x7f)
			return false;
	return *text;
}

static bool has_small_letters(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			return true;
	return false;
}

int explain_check_method(const char *text, struct error *err)
{
	if (!is_word(text))
		return error_set(err, -EINVAL, "\"%s\" is not a method (one word, like GET)", text);
	/* Where a path stands instead, the method is missing: that is said elsewhere. */
	if (*text != '/' && has_small_letters(text))
		return error_set(err, -EINVAL, "\"%s\" has small letters: methods are in capitals, like GET", text);
	return 0;
}

int explain_check_path(const char *text, struct error *err)
{
	bool known = *text == '/' || strstr(text, "://") || !strcmp(text, "*");

	return known && is_word(text) ?
		       0 :
		       error_set(err, -EINVAL, "\"%s\" is not a path (/..., with %%20 for a space)", text);
}

int explain_check_header(const char *text, struct error *err)
{
	const char *colon = strchr(text, ':');

	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if ((*c < ' ' && *c != '\t') || *c == 0x7f)
			return error_set(err, -EINVAL, "\"%s\" has a control character", text);
	if (!colon || colon == text)
		return error_set(err, -EINVAL, "\"%s\" is not a header (NAME: VALUE)", text);
	return 0;
}

int explain_check_source(const char *text, __u8 address[static 16], struct error *err)
{
	struct datapath_cidr cidr;

	if (parse_cidr(text, &cidr, NULL))
		return error_set(err, -EINVAL, "\"%s\" is not an IP address", text);
	if (strchr(text, '/'))
		return error_set(err, -EINVAL, "\"%s\" is a network: a single address is needed", text);
	memcpy(address, cidr.address, sizeof(cidr.address));
	return 0;
}

/* --- JSON */

static int check_each(json_t *texts, const char *what, int (*check)(const char *text, struct error *err),
		      struct error *err)
{
	json_t *item;
	size_t i;

	if (texts && !json_is_array(texts))
		return error_set(err, -EINVAL, "%s must be a list", what);
	json_array_foreach (texts, i, item) {
		int ret = json_is_string(item) ? check(json_string_value(item), err) :
						 error_set(err, -EINVAL, "%s must be texts", what);

		if (ret)
			return ret;
	}
	return 0;
}

static int connection_from_json(json_t *json, struct explain_request *out, struct error *err)
{
	struct explain_request request = {};
	json_error_t why;
	int ret;

	if (json_unpack_ex(json, &why, 0, "{s:b, s:s !}", "connection", &request.connection, "source", &request.source))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	ret = explain_check_source(request.source, request.address, err);
	if (!ret)
		*out = request;
	return ret;
}

int explain_request_from_json(json_t *json, struct explain_request *out, struct error *err)
{
	struct explain_request request = {};
	json_error_t why;
	int ret;

	if (json_is_true(json_object_get(json, "connection")))
		return connection_from_json(json, out, err);
	if (json_unpack_ex(json, &why, 0, "{s:s, s:s, s?s, s?o, s?o, s?s, s?s !}", "method", &request.method, "path",
			   &request.path, "user", &request.user, "groups", &request.groups, "headers", &request.headers,
			   "source", &request.source, "body", &request.body))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	ret = explain_check_method(request.method, err)				    ?:
		      explain_check_path(request.path, err)			    ?:
		      check_each(request.groups, "groups", parse_subject_name, err) ?:
		      check_each(request.headers, "headers", explain_check_header, err);
	ret = ret ?: explain_check_source(request.source ?: "127.0.0.1", request.address, err);
	if (!ret && request.user)
		ret = parse_subject_name(request.user, err);
	if (!ret && !request.user && json_array_size(request.groups))
		ret = error_set(err, -EINVAL, "groups need a user");
	if (!ret)
		*out = request;
	return ret;
}

/* --- bytes */

/* Writes if there is room, and counts anyhow. */
struct writing {
	char *at; /* NULL: only counted */
	size_t length;
};

static void write_text(struct writing *w, const char *text)
{
	size_t length = strlen(text);

	if (w->at)
		w->at = mempcpy(w->at, text, length);
	w->length += length;
}

static void write_header(struct writing *w, const char *name, const char *value)
{
	write_text(w, name);
	write_text(w, ": ");
	write_text(w, value);
	write_text(w, "\r\n");
}

static void write_body(struct writing *w, const char *body)
{
	char length[24];

	if (body) {
		snprintf(length, sizeof(length), "%zu", strlen(body));
		write_header(w, "content-length", length);
	}
	write_text(w, "\r\n");
	write_text(w, body ?: "");
}

static void write_request(struct writing *w, const struct explain_request *request,
			  const struct identity_settings *identity)
{
	json_t *item;
	size_t i;

	write_text(w, request->method);
	write_text(w, " ");
	write_text(w, request->path);
	write_text(w, " HTTP/1.1\r\nhost: server\r\n");
	if (request->user)
		write_header(w, identity->user_header, request->user);
	json_array_foreach (request->groups, i, item)
		write_header(w, identity->group_header, json_string_value(item));
	json_array_foreach (request->headers, i, item) {
		write_text(w, json_string_value(item));
		write_text(w, "\r\n");
	}
	write_body(w, request->body);
}

char *explain_request_bytes(const struct explain_request *request, const struct identity_settings *identity,
			    size_t *length)
{
	struct writing counted = { 0 }, written = { 0 };
	char *bytes;

	if (!request->connection)
		write_request(&counted, request, identity);
	bytes = malloc(counted.length + 1);
	if (!bytes)
		return NULL;
	written.at = bytes;
	if (!request->connection)
		write_request(&written, request, identity);
	*written.at = 0;
	*length = written.length;
	return bytes;
}
