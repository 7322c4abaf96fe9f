/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's socket, served in the same thread as its clients (line_client.h): what is to happen happens in between. */
#ifndef WEIR_TESTS_LINE_SCENE_H
#define WEIR_TESTS_LINE_SCENE_H

#include "control/control.h"
#include "line_client.h"

/* A command, and what line_scene_yes() answers. */
#define ASK "{\"command\":\"any\"}\n"
#define ANSWER "{\"result\":true}"

struct line_scene {
	char dir[32];
	struct sockaddr_un address;
	struct event_base *base;
	struct control *control;
	struct access_control access;
};

/* A handler that says true to everything. */
control_handler line_scene_yes;

void line_scene_open(struct line_scene *s, control_handler *handler, void *context);
/* Again, after control_close(). */
void line_scene_serve(struct line_scene *s, control_handler *handler, void *context);
/* The socket must be gone from its directory then. */
void line_scene_close(struct line_scene *s);

/* cmocka's setup and teardown of one that says true to everything, and a test with them. */
int line_scene_set_up(void **state);
int line_scene_tear_down(void **state);
#define answered(test) cmocka_unit_test_setup_teardown(test, line_scene_set_up, line_scene_tear_down)

/* A new client is answered. */
void line_scene_expect_service(const struct line_scene *s);

#endif
