/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "control/control.h"
#include "line_client.h"

void line_client_open(struct line_client *c, struct event_base *base, const char *state_dir)
{
	struct sockaddr_un address;

	signal(SIGPIPE, SIG_IGN); /* as in the agent */
	*c = (struct line_client){ .base = base, .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
	assert_int_equal(control_address(state_dir, &address, NULL), 0);
	assert_int_equal(connect(c->fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

void line_client_close(struct line_client *c)
{
	close(c->fd);
	free(c->input);
}

static bool read_some(struct line_client *c)
{
	char bytes[65536];
	ssize_t n = c->ended ? 0 : recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n == 0)
		c->ended = true;
	if (n <= 0)
		return false;
	c->input = realloc(c->input, c->length + n);
	memcpy(c->input + c->length, bytes, n);
	c->length += n;
	return true;
}

/* An event may make another one ready. */
void line_client_run(struct line_client *c)
{
	bool more;

	do {
		for (int i = 0; i < 10; i++)
			event_base_loop(c->base, EVLOOP_NONBLOCK);
		for (more = false; read_some(c);)
			more = true;
	} while (more);
}

void line_client_send(struct line_client *c, const char *text)
{
	assert_int_equal(send(c->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	line_client_run(c);
}

char *line_client_line(struct line_client *c)
{
	char *end = c->length ? memchr(c->input, '\n', c->length) : NULL, *line;

	if (!end)
		return NULL;
	line = strndup(c->input, end - c->input);
	c->length -= end + 1 - c->input;
	memmove(c->input, end + 1, c->length);
	return line;
}

void line_client_expect(struct line_client *c, const char *line)
{
	CLEANUP_FREE char *there = line_client_line(c);

	assert_non_null(there);
	assert_string_equal(there, line);
}

void line_client_expect_end(struct line_client *c)
{
	line_client_run(c);
	assert_int_equal(c->length, 0);
	assert_true(c->ended);
}

void line_client_expect_silence(struct line_client *c)
{
	line_client_run(c);
	assert_int_equal(c->length, 0);
	assert_false(c->ended);
}
