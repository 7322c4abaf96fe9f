/* SPDX-License-Identifier: GPL-2.0 */
#include "stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define REQUEST_BYTES 1024

/* False: there is no room. */
__attribute__((format(printf, 2, 3))) static bool add(struct stream *s, const char *format, ...)
{
	size_t room = STREAM_BYTES - s->length;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf((char *)s->bytes + s->length, room, format, arguments);
	va_end(arguments);
	if (n < 0 || (size_t)n >= room)
		return false;
	s->length += n;
	return true;
}

static void add_get(struct stream *s, struct random *r, const char *user)
{
	static const char *const methods[] = { "GET", "GET", "GET", "HEAD", "DELETE" };

	add(s, "%s /%u HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\n\r\n", methods[random_below(r, 5)], s->requests,
	    user);
}

static void add_padded_get(struct stream *s, struct random *r, const char *user)
{
	char padding[512];
	size_t n = random_below(r, sizeof(padding));

	memset(padding, 'p', n);
	padding[n ? n - 1 : 0] = 0;
	add(s, "GET /%u HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\nX-Padding: %s\r\n\r\n", s->requests, user, padding);
}

/* The body looks like a request itself: whoever takes it for one has lost the place. */
static void add_post(struct stream *s, struct random *r, const char *user)
{
	char body[128];
	int n = snprintf(body, sizeof(body), "GET /body HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\n\r\n", user);

	n = random_between(r, 0, n);
	add(s, "POST /%u HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\nContent-Length: %d\r\n\r\n%.*s", s->requests, user,
	    n, n, body);
}

static void add_chunked(struct stream *s, struct random *r, const char *user)
{
	int n = random_between(r, 1, 40);

	add(s,
	    "POST /%u HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%.*s\r\n0\r\n\r\n",
	    s->requests, user, n, n, "0\r\n\r\nGET /body HTTP/1.1\r\nHost: x\r\n\r\n........");
}

static void add_request(struct stream *s, struct random *r, const char *user)
{
	switch (random_below(r, 8)) {
	case 0:
		add_padded_get(s, r, user);
		break;
	case 1:
		add_post(s, r, user);
		break;
	case 2:
		add_chunked(s, r, user);
		break;
	default:
		add_get(s, r, user);
	}
	s->end[s->requests++] = s->length;
}

void stream_requests(struct stream *stream, struct random *random, const char *user)
{
	int wanted = random_between(random, 4, STREAM_REQUESTS);

	stream->length = 0;
	stream->requests = 0;
	while (stream->requests < wanted && stream->length + REQUEST_BYTES < STREAM_BYTES)
		add_request(stream, random, user);
}

size_t stream_request_end(const struct stream *stream, size_t offset)
{
	for (int i = 0; i < stream->requests; i++) {
		if (stream->end[i] > offset)
			return stream->end[i];
	}
	return stream->length;
}

/* One request, the body of which would be everything else. */
static void long_body(struct stream *decoy, const char *user)
{
	add(decoy, "POST /decoy HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\nContent-Length: 999999\r\n\r\n", user);
}

static void long_field(struct stream *decoy, const char *user)
{
	add(decoy, "GET /decoy HTTP/1.1\r\nHost: x\r\nX-Remote-User: %s\r\nX-Padding: ", user);
}

static void filler(struct stream *decoy, size_t length)
{
	if (decoy->length < length)
		memset(decoy->bytes + decoy->length, 'z', length - decoy->length);
	decoy->length = length;
}

/* The real bytes, with some of them changed. */
static void altered(struct stream *decoy, const struct stream *real, struct random *random)
{
	memcpy(decoy->bytes, real->bytes, real->length);
	for (size_t i = random_below(random, 100); i < real->length; i += random_between(random, 1, 300))
		decoy->bytes[i] = "z\r\n 0"[random_below(random, 5)];
	decoy->length = real->length;
}

void stream_decoy(struct stream *decoy, const struct stream *real, struct random *random, const char *user)
{
	decoy->length = 0;
	decoy->requests = 0;
	switch (random_below(random, 5)) {
	case 0:
		long_body(decoy, user);
		break;
	case 1:
		long_field(decoy, user);
		break;
	case 2:
		while (decoy->requests < STREAM_REQUESTS && decoy->length + REQUEST_BYTES < real->length)
			add_request(decoy, random, user);
		break;
	case 3:
		altered(decoy, real, random);
		break;
	default:
		break;
	}
	filler(decoy, real->length);
}
