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

#include "control/control.h"
#include "line_client.h"

#define ASK "{\"command\":\"any\"}\n"
#define ANSWER "{\"result\":true}"
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

struct fixture {
	char dir[32];
	struct event_base *base;
	struct control *control;
	struct access_control access;
};

static int handle(void *context, struct control_client *client, const char *command, json_t *arguments, json_t **result,
		  struct error *err)
{
	(void)context;
	(void)client;
	(void)command;
	(void)arguments;
	(void)err;
	*result = json_true();
	return 0;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->dir, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->base = event_base_new();
	assert_int_equal(control_open(&f->control, f->base, f->dir, &f->access, handle, NULL, NULL), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	control_close(f->control);
	event_base_free(f->base);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void answered_or_let_go(void **state)
{
	const struct fixture *f = *state;

	for (unsigned int call = 1; call <= CALLS; call++) {
		struct line_client client = { 0 };
		char *line;

		line_client_open(&client, f->base, f->dir);
		failing = call;
		line_client_send(&client, ASK);
		failing = 0;
		line_client_run(&client); /* its end may be behind an error */
		line = line_client_line(&client);
		if (!line && !client.ended)
			fail_msg("without its call %u for memory the client waits for good", call);
		free(line);
		line_client_close(&client);
		line_client_open(&client, f->base, f->dir);
		line_client_send(&client, ASK);
		line_client_expect(&client, ANSWER);
		line_client_close(&client);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(answered_or_let_go, set_up, tear_down),
	};

	event_set_mem_functions(allocate, reallocate, free);
	return cmocka_run_group_tests_name("control_memory", tests, NULL, NULL);
}
