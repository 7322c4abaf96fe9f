/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cleanup.h"
#include "control.h"

struct control_client {
	struct control *control;
	struct bufferevent *stream;
	bool closing;		  /* what is in its output is the last it gets */
	void (*ended)(void *arg); /* of a stream; else NULL */
	void *ended_arg;
	LIST_ENTRY(control_client) entry;
};

struct control {
	struct event_base *base;
	struct evconnlistener *listener;
	struct sockaddr_un address;
	control_handler *handler;
	void *context;
	LIST_HEAD(client_list, control_client) clients;
	unsigned int n_clients;
};

int control_address(const char *state_dir, struct sockaddr_un *address, struct error *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	if (snprintf(a.sun_path, sizeof(a.sun_path), "%s/weir.sock", state_dir) >= (int)sizeof(a.sun_path))
		return error_set(err, -ENAMETOOLONG,
				 "state directory %s: its path is too long for a socket (at most %zu)", state_dir,
				 sizeof(a.sun_path) - sizeof("/weir.sock"));
	*address = a;
	return 0;
}

/* Who streams is told once. */
static void stream_ended(struct control_client *client)
{
	void (*ended)(void *arg) = client->ended;

	client->ended = NULL;
	if (ended)
		ended(client->ended_arg);
}

static void client_free(struct control_client *client)
{
	struct control *control = client->control;

	stream_ended(client);
	LIST_REMOVE(client, entry);
	bufferevent_free(client->stream);
	free(client);
	if (control->n_clients-- == CONTROL_CLIENTS_MAX)
		evconnlistener_enable(control->listener);
}

static void set_patience(struct control_client *client)
{
	const struct timeval timeout = { .tv_sec = CONTROL_TIMEOUT_S };

	bufferevent_set_timeouts(client->stream, &timeout, &timeout);
}

static json_t *error_reply(const char *text)
{
	CLEANUP_JSON json_t *value = json_string(text);

	return json_pack("{s:O}", "error", value ? value : json_null());
}

static json_t *answer(struct control_client *client, const char *line, size_t length)
{
	const struct control *control = client->control;
	CLEANUP_JSON json_t *request = NULL;
	json_t *arguments = NULL, *result = NULL;
	struct error err = { 0 };
	const char *command;
	json_error_t why;

	request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &why);
	if (!request)
		return error_reply("the request is not JSON");
	if (json_unpack_ex(request, &why, 0, "{s:s, s?o !}", "command", &command, "arguments", &arguments))
		return error_reply("a request has a command and its arguments");
	if (control->handler(control->context, client, command, arguments, &result, &err))
		return error_reply(err.text);
	return json_pack("{s:o}", "result", result);
}

static void send_line(struct control_client *client, json_t *value)
{
	CLEANUP_FREE char *text = json_dumps(value, JSON_COMPACT);

	json_decref(value);
	evbuffer_add_printf(bufferevent_get_output(client->stream), "%s\n",
			    text ? text : "{\"error\":\"out of memory\"}");
}

/*
 * The client is read again when its reply is out (client_written), so replies never pile up. Its patience begins now, not
 * before the command, which may have taken longer than that.
 */
static void reply(struct control_client *client, json_t *value)
{
	event_base_update_cache_time(bufferevent_get_base(client->stream));
	if (!client->ended)
		bufferevent_disable(client->stream, EV_READ);
	send_line(client, value);
}

void control_stream(struct control_client *client, void (*ended)(void *arg), void *arg)
{
	client->ended = ended;
	client->ended_arg = arg;
	bufferevent_set_timeouts(client->stream, NULL, NULL);
}

bool control_send(struct control_client *client, json_t *value)
{
	if (evbuffer_get_length(bufferevent_get_output(client->stream)) < CONTROL_QUEUE_MAX) {
		send_line(client, value);
		return true;
	}
	json_decref(value);
	return false;
}

void control_end(struct control_client *client, json_t *value)
{
	client->ended = NULL;
	client->closing = true;
	set_patience(client);
	send_line(client, value);
}

static void client_read(struct bufferevent *stream, void *context)
{
	struct control_client *client = context;
	struct evbuffer *input = bufferevent_get_input(stream);
	CLEANUP_FREE char *line = NULL;
	size_t length;

	/* Who is sent a stream has nothing more to say than its end. */
	if (client->ended)
		evbuffer_drain(input, evbuffer_get_length(input));
	if (client->ended || client->closing || evbuffer_get_length(bufferevent_get_output(stream)) > 0)
		return;
	line = evbuffer_readln(input, &length, EVBUFFER_EOL_LF);
	if (line) {
		reply(client, answer(client, line, length));
	} else if (evbuffer_get_length(input) >= CONTROL_LINE_MAX) {
		client->closing = true;
		reply(client, error_reply("the request is too long"));
	}
}

static void client_written(struct bufferevent *stream, void *context)
{
	struct control_client *client = context;

	if (client->closing) {
		client_free(client);
		return;
	}
	bufferevent_enable(stream, EV_READ);
	client_read(stream, client);
}

/* Gone, silent for too long, or not reading. Who followed a stream may only have closed its own side. */
static void client_event(struct bufferevent *stream, short what, void *context)
{
	struct control_client *client = context;

	if (what & BEV_EVENT_EOF)
		stream_ended(client);
	if (!(what & BEV_EVENT_EOF) || !client->closing || !evbuffer_get_length(bufferevent_get_output(stream)))
		client_free(client);
}

static bool may_talk(evutil_socket_t fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == 0 || peer.uid == geteuid());
}

static struct control_client *client_new(struct control *control, evutil_socket_t fd)
{
	struct control_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->stream = bufferevent_socket_new(control->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!client->stream) {
		free(client);
		return NULL;
	}
	client->control = control;
	bufferevent_setcb(client->stream, client_read, client_written, client_event, client);
	set_patience(client);
	bufferevent_setwatermark(client->stream, EV_READ, 0, CONTROL_LINE_MAX);
	bufferevent_enable(client->stream, EV_READ | EV_WRITE);
	LIST_INSERT_HEAD(&control->clients, client, entry);
	return client;
}

static void client_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address, int length,
			  void *context)
{
	struct control *control = context;

	(void)address;
	(void)length;
	if (!may_talk(fd) || !client_new(control, fd)) {
		close(fd);
		return;
	}
	if (++control->n_clients == CONTROL_CLIENTS_MAX)
		evconnlistener_disable(listener);
}

static int bind_socket(const struct sockaddr_un *address, struct error *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask;
	int ret;

	if (fd < 0)
		return error_set(err, -errno, "control socket: %s", strerror(errno));
	unlink(address->sun_path);
	mask = umask(0177);
	ret = bind(fd, (const struct sockaddr *)address, sizeof(*address));
	umask(mask);
	if (ret || listen(fd, SOMAXCONN)) {
		ret = error_set(err, -errno, "control socket %s: %s", address->sun_path, strerror(errno));
		close(fd);
		return ret;
	}
	return fd;
}

int control_open(struct control **out, struct event_base *base, const char *state_dir, control_handler *handler,
		 void *context, struct error *err)
{
	CLEANUP_FREE struct control *control = calloc(1, sizeof(*control));
	int fd, ret;

	if (!control)
		return error_set(err, -ENOMEM, "out of memory");
	ret = control_address(state_dir, &control->address, err);
	if (ret)
		return ret;
	fd = bind_socket(&control->address, err);
	if (fd < 0)
		return fd;
	control->base = base;
	control->handler = handler;
	control->context = context;
	LIST_INIT(&control->clients);
	control->listener = evconnlistener_new(base, client_accept, control,
					       LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!control->listener) {
		close(fd);
		return error_set(err, -ENOMEM, "out of memory");
	}
	*out = control;
	control = NULL;
	return 0;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	while (!LIST_EMPTY(&control->clients))
		client_free(LIST_FIRST(&control->clients));
	evconnlistener_free(control->listener);
	unlink(control->address.sun_path);
	free(control);
}
