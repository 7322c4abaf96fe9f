/* SPDX-License-Identifier: GPL-2.0 */
/* Where nothing can be saved: what is turned off is off, for the next agent, too, and nothing else changes. */
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

static void save_again(struct fixture *f)
{
	agent_work_begin(&f->agent);
	agent_save_again(&f->agent);
	agent_work_end(&f->agent);
}

/* It is tried again, and then there is nothing to be noted. */
static void saved_later(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	lose_disk(f);
	assert_warned(f, "pause", "{}");
	save_again(f);
	assert_true(noted(f, PAUSED_NOTE));
	find_disk(f);
	save_again(f);
	assert_false(noted(f, PAUSED_NOTE));
	assert_string_equal(f->agent.unsaved.text, "");
	end_agent(f);
	start_agent(f);
	assert_true(f->agent.state.servers[0]->paused);
}

#define LIMIT(rest) "{\"limit\":{\"name\":" rest "}"
#define LIMITS(limits)                                                                                            \
	"{\"objects\":[{\"file\":\"/etc/p.yaml\",\"document\":{\"apiVersion\":\"weir/v1\",\"kind\":\"Throttle\"," \
	"\"metadata\":{\"name\":\"api\"},\"spec\":{\"limits\":[" limits "]}}}]}"
#define TOTAL "{\"name\":\"total\",\"qps\":1,\"burst\":1}"

/* A limit of each kind that there is something to be taken away from. */
static void set_limits(struct fixture *f)
{
	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", LIMIT("\"user\",\"qps\":1,\"burst\":2}"));
	succeed(f, "limit set", LIMIT("\"user\",\"qps\":1,\"burst\":3},\"subject\":\"ann\""));
	succeed(f, "limit set", LIMIT("\"user\",\"qps\":1,\"burst\":4},\"subject\":\"bob\""));
	succeed(f, "limit set", LIMIT("\"namespace\",\"qps\":1,\"burst\":5},\"subject\":\"one\""));
	succeed(f, "limit set",
		LIMIT("\"of-ops\",\"key\":\"user\",\"qps\":1,\"burst\":6,\"rules\":[{\"groups\":[\"ops\"]}]}"));
	succeed(f, "max-in-flight", "{\"read_only\":7,\"mutating\":8}");
}

static void assert_limits(const struct fixture *f)
{
	struct datapath *dp = &fake_nets[1];
	const struct server *server = f->agent.state.servers[0];
	const struct limit *own = server_limit(server, "of-ops"),
			   *reading = server_limit(server, "read-only-in-flight");

	assert_int_equal(server->n_limits, 5);
	assert_ptr_equal(own, &server->limits[2]);
	assert_int_equal(fake_limit(dp, 0, WEIR_BUILTIN_USER)->amount.burst, 2);
	assert_int_equal(fake_override(dp, 0, WEIR_BUILTIN_USER, WEIR_KEY_USER, "ann")->burst, 3);
	assert_int_equal(fake_override(dp, 0, WEIR_BUILTIN_USER, WEIR_KEY_USER, "bob")->burst, 4);
	assert_int_equal(fake_override(dp, 0, WEIR_BUILTIN_NAMESPACE, WEIR_KEY_NAMESPACE, "one")->burst, 5);
	assert_int_equal(fake_limit(dp, 0, limit_slot(own))->amount.burst, 6);
	assert_int_equal(fake_limit(dp, 0, limit_slot(reading))->amount.seats, 7);
	assert_true(dp->servers[0].has_rules);
	assert_int_equal(flags() & (WEIR_SERVER_DRY_RUN | WEIR_SERVER_PAUSED), 0);
}

/* Each of them changes something, and the kernel's function that is asked for it. */
static const struct {
	const char *command, *arguments, *asks;
} changes[] = {
	{ "limit delete", "{\"limit\":\"user\"}", "datapath_limit_set" },
	{ "limit delete", "{\"limit\":\"user\",\"subject\":\"ann\"}", "datapath_overrides_delete" },
	{ "limit delete", "{\"limit\":\"namespace\",\"subject\":\"one\"}", "datapath_limit_delete" },
	{ "limit delete", "{\"limit\":\"of-ops\"}", "datapath_limit_delete" },
	{ "limit set", LIMIT("\"user\",\"qps\":1,\"burst\":9}"), "datapath_limit_set" },
	{ "limit set", LIMIT("\"user\",\"qps\":1,\"burst\":9},\"subject\":\"bob\""), "datapath_override_set" },
	{ "limit set", LIMIT("\"user\",\"qps\":1,\"burst\":9},\"subject\":\"cat\""), "datapath_override_set" },
	{ "limit set", LIMIT("\"total\",\"qps\":1,\"burst\":9}"), "datapath_limit_set" },
	{ "max-in-flight", "{\"read_only\":0}", "datapath_limit_delete" },
	{ "dry-run", "{\"name\":\"api\",\"dry_run\":true}", "datapath_server_flags" },
	{ "apply", LIMITS(TOTAL), "datapath_limit_set" },
};
#define CHANGES (sizeof(changes) / sizeof(*changes))

static void not_changed(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;

	set_limits(f);
	before = saved_state(f);
	for (size_t i = 0; i < CHANGES; i++) {
		lose_disk(f);
		refuse(f, changes[i].command, changes[i].arguments, "cannot write");
		assert_null(strstr(f->err.text, "taken back"));
		assert_limits(f);
		find_disk(f);
		assert_saved(f, before);
	}
	end_agent(f);
	start_agent(f);
	assert_limits(f);
}

static struct fixture *losing;

static void lose_it(void)
{
	lose_disk(losing);
}

/* What the kernel refuses, after it was saved, is told to be in the file as long as it is. */
static void not_taken_back(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;

	set_limits(f);
	before = saved_state(f);
	for (size_t i = 0; i < CHANGES; i++) {
		losing = f;
		fake_failed = lose_it;
		fake_fail(changes[i].asks, 1);
		refuse(f, changes[i].command, changes[i].arguments,
		       "was taken back, but this could not be saved: cannot write");
		assert_non_null(strstr(f->err.text, changes[i].asks));
		fake_failed = NULL;
		reconcile(f);
		assert_limits(f);
		find_disk(f);
		save_again(f);
		assert_string_equal(f->agent.unsaved.text, "");
		assert_saved(f, before);
	}
}

static void resumed_not_taken_back(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	succeed(f, "pause", "{}");
	losing = f;
	fake_failed = lose_it;
	fake_fail("datapath_server_flags", 1);
	refuse(f, "resume", "{}", "could not be saved");
	fake_failed = NULL;
	assert_true(f->agent.state.servers[0]->paused);
	find_disk(f);
	save_again(f);
	end_agent(f);
	start_agent(f);
	assert_true(flags() & WEIR_SERVER_PAUSED);
}

/* What is off before something else fails is told, and saved. */
static void half_detached(void **state)
{
	static const struct {
		const char *arguments, *fails;
	} ways[] = {
		{ "{\"name\":\"api\",\"force\":true}", "datapath_reset_translated" },
		{ "{\"name\":\"api\"}", "datapath_counters" },
		{ "{\"name\":\"api\"}", "datapath_server_clear" },
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		CLEANUP_FREE char *saved = NULL;

		succeed(f, "attach", ATTACH);
		fake_fail(ways[i].fails, 1);
		refuse(f, "detach", ways[i].arguments, "server \"api\" is draining, and its limits are off, but: ");
		assert_non_null(strstr(f->err.text, ways[i].fails));
		assert_true(flags() & WEIR_SERVER_DRAINING);
		saved = saved_state(f);
		assert_non_null(strstr(saved, "\"draining\":true"));
		succeed(f, "detach", "{\"name\":\"api\",\"force\":true}");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(paused),	   with_agent(detached),       with_agent(saved_later),
		with_agent(not_changed),   with_agent(not_taken_back), with_agent(resumed_not_taken_back),
		with_agent(half_detached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
