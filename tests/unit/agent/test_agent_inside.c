/* SPDX-License-Identifier: GPL-2.0 */
/* Which lane `auto` takes, whatever can be done in the processes that listen: nothing passes that TLS was held for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/inside_private.h"
#include "agent_fixture.h"
#include "base/cleanup.h"
#include "fake_datapath.h"

#define LIMIT "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}"

static struct inside_server *const made = &(struct inside_server){ 0 };

/* A server with one process: of an API server, or of another one, that can be made to refuse or not. */
static struct inside_server *serve(struct fixture *f, bool api, bool answers)
{
	static struct inside_served served[2];

	memset(served, 0, sizeof(served));
	*made = (struct inside_server){ .n = 1, .served = served };
	served->answers = answers;
	served->binary.layout.user_itab = api;
	snprintf(served->no_answer.text, sizeof(served->no_answer.text), "the kernel is old");
	succeed(f, "attach", ATTACH);
	assert_int_equal(f->agent.state.servers[0]->inside, INSIDE_AUTO);
	f->agent.servers[0].inside = made;
	return made;
}

static int end(void **state)
{
	struct fixture *f = *state;

	f->agent.servers[0].inside = NULL;
	return tear_down(state);
}

/* What the kernel has of it once it was told. */
static void choose(struct fixture *f, enum inside_mode lane, bool held)
{
	inside_choose(&f->agent, 0);
	assert_int_equal(made->lane, lane);
	made->in_force = true;
	assert_int_equal(!inside_decides(&f->agent, f->agent.state.servers[0]), held);
	inside_choose(&f->agent, 0);
	assert_int_equal(made->lane, lane);
}

static void api_servers(void **state)
{
	serve(*state, true, true);
	choose(*state, INSIDE_ANSWER, false);
	succeed(*state, "limit set", LIMIT);
	choose(*state, INSIDE_ANSWER, false);
	snprintf(made->blind.text, sizeof(made->blind.text), "it cannot be read");
	choose(*state, INSIDE_OFF, true);
	assert_non_null(strstr(made->unchosen.text, "it cannot be read. So TLS is held"));
}

static void until_a_limit_is_enforced(void **state)
{
	serve(*state, true, false);
	choose(*state, INSIDE_SEE, false);
	succeed(*state, "limit set", LIMIT);
	assert_false(inside_decides(&((struct fixture *)*state)->agent,
				    ((struct fixture *)*state)->agent.state.servers[0])); /* at once */
	choose(*state, INSIDE_OFF, true);
	assert_non_null(strstr(made->unchosen.text, "the kernel is old. So TLS is held"));
	succeed(*state, "pause", "{}");
	choose(*state, INSIDE_OFF, true);
	succeed(*state, "resume", "{}");
	succeed(*state, "dry-run", "{\"name\":\"api\",\"dry_run\":true}");
	choose(*state, INSIDE_SEE, false);
	succeed(*state, "dry-run", "{\"name\":\"api\",\"dry_run\":false}");
	choose(*state, INSIDE_OFF, true);
	succeed(*state, "limit set", "{\"limit\":{\"name\":\"user\",\"mode\":\"dry-run\"}}");
	choose(*state, INSIDE_SEE, false);
	succeed(*state, "limit set", "{\"limit\":{\"name\":\"many\",\"key\":\"source\",\"open\":1}}");
	choose(*state, INSIDE_SEE, false);
}

/* Another server is not looked into before something has come that packets do not tell of; TLS is held until that was seen in it. */
static void other_servers(void **state)
{
	__u64 *counters = fake_nets[1].counters[0];

	serve(*state, false, true);
	choose(*state, INSIDE_OFF, true);
	counters[WEIR_RECORDS_PASSED] = 9; /* of connections that are older than the attach: they may be HTTP/1 */
	choose(*state, INSIDE_OFF, true);
	counters[WEIR_RECORDS_PASSED] = 0;
	counters[WEIR_TLS] = 1; /* a handshake, and nothing else */
	choose(*state, INSIDE_OFF, true);
	counters[WEIR_RECORDS_HELD] = 1;
	choose(*state, INSIDE_ANSWER, true);
	counters[WEIR_INSIDE_ON_WIRE] = 1; /* something else is asked for without TLS */
	choose(*state, INSIDE_ANSWER, true);
	counters[WEIR_INSIDE_SEEN] = 1;
	choose(*state, INSIDE_ANSWER, false);
}

static void several_processes(void **state)
{
	serve(*state, true, true);
	made->n = 2;
	made->served[1].process.id = 17;
	snprintf(made->served[1].no_answer.text, sizeof(made->served[1].no_answer.text), "it is otherwise");
	choose(*state, INSIDE_SEE, false);
	assert_string_equal(made->unchosen.text, "it is otherwise");
	snprintf(made->served[1].why.text, sizeof(made->served[1].why.text), "not a program that Go has made");
	choose(*state, INSIDE_OFF, true);
	assert_non_null(strstr(made->unchosen.text, "process 17"));
}

/* Who listens could not be found out: those that are known may be some of them. */
static void unknown_processes(void **state)
{
	serve(*state, true, true);
	choose(*state, INSIDE_ANSWER, false);
	snprintf(made->why.text, sizeof(made->why.text), "more than 64 sockets listen there");
	choose(*state, INSIDE_ANSWER, true);
	made->why.text[0] = '\0';
	choose(*state, INSIDE_ANSWER, false);
}

/* What is seen at returns costs each request much. */
static void dear_ones(void **state)
{
	serve(*state, true, false);
	made->served[0].binary.see.n_probes = 1;
	made->served[0].binary.see.probes[0].point = WEIR_INSIDE_REQUEST;
	choose(*state, INSIDE_OFF, true);
	assert_non_null(strstr(made->unchosen.text, "--inside see does it"));
}

/* What was chosen is in force when the kernel has it, which may take some seconds: until then `off` is not said with an old reason. */
static void chosen_and_not_in_force(void **state)
{
	struct fixture *f = *state;

	serve(f, true, false);
	inside_choose(&f->agent, 0);
	assert_int_equal(made->lane, INSIDE_SEE);
	for (int in_force = 0; in_force < 2; in_force++) {
		CLEANUP_JSON json_t *status = NULL;

		made->in_force = in_force;
		fake_inside_allowed = true;
		status = inside_status(&f->agent, 0);
		fake_inside_allowed = false;
		assert_string_equal(json_string_value(json_object_get(status, "lane")), in_force ? "see" : "off");
		assert_string_equal(json_string_value(json_object_get(status, "why")),
				    in_force ? "the kernel is old" : "its processes are about to be looked into");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define test(name) cmocka_unit_test_setup_teardown(name, set_up, end)
		test(api_servers),
		test(until_a_limit_is_enforced),
		test(other_servers),
		test(several_processes),
		test(unknown_processes),
		test(dear_ones),
		test(chosen_and_not_in_force),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
