/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <string.h>

#include "base/cleanup.h"
#include "metrics/http.h"
#include "model/parse.h"

#define TIMEOUT_S 10
#define HEAD_MAX 16384
#define BODY_MAX 4096
#define CONNECTIONS_MAX 256
#define AGAIN_S 1
#define CROWDED_S 1 /* the patience with each while others wait */

struct metrics_http {
	struct evhttp *server;
	struct evconnlistener *listener;
	struct event *again;
	char *text; /* until `asked` is run: for all who had asked when it was made */
	struct event *asked;
	struct bufferevent *streams[CONNECTIONS_MAX]; /* of connections, some of which have ended */
	size_t n_streams;
	metrics_http_read *read;
	metrics_http_ready *ready;
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

static void forget_text(evutil_socket_t fd, short what, void *context)
{
	struct metrics_http *http = context;

	(void)fd;
	(void)what;
	free(http->text);
	http->text = NULL;
}

/*
 * However many ask at once, commands do not wait until the counters were read for each. The event has its turn behind those that the
 * kernel had told of before, so for whoever gets the text it was made after he had asked.
 */
static const char *text_for_all(struct metrics_http *http)
{
	if (http->text)
		return http->text;
	http->text = http->read(http->context);
	event_active(http->asked, 0, 0);
	return http->text;
}

static void serve_metrics(struct evhttp_request *request, struct metrics_http *http)
{
	const char *text = text_for_all(http);

	if (text)
		answer(request, HTTP_OK, "OK", "text/plain; version=0.0.4; charset=utf-8", text);
	else
		answer_plain(request, HTTP_INTERNAL, "Internal Server Error", "the counters cannot be read\n");
}

static void serve_ready(struct evhttp_request *request, struct metrics_http *http)
{
	if (http->ready(http->context))
		answer_plain(request, HTTP_OK, "OK", "ok\n");
	else
		answer_plain(request, HTTP_SERVUNAVAIL, "Service Unavailable",
			     "starting: servers are not in force yet\n");
}

static void serve(struct evhttp_request *request, void *context)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	bool metrics = path && strcmp(path, "/metrics") == 0;
	bool ready = path && strcmp(path, "/readyz") == 0;
	bool health = path && (strcmp(path, "/healthz") == 0 || strcmp(path, "/livez") == 0);

	if (!metrics && !health && !ready) {
		answer_plain(request, HTTP_NOTFOUND, "Not Found", "there is /metrics, /livez, /readyz and /healthz\n");
	} else if (evhttp_request_get_command(request) != EVHTTP_REQ_GET) {
		evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET");
		answer_plain(request, HTTP_BADMETHOD, "Method Not Allowed", "only GET\n");
	} else if (health) {
		answer_plain(request, HTTP_OK, "OK", "ok\n");
	} else if (ready) {
		serve_ready(request, context);
	} else {
		serve_metrics(request, context);
	}
}

/* --- who gets to ask: the others wait in the socket's queue */

/* libevent does not tell when it is done with a connection's stream, but takes its callbacks away then. */
static bool is_done(struct bufferevent *stream)
{
	bufferevent_data_cb readable, writable;
	bufferevent_event_cb event;
	void *context;

	bufferevent_getcb(stream, &readable, &writable, &event, &context);
	return !readable && !writable && !event;
}

static void forget_done(struct metrics_http *http)
{
	for (size_t i = http->n_streams; i-- > 0;) {
		if (!is_done(http->streams[i]))
			continue;
		bufferevent_decref(http->streams[i]);
		http->streams[i] = http->streams[--http->n_streams];
	}
}

/* Who is silent, or does not read, is let go sooner, so that nobody keeps the others waiting for long. */
static void hurry(struct metrics_http *http)
{
	const struct timeval patience = { .tv_sec = CROWDED_S };

	for (size_t i = 0; i < http->n_streams; i++)
		bufferevent_set_timeouts(http->streams[i], &patience, &patience);
}

/*
 * NULL: libevent makes one itself, which is not counted. The stream closes its descriptor, with the events that it has for it:
 * if libevent did before, another connection could get the same number beside them.
 */
static struct bufferevent *stream_new(struct event_base *base, void *context)
{
	struct metrics_http *http = context;
	struct bufferevent *stream;

	if (http->n_streams >= CONNECTIONS_MAX)
		return NULL;
	stream = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (!stream)
		return NULL;
	if (http->n_streams + 1 == CONNECTIONS_MAX)
		forget_done(http);
	bufferevent_incref(stream);
	http->streams[http->n_streams++] = stream;
	if (http->n_streams == CONNECTIONS_MAX)
		evconnlistener_disable(http->listener);
	return stream;
}

static void accept_again(evutil_socket_t fd, short what, void *context)
{
	struct metrics_http *http = context;

	(void)fd;
	(void)what;
	forget_done(http);
	if (http->n_streams < CONNECTIONS_MAX)
		evconnlistener_enable(http->listener);
	else
		hurry(http);
}

/* The agent has no descriptor to spare, and would be told so again at once. (The context is libevent's own.) */
static void cannot_accept(struct evconnlistener *listener, void *context)
{
	(void)context;
	evconnlistener_disable(listener);
}

/* --- its life */

static int listen_on(struct metrics_http *http, const char *text, struct error *err)
{
	struct datapath_listen where;
	char address[PARSE_ADDRESS_TEXT] = "::"; /* takes IPv4 too */
	struct evhttp_bound_socket *bound;
	int ret;

	ret = parse_listen(text, &where, err);
	if (ret)
		return ret;
	if (!where.any)
		format_address(where.address, address);
	bound = evhttp_bind_socket_with_handle(http->server, address, where.port);
	if (!bound && where.any) /* a kernel without IPv6 */
		bound = evhttp_bind_socket_with_handle(http->server, "0.0.0.0", where.port);
	if (!bound)
		return error_set(err, -errno, "metrics on %s: %s: --metrics names another address, or off", text,
				 strerror(errno));
	http->listener = evhttp_bound_socket_get_listener(bound);
	evconnlistener_set_error_cb(http->listener, cannot_accept);
	event_add(http->again, &(struct timeval){ .tv_sec = AGAIN_S });
	return 0;
}

static void set_up(struct metrics_http *http)
{
	evhttp_set_allowed_methods(http->server, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST | EVHTTP_REQ_PUT |
							 EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
	evhttp_set_timeout(http->server, TIMEOUT_S);
	evhttp_set_max_headers_size(http->server, HEAD_MAX);
	evhttp_set_max_body_size(http->server, BODY_MAX);
	evhttp_set_gencb(http->server, serve, http);
	evhttp_set_bevcb(http->server, stream_new, http);
}

int metrics_http_open(struct metrics_http **out, struct event_base *base, const char *address, metrics_http_read *read,
		      metrics_http_ready *ready, void *context, struct error *err)
{
	struct metrics_http *http = calloc(1, sizeof(*http));
	int ret;

	if (!http)
		return error_set(err, -ENOMEM, "out of memory");
	*http = (struct metrics_http){ .server = evhttp_new(base), .read = read, .ready = ready, .context = context };
	http->again = event_new(base, -1, EV_PERSIST, accept_again, http);
	http->asked = event_new(base, -1, 0, forget_text, http);
	if (http->server)
		set_up(http);
	ret = http->server && http->again && http->asked ? listen_on(http, address, err) :
							   error_set(err, -ENOMEM, "out of memory");
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
	if (http->again)
		event_free(http->again);
	if (http->asked)
		event_free(http->asked);
	if (http->server)
		evhttp_free(http->server);
	for (size_t i = 0; i < http->n_streams; i++)
		bufferevent_decref(http->streams[i]);
	free(http->text);
	free(http);
}
