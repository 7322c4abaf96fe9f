/* SPDX-License-Identifier: GPL-2.0 */
/* Where nothing can be saved: what is turned off is off, for the next agent, too, and nothing comes into force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "agent/unsaved.h"
#include "agent_fixture.h"
#include "base/cleanup.h"
#include "fake_datapath.h"

#define PAUSED_NOTE "unsaved-0-paused"
#define ENDED_NOTE "unsaved-0-ended"

static char *away(const struct fixture *f)
{
	char *path = malloc(64);

	snprintf(path, 64, "%s-away", f->state_dir);
	return path;
}

static void lose_disk(struct fixture *f)
{
	CLEANUP_FREE char *path = away(f);

	assert_int_equal(rename(f->state_dir, path), 0);
}

static void find_disk(struct fixture *f)
{
	CLEANUP_FREE char *path = away(f);

	assert_int_equal(rename(path, f->state_dir), 0);
}

static bool noted(const struct fixture *f, const char *note)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", f->pin_dir, note);
	return !access(path, F_OK);
}

static void assert_warned(struct fixture *f, const char *command, const char *arguments)
{
	CLEANUP_JSON json_t *result = run(f, command, arguments);
	const char *warning = json_string_value(json_array_get(json_object_get(result, "warnings"), 0));

	assert_non_null(warning);
	assert_non_null(strstr(warning, "could not be saved"));
}

/* The next agent reads a file that knows nothing of it, and can write no other. */
static void next_agent(struct fixture *f)
{
	end_agent(f);
	find_disk(f);
	start_agent(f);
}

static __u32 flags(void)
{
	return fake_nets[1].servers[0].flags;
}

static void paused(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	lose_disk(f);
	assert_warned(f, "pause", "{}");
	assert_true(flags() & WEIR_SERVER_PAUSED);
	assert_true(noted(f, PAUSED_NOTE));
	refuse(f, "resume", "{}", "cannot write");
	assert_true(flags() & WEIR_SERVER_PAUSED);
	next_agent(f);
	assert_true(f->agent.state.servers[0]->paused);
	assert_true(flags() & WEIR_SERVER_PAUSED);
	assert_false(noted(f, PAUSED_NOTE));
	succeed(f, "resume", "{}");
	end_agent(f);
	start_agent(f);
	assert_false(flags() & WEIR_SERVER_PAUSED);
}

static void detached(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	lose_disk(f);
	assert_warned(f, "detach", "{\"name\":\"api\",\"force\":true}");
	assert_false(fake_nets[1].servers[0].set);
	assert_true(noted(f, ENDED_NOTE));
	refuse(f, "attach", ATTACH, "cannot write");
	assert_false(fake_nets[1].servers[0].set);
	next_agent(f);
	assert_null(f->agent.state.servers[0]);
	assert_false(fake_nets[1].servers[0].set);
	assert_false(noted(f, ENDED_NOTE));
}

/* It is tried again, and then there is nothing to be noted. */
static void saved_later(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	lose_disk(f);
	assert_warned(f, "pause", "{}");
	agent_save_again(&f->agent);
	assert_true(noted(f, PAUSED_NOTE));
	find_disk(f);
	agent_save_again(&f->agent);
	assert_false(noted(f, PAUSED_NOTE));
	assert_string_equal(f->agent.unsaved.text, "");
	end_agent(f);
	start_agent(f);
	assert_true(f->agent.state.servers[0]->paused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(paused),
		with_agent(detached),
		with_agent(saved_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
