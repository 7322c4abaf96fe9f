/* SPDX-License-Identifier: GPL-2.0 */
/* The agent's socket, while libevent gets no memory: a client is answered or let go, and never waits for good. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>
#include <unistd.h>

#include "line_scene.h"

#define CALLS 64 /* more than one client makes */

/* Which call from now on fails; 0: none. */
static unsigned int failing;

static bool fails(void)
{
	return failing && --failing == 0;
}

static void *allocate(size_t size)
{
	return fails() ? NULL : malloc(size);
}

static void *reallocate(void *old, size_t size)
{
	return fails() ? NULL : realloc(old, size);
}

static void answered_or_let_go(void **state)
{
	const struct line_scene *s = *state;

	for (unsigned int call = 1; call <= CALLS; call++) {
		struct line_client client = { 0 };
		char *line;

		line_client_open(&client, s->base, s->dir);
		failing = call;
		line_client_send(&client, ASK);
		failing = 0;
		line_client_run(&client); /* its end may be behind an error */
		line = line_client_line(&client);
		if (!line && !client.ended)
			fail_msg("without its call %u for memory the client waits for good", call);
		free(line);
		line_client_close(&client);
		line_scene_expect_service(s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		answered(answered_or_let_go),
	};

	event_set_mem_functions(allocate, reallocate, free);
	return cmocka_run_group_tests_name("control_memory", tests, NULL, NULL);
}
