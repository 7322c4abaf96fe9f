/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's socket, served in a thread by a handler of a few commands, and clients of it. */
#ifndef WEIR_TESTS_CONTROL_SCENE_H
#define WEIR_TESTS_CONTROL_SCENE_H

#include <pthread.h>

#include "control/control.h"

/* Bytes of the text that "large" gives. */
#define SCENE_LARGE (CONTROL_LINE_MAX + 1UL)

struct control_scene {
	char dir[32];
	struct event_base *base;
	struct control *control;
	struct access_control access;
	pthread_t thread;
	int stop[2]; /* closing [1] ends the thread */
};

/* cmocka's setup and teardown, and a test with them. */
int scene_set_up(void **state);
int scene_tear_down(void **state);
#define served(test) cmocka_unit_test_setup_teardown(test, scene_set_up, scene_tear_down)

/* Begins anew, with these groups let in. */
void scene_serve(struct control_scene *f, const struct access_control *access);

/* Gives a command that does nothing: 0, or the errno it fails with. */
int scene_call(const struct control_scene *f);
/* A connection, whose answers are waited for half a minute. */
int scene_connect(const struct control_scene *f);
void scene_connect_by(const struct control_scene *f, int fd);
void scene_send(int fd, const char *text);
/* The next bytes are these. */
void scene_expect(int fd, const char *reply);
void scene_expect_end(int fd);

#endif
