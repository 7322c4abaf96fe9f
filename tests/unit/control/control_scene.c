/* SPDX-License-Identifier: GPL-2.0 */
#include "control_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json_text.h"

static struct control_client *waiting;

/*
 * "echo" gives back its arguments, "access" what the client may say, "fail" an error, "large" a long text; "later" nothing,
 * until another client says "now".
 */
static int handle(void *context, struct control_client *client, const char *command, json_t *arguments, json_t **result,
		  struct error *err)
{
	(void)context;
	if (strcmp(command, "later") == 0) {
		waiting = client;
		return CONTROL_LATER;
	}
	if (strcmp(command, "now") == 0) {
		CLEANUP_TEXT struct text late = { 0 };

		control_reply(&late, 0, json_string("late"), NULL);
		control_answer(waiting, &late);
		*result = json_null();
		return 0;
	}
	if (strcmp(command, "access") == 0) {
		*result = json_integer(control_client_access(client));
		return 0;
	}
	if (strcmp(command, "echo") == 0) {
		*result = arguments ? json_incref(arguments) : json_null();
		return 0;
	}
	if (strcmp(command, "large") == 0) {
		CLEANUP_FREE char *text = malloc(SCENE_LARGE + 1);

		memset(text, 'x', SCENE_LARGE);
		text[SCENE_LARGE] = '\0';
		*result = json_string(text);
		return 0;
	}
	return error_set(err, -EINVAL, "no \"%s\" here", command);
}

static void end_loop(evutil_socket_t fd, short what, void *base)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(base);
}

static void *serve(void *arg)
{
	struct control_scene *f = arg;
	struct event *stop = event_new(f->base, f->stop[0], EV_READ, end_loop, f->base);

	event_add(stop, NULL);
	event_base_dispatch(f->base);
	event_free(stop);
	return NULL;
}

static void begin(struct control_scene *f)
{
	assert_int_equal(pipe(f->stop), 0);
	f->base = event_base_new();
	assert_int_equal(control_open(&f->control, f->base, f->dir, &f->access, handle, NULL, NULL), 0);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
}

static void end(struct control_scene *f)
{
	close(f->stop[1]);
	pthread_join(f->thread, NULL);
	control_close(f->control);
	event_base_free(f->base);
	close(f->stop[0]);
}

void scene_serve(struct control_scene *f, const struct access_control *access)
{
	end(f);
	f->access = *access;
	begin(f);
}

int scene_set_up(void **state)
{
	struct control_scene *f = calloc(1, sizeof(*f));

	signal(SIGPIPE, SIG_IGN); /* as in the agent: clients leave before they are answered */
	strcpy(f->dir, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	begin(f);
	*state = f;
	return 0;
}

int scene_tear_down(void **state)
{
	struct control_scene *f = *state;

	end(f);
	assert_int_equal(rmdir(f->dir), 0); /* the socket is gone */
	free(f);
	return 0;
}

int scene_connect(const struct control_scene *f)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	scene_connect_by(f, fd);
	return fd;
}

void scene_connect_by(const struct control_scene *f, int fd)
{
	const struct timeval patience = { .tv_sec = 30 };
	struct sockaddr_un address;

	assert_int_equal(control_address(f->dir, &address, NULL), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
}

void scene_send(int fd, const char *text)
{
	size_t length = strlen(text);

	while (length > 0) {
		ssize_t n = send(fd, text, length, MSG_NOSIGNAL);

		assert_true(n > 0);
		text += n;
		length -= n;
	}
}

void scene_expect(int fd, const char *reply)
{
	char buffer[256];
	size_t got = 0, length = strlen(reply);

	assert_true(length < sizeof(buffer));
	while (got < length) {
		ssize_t n = recv(fd, buffer + got, length - got, 0);

		assert_true(n > 0);
		got += n;
	}
	assert_memory_equal(buffer, reply, length);
}

void scene_expect_end(int fd)
{
	char byte;

	assert_true(recv(fd, &byte, 1, 0) <= 0);
}

int scene_call(const struct control_scene *f)
{
	CLEANUP_JSON json_t *result = NULL;

	return -control_call(f->dir, "echo", NULL, &result, NULL, NULL);
}
