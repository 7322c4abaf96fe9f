/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <event2/buffer.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/output.h"
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
	CLEANUP_JSON json_t *value = output_text_json(text);

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
static json_t *answer(struct control_client *client, json_t *request)
{
	const struct control *control = client->control;
	json_t *arguments = NULL, *result = NULL;
	struct error err = { 0 };
	const char *command;
	int ret;

	if (!request)
		return control_error_reply(CONTROL_NOT_JSON);
	if (read_request(request, &command, &arguments))
		return control_error_reply(CONTROL_NO_REQUEST);
	ret = control->handler(control->context, client, command, arguments, &result, &err);
	client->waiting = ret == CONTROL_LATER;
	return client->waiting ? NULL : reply_of(ret, result, &err);
}

static void write_line(struct text *line, json_t *value)
{
	if (value)
		text_add_value(line, value);
	text_add(line, "\n");
	line->failed |= !value;
	json_decref(value);
}

static void send_text(struct control_client *client, const struct text *line)
{
	static const char failed[] = "{\"error\":\"out of memory\"}\n";
	struct evbuffer *output = bufferevent_get_output(client->stream);

	if (line->failed || evbuffer_add(output, line->bytes, line->used))
		evbuffer_add(output, failed, strlen(failed));
}

static void send_line(struct control_client *client, json_t *value)
{
	CLEANUP_TEXT struct text line = { 0 };

	write_line(&line, value);
	send_text(client, &line);
}

/*
 * The client is read again when its reply is out (client_written), so replies never pile up. Its patience begins now, not
 * before the command, which may have taken longer than that.
 */
static void reply(struct control_client *client, const struct text *line)
{
	event_base_update_cache_time(bufferevent_get_base(client->stream));
	if (!client->ended)
		bufferevent_disable(client->stream, EV_READ);
	send_text(client, line);
	/* libevent does so by itself, unless it had no memory to be told of what is written. */
	bufferevent_enable(client->stream, EV_WRITE);
}

static void reply_with(struct control_client *client, json_t *value)
{
	CLEANUP_TEXT struct text line = { 0 };

	write_line(&line, value);
	reply(client, &line);
}

void control_reply(struct text *line, int ret, json_t *result, const struct error *err)
{
	write_line(line, reply_of(ret, result, err));
}

void control_answer(struct control_client *client, const struct text *line)
{
	client->waiting = false;
	reply(client, line);
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

/* --- requests */

struct request {
	struct control_client *client;
	struct evbuffer *line; /* NULL: it was read */
	json_t *json;	       /* what it says; NULL: it is not JSON */
	bool large;
};

static void request_read(void *arg)
{
	struct request *request = arg;
	const size_t length = evbuffer_get_length(request->line);
	const char *bytes = (const char *)evbuffer_pullup(request->line, -1);
	json_error_t why;

	if (bytes)
		request->json = json_loadb(bytes, length, JSON_REJECT_DUPLICATES, &why);
	evbuffer_free(request->line);
	request->line = NULL;
}

static void request_forget(void *arg)
{
	struct request *request = arg;

	json_decref(request->json);
	request->json = NULL;
}

static void request_end(void *arg)
{
	request_forget(arg);
	free(arg);
}

/* What is large is done by another thread, if there is one. */
static bool put_aside(struct request *request, void (*run)(void *arg), void (*done)(void *arg))
{
	const struct control_client *client = request->client;
	const struct control *control = client->control;

	return request->large && control->aside &&
	       !control->aside(control->context, run, done, request, client->access == ACCESS_READ);
}

/* While a client waits for its answer, nothing is read from it, and its silence does not count. */
static void request_handle(void *arg)
{
	struct request *request = arg;
	struct control_client *client = request->client;
	json_t *value;

	if (request->line)
		request_read(request);
	client->waiting = false;
	value = answer(client, request->json);
	if (client->waiting)
		bufferevent_disable(client->stream, EV_READ);
	else
		reply_with(client, value);
	if (!put_aside(request, request_forget, request_end))
		request_end(request);
}

/* Takes over the line. */
static void handle(struct control_client *client, struct evbuffer *line)
{
	struct request *request = calloc(1, sizeof(*request));

	if (!request) {
		evbuffer_free(line);
		reply_with(client, NULL);
		return;
	}
	*request = (struct request){
		.client = client,
		.line = line,
		.large = evbuffer_get_length(line) >= CONTROL_LARGE,
	};
	client->waiting = put_aside(request, request_read, request_handle);
	if (client->waiting)
		bufferevent_disable(client->stream, EV_READ);
	else
		request_handle(request);
}

static size_t line_max(const struct control_client *client)
{
	return client->access == ACCESS_READ ? CONTROL_READER_LINE_MAX : CONTROL_LINE_MAX;
}

/* The bytes of the next line; 0: not all of them are there yet. None is looked at each time that more come, however many they are. */
static size_t find_line(struct control_client *client, struct evbuffer *input)
{
	struct evbuffer_ptr from, end = { .pos = -1 };

	if (!evbuffer_ptr_set(input, &from, client->searched, EVBUFFER_PTR_SET))
		end = evbuffer_search_eol(input, &from, NULL, EVBUFFER_EOL_LF);
	client->searched = end.pos < 0 ? evbuffer_get_length(input) : 0;
	return end.pos + 1;
}

/* NULL without memory. */
static struct evbuffer *take_line(struct evbuffer *input, size_t length)
{
	struct evbuffer *line = evbuffer_new();

	if (line && evbuffer_remove_buffer(input, line, length) == (int)length)
		return line;
	if (line)
		evbuffer_free(line);
	return NULL;
}

static void client_read(struct bufferevent *stream, void *context)
{
	struct control_client *client = context;
	struct evbuffer *input = bufferevent_get_input(stream), *line;
	size_t length;
	bool too_long;

	/* A client that gets a stream may only end it. */
	if (client->ended)
		evbuffer_drain(input, evbuffer_get_length(input));
	if (client->ended || client->closing || client->waiting ||
	    evbuffer_get_length(bufferevent_get_output(stream)) > 0)
		return;
	length = find_line(client, input);
	if (!length && evbuffer_get_length(input) < line_max(client))
		return;
	too_long = !length || length > line_max(client);
	line = too_long ? NULL : take_line(input, length);
	if (line) {
		handle(client, line);
		return;
	}
	client->closing = true;
	reply_with(client, too_long ? control_error_reply("the request is too long") : NULL);
}

static void client_written(struct bufferevent *stream, void *context)
{
	struct control_client *client = context;

	if (client->closing) {
		control_client_free(client);
		return;
	}
	client->heard_ns = clock_ns(CLOCK_MONOTONIC);
	if (bufferevent_enable(stream, EV_READ))
		control_client_free(client);
	else
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

/* No watermark bounds its input: libevent sets none without memory, and crashes. client_read() does, at the latest one read later. */
static struct control_client *client_of(struct bufferevent *stream)
{
	struct control_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->stream = stream;
	client->heard_ns = clock_ns(CLOCK_MONOTONIC);
	bufferevent_setcb(stream, client_read, client_written, client_event, client);
	set_patience(client);
	if (!bufferevent_enable(stream, EV_READ | EV_WRITE))
		return client;
	free(client);
	return NULL;
}

struct control_client *control_client_new(struct control *control, evutil_socket_t fd, enum access access)
{
	struct bufferevent *stream = bufferevent_socket_new(control->base, fd, BEV_OPT_CLOSE_ON_FREE);
	struct control_client *client;

	if (!stream) {
		close(fd);
		return NULL;
	}
	client = client_of(stream);
	if (!client) {
		bufferevent_free(stream);
		return NULL;
	}
	client->control = control;
	client->access = access;
	LIST_INSERT_HEAD(&control->clients, client, entry);
	return client;
}
