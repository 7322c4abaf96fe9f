/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <event2/buffer.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "control/private.h"

void control_client_peer(const struct control_client *client, uid_t *uid, pid_t *pid)
{
	*uid = client->uid;
	*pid = client->pid;
}

enum access control_client_access(const struct control_client *client)
{
	return client ? client->access : ACCESS_CHANGE;
}

/* The owner of a stream is told once that it has ended. */
static void stream_ended(struct control_client *client)
{
	void (*ended)(void *arg) = client->ended;

	client->ended = NULL;
	if (ended)
		ended(client->ended_arg);
}

void control_client_free(struct control_client *client)
{
	struct control *control = client->control;

	stream_ended(client);
	LIST_REMOVE(client, entry);
	bufferevent_free(client->stream);
	control->n_clients--;
	control->n_guests -= !access_is_owner(client->uid);
	free(client);
	evconnlistener_enable(control->listener);
}

static void set_patience(struct control_client *client)
{
	const struct timeval timeout = { .tv_sec = CONTROL_TIMEOUT_S };

	bufferevent_set_timeouts(client->stream, &timeout, &timeout);
}

json_t *control_error_reply(const char *text)
{
	CLEANUP_JSON json_t *value = json_string(text);

	return json_pack("{s:O}", "error", value ? value : json_null());
}

static json_t *reply_of(int ret, json_t *result, const struct error *err)
{
	return ret ? control_error_reply(err->text) : json_pack("{s:o}", "result", result);
}

static int read_request(json_t *request, const char **command, json_t **arguments)
{
	json_t *document = NULL;
	json_error_t why;

	if (json_unpack_ex(request, &why, 0, "{s:s, s?o, s?o !}", "command", command, "arguments", arguments,
			   "document", &document))
		return -EINVAL;
	return document ? json_object_set(*arguments, "document", document) : 0;
}

/* NULL: later. */
static json_t *answer(struct control_client *client, const char *line, size_t length)
{
	const struct control *control = client->control;
	CLEANUP_JSON json_t *request = NULL;
	json_t *arguments = NULL, *result = NULL;
	struct error err = { 0 };
	const char *command;
	json_error_t why;
	int ret;

	request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &why);
	if (!request)
		return control_error_reply(CONTROL_NOT_JSON);
	if (read_request(request, &command, &arguments))
		return control_error_reply(CONTROL_NO_REQUEST);
	ret = control->handler(control->context, client, command, arguments, &result, &err);
	client->waiting = ret == CONTROL_LATER;
	return client->waiting ? NULL : reply_of(ret, result, &err);
}

static void send_line(struct control_client *client, json_t *value)
{
	static const char failed[] = "{\"error\":\"out of memory\"}\n";
	struct evbuffer *output = bufferevent_get_output(client->stream);
	CLEANUP_TEXT struct text line = { 0 };

	if (value)
		text_add_value(&line, value);
	text_add(&line, "\n");
	json_decref(value);
	if (!value || line.failed || evbuffer_add(output, line.bytes, line.used))
		evbuffer_add(output, failed, strlen(failed));
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

void control_answer(struct control_client *client, int ret, json_t *result, const struct error *err)
{
	client->waiting = false;
	reply(client, reply_of(ret, result, err));
}

void control_stream(struct control_client *client, void (*ended)(void *arg), void *arg)
{
	/* Not NULL: libevent goes by an event's earlier timeout where it is given none. */
	const struct timeval year = { .tv_sec = 365 * 24 * 3600 };

	client->ended = ended;
	client->ended_arg = arg;
	bufferevent_set_timeouts(client->stream, &year, &year);
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

/* While a client waits for its answer, nothing is read from it, and its silence does not count. */
static void handle(struct control_client *client, const char *line, size_t length)
{
	json_t *value = answer(client, line, length);

	if (client->waiting)
		bufferevent_disable(client->stream, EV_READ);
	else
		reply(client, value);
}

static size_t line_max(const struct control_client *client)
{
	return client->access == ACCESS_READ ? CONTROL_READER_LINE_MAX : CONTROL_LINE_MAX;
}

/* NULL: not all of it is there yet. No byte is looked at each time that more come, however many they are. The caller frees it. */
static char *next_line(struct control_client *client, struct evbuffer *input, size_t *length)
{
	struct evbuffer_ptr from;

	if (evbuffer_ptr_set(input, &from, client->searched, EVBUFFER_PTR_SET) ||
	    evbuffer_search_eol(input, &from, NULL, EVBUFFER_EOL_LF).pos < 0) {
		client->searched = evbuffer_get_length(input);
		return NULL;
	}
	client->searched = 0;
	return evbuffer_readln(input, length, EVBUFFER_EOL_LF);
}

static void client_read(struct bufferevent *stream, void *context)
{
	struct control_client *client = context;
	struct evbuffer *input = bufferevent_get_input(stream);
	CLEANUP_FREE char *line = NULL;
	size_t length;

	/* A client that gets a stream may only end it. */
	if (client->ended)
		evbuffer_drain(input, evbuffer_get_length(input));
	if (client->ended || client->closing || client->waiting ||
	    evbuffer_get_length(bufferevent_get_output(stream)) > 0)
		return;
	line = next_line(client, input, &length);
	if (line) {
		handle(client, line, length);
	} else if (evbuffer_get_length(input) >= line_max(client)) {
		client->closing = true;
		reply(client, control_error_reply("the request is too long"));
	}
}

static void client_written(struct bufferevent *stream, void *context)
{
	struct control_client *client = context;

	if (client->closing) {
		control_client_free(client);
		return;
	}
	client->heard_ns = clock_ns(CLOCK_MONOTONIC);
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
		control_client_free(client);
}

struct control_client *control_client_new(struct control *control, evutil_socket_t fd, enum access access)
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
	client->access = access;
	client->heard_ns = clock_ns(CLOCK_MONOTONIC);
	bufferevent_setcb(client->stream, client_read, client_written, client_event, client);
	set_patience(client);
	bufferevent_setwatermark(client->stream, EV_READ, 0, line_max(client));
	bufferevent_enable(client->stream, EV_READ | EV_WRITE);
	LIST_INSERT_HEAD(&control->clients, client, entry);
	return client;
}
