/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <string.h>

#include "cleanup.h"
#include "metrics_http.h"
#include "parse.h"

#define TIMEOUT_S 10
#define HEAD_MAX 16384
#define BODY_MAX 4096

struct metrics_http {
	struct evhttp *server;
	metrics_http_read *read;
	void *context;
};

static void answer(struct evhttp_request *request, int code, const char *reason, const char *type, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
	if (body)
		evbuffer_add(body, text, strlen(text));
	evhttp_send_reply(request, code, reason, body);
	if (body)
		evbuffer_free(body);
}

static void answer_plain(struct evhttp_request *request, int code, const char *reason, const char *text)
{
	answer(request, code, reason, "text/plain; charset=utf-8", text);
}

static void serve_metrics(struct evhttp_request *request, struct metrics_http *http)
{
	CLEANUP_FREE char *text = http->read(http->context);

	if (text)
		answer(request, HTTP_OK, "OK", "text/plain; version=0.0.4; charset=utf-8", text);
	else
		answer_plain(request, HTTP_INTERNAL, "Internal Server Error", "the counters cannot be read\n");
}

static void serve(struct evhttp_request *request, void *context)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	bool metrics = path && strcmp(path, "/metrics") == 0;
	bool health = path && strcmp(path, "/healthz") == 0;

	if (!metrics && !health) {
		answer_plain(request, HTTP_NOTFOUND, "Not Found", "there is /metrics and /healthz\n");
	} else if (evhttp_request_get_command(request) != EVHTTP_REQ_GET) {
		evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET");
		answer_plain(request, HTTP_BADMETHOD, "Method Not Allowed", "only GET\n");
	} else if (health) {
		answer_plain(request, HTTP_OK, "OK", "ok\n");
	} else {
		serve_metrics(request, context);
	}
}

static int listen_on(struct evhttp *server, const char *text, struct error *err)
{
	struct datapath_listen where;
	char address[PARSE_ADDRESS_TEXT] = "::"; /* takes IPv4 too */
	int ret;

	ret = parse_listen(text, &where, err);
	if (ret)
		return ret;
	if (!where.any)
		format_address(where.address, address);
	ret = evhttp_bind_socket(server, address, where.port);
	if (ret && where.any)
		ret = evhttp_bind_socket(server, "0.0.0.0", where.port); /* a kernel without IPv6 */
	return ret ? error_set(err, -errno, "metrics on %s: %s", text, strerror(errno)) : 0;
}

static void set_up(struct metrics_http *http)
{
	evhttp_set_allowed_methods(http->server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
							 EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
	evhttp_set_timeout(http->server, TIMEOUT_S);
	evhttp_set_max_headers_size(http->server, HEAD_MAX);
	evhttp_set_max_body_size(http->server, BODY_MAX);
	evhttp_set_gencb(http->server, serve, http);
}

int metrics_http_open(struct metrics_http **out, struct event_base *base, const char *address, metrics_http_read *read,
		      void *context, struct error *err)
{
	struct metrics_http *http = calloc(1, sizeof(*http));
	int ret;

	if (!http)
		return error_set(err, -ENOMEM, "out of memory");
	*http = (struct metrics_http){ .server = evhttp_new(base), .read = read, .context = context };
	if (http->server)
		set_up(http);
	ret = http->server ? listen_on(http->server, address, err) : error_set(err, -ENOMEM, "out of memory");
	if (ret)
		metrics_http_close(http);
	else
		*out = http;
	return ret;
}

void metrics_http_close(struct metrics_http *http)
{
	if (!http)
		return;
	if (http->server)
		evhttp_free(http->server);
	free(http);
}
