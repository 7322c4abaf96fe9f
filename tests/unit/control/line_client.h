/* SPDX-License-Identifier: GPL-2.0 */
/* A client of the agent's socket in the same thread as its event loop: what is to happen happens in between. */
#ifndef WEIR_TESTS_LINE_CLIENT_H
#define WEIR_TESTS_LINE_CLIENT_H

#include <event2/event.h>
#include <stdbool.h>

struct line_client {
	struct event_base *base;
	char *input; /* what was read and not taken */
	size_t length;
	int fd;
	bool ended; /* the other side has */
};

void line_client_open(struct line_client *c, struct event_base *base, const char *state_dir);
void line_client_close(struct line_client *c);

/* Runs the loop until nothing happens, and reads what came; `send` comes first. */
void line_client_run(struct line_client *c);
void line_client_send(struct line_client *c, const char *text);

/* The next line, without its end, which the caller frees; NULL when none is there. */
char *line_client_line(struct line_client *c);
/* The next line is this one. */
void line_client_expect(struct line_client *c, const char *line);
/* Nothing more is there; and the connection has ended, or has not. */
void line_client_expect_end(struct line_client *c);
void line_client_expect_silence(struct line_client *c);

#endif
