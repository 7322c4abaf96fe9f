/* SPDX-License-Identifier: GPL-2.0 */
#include "line_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

int line_scene_yes(void *context, struct control_client *client, const char *command, json_t *arguments,
		   json_t **result, struct error *err)
{
	(void)context;
	(void)client;
	(void)command;
	(void)arguments;
	(void)err;
	*result = json_true();
	return 0;
}

void line_scene_serve(struct line_scene *s, control_handler *handler, void *context)
{
	assert_int_equal(control_open(&s->control, s->base, s->dir, &s->access, handler, context, NULL), 0);
}

void line_scene_open(struct line_scene *s, control_handler *handler, void *context)
{
	strcpy(s->dir, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	assert_int_equal(control_address(s->dir, &s->address, NULL), 0);
	s->base = event_base_new();
	line_scene_serve(s, handler, context);
}

void line_scene_close(struct line_scene *s)
{
	control_close(s->control);
	event_base_free(s->base);
	assert_int_equal(rmdir(s->dir), 0);
}

int line_scene_set_up(void **state)
{
	struct line_scene *s = calloc(1, sizeof(*s));

	line_scene_open(s, line_scene_yes, NULL);
	*state = s;
	return 0;
}

int line_scene_tear_down(void **state)
{
	line_scene_close(*state);
	free(*state);
	return 0;
}

void line_scene_expect_service(const struct line_scene *s)
{
	struct line_client client = { 0 };

	line_client_open(&client, s->base, s->dir);
	line_client_send(&client, ASK);
	line_client_expect(&client, ANSWER);
	line_client_close(&client);
}
