/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The agent's workers over the kernel side in memory. Built twice: as the other unit tests are, and with ThreadSanitizer.
 * What goes wrong here may also hang: the alarm ends that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/net.h"
#include "agent/reconcile.h"
#include "agent/sweep.h"
#include "agent_fixture.h"
#include "base/cleanup.h"
#include "daemon/request.h"
#include "fake_datapath.h"
#include "saved/saved.h"

#define PATIENCE_S 120
#define MS 1000

#define ATTACH_TWO "{\"server\":{\"name\":\"two\",\"listen\":[\"*:82\"],\"netns\":\"/netns/2\"}}"
#define ATTACH_THREE "{\"server\":{\"name\":\"three\",\"listen\":[\"*:83\"]}}"

static int set_up_servers(void **state)
{
	struct fixture *f;

	alarm(PATIENCE_S);
	set_up(state);
	f = *state;
	succeed(f, "attach", ATTACH);
	succeed(f, "attach", ATTACH_TWO);
	succeed(f, "attach", ATTACH_THREE);
	return 0;
}

static int tear_down_servers(void **state)
{
	struct fixture *f = *state;

	succeed(f, "detach", "{\"all\":true}");
	return tear_down(state);
}

/* An agent that knows of the servers and has none in force. */
static void begin_anew(struct fixture *f)
{
	end_agent(f);
	agent_init(&f->agent, &f->options);
	f->agent.base = event_base_new();
	assert_int_equal(state_load(&f->agent.state, f->state_dir, &f->err), 0);
}

static void start_workers(struct fixture *f)
{
	if (reconcile_start(&f->agent, &f->err))
		fail_msg("%s", f->err.text);
	assert_true(reconcile_wait(&f->agent));
}

static atomic_int inside, most_inside;

/* Lets no one out before two are in: who is alone waits for the alarm. */
static void wait_for_another(void)
{
	int n = ++inside;

	if (n > most_inside)
		most_inside = n;
	while (most_inside < 2)
		usleep(MS);
	inside--;
}

static void two_namespaces_at_once(void **state)
{
	struct fixture *f = *state;

	begin_anew(f);
	fake_opening = wait_for_another;
	start_workers(f);
	assert_int_equal(most_inside, 2);
	for (int slot = 0; slot < 3; slot++)
		assert_true(f->agent.servers[slot].in_force);
	/* Two of the servers share a namespace: that was opened once. */
	assert_int_equal(fake_nets[1].opened, 2);
	assert_int_equal(fake_nets[2].opened, 2);
	reconcile_stop(&f->agent);
}

static struct fixture *asked;
static atomic_bool has_asked;

static bool is_starting(const json_t *server)
{
	return !strcmp(json_string_value(json_object_get(server, "mode")), "starting");
}

/* As the event loop does, when a command comes while a worker has programs loaded. */
static void ask_meanwhile(void)
{
	CLEANUP_JSON json_t *status = NULL;
	struct error err;
	bool starting[3];

	if (atomic_exchange(&has_asked, true))
		return;
	assert_int_equal(agent_request(&asked->agent, NULL, "status", NULL, &status, &err), 0);
	for (int i = 0; i < 3; i++)
		starting[i] = is_starting(json_array_get(json_object_get(status, "servers"), i));
	/* What this worker opens; another's may be in force by now. */
	assert_true(starting[1] || (starting[0] && starting[2]));
}

static void commands_do_not_wait(void **state)
{
	struct fixture *f = *state;

	begin_anew(f);
	asked = f;
	fake_opening = ask_meanwhile;
	start_workers(f);
	assert_true(has_asked);
	reconcile_stop(&f->agent);
}

static void *ask_status(void *arg)
{
	CLEANUP_JSON json_t *status = NULL;
	struct fixture *f = arg;
	struct error err;

	assert_int_equal(agent_request(&f->agent, NULL, "status", NULL, &status, &err), 0);
	return NULL;
}

/* What only the locked may read, or a wait until it is as a test expects. */
static __u64 drift(struct fixture *f, int slot)
{
	__u64 n;

	agent_lock(&f->agent);
	n = f->agent.servers[slot].drift[DATAPATH_overrides];
	agent_unlock(&f->agent);
	return n;
}

static void all_is_looked_at(struct fixture *f)
{
	agent_lock(&f->agent);
	reconcile_all(&f->agent);
	agent_unlock(&f->agent);
}

static void drift_is_counted(void **state)
{
	struct fixture *f = *state;

	start_workers(f);
	agent_lock(&f->agent);
	fake_nets[2].drifted = true;
	agent_unlock(&f->agent);
	all_is_looked_at(f);
	while (drift(f, 1) != 1)
		usleep(MS);
	assert_int_equal(drift(f, 0) + drift(f, 2), 0);
	reconcile_stop(&f->agent);
}

static bool has_problem(struct fixture *f)
{
	bool any = false;

	agent_lock(&f->agent);
	for (int slot = 0; slot < 3; slot++)
		any |= f->agent.servers[slot].problem.text[0];
	agent_unlock(&f->agent);
	return any;
}

/* What fails is tried again, and told of meanwhile. */
static void failures_are_tried_again(void **state)
{
	struct fixture *f = *state;

	start_workers(f);
	agent_lock(&f->agent);
	fake_fail("datapath_shared_sync", 20);
	reconcile_all(&f->agent);
	agent_unlock(&f->agent);
	while (!has_problem(f))
		usleep(MS);
	while (has_problem(f))
		usleep(MS);
	reconcile_stop(&f->agent);
}

static atomic_int synced;

static void sync_slowly(void)
{
	usleep(20 * MS);
	synced++;
}

/* What is in the queue when the agent is told to end is done. */
static void the_end_waits(void **state)
{
	struct fixture *f = *state;

	start_workers(f);
	agent_lock(&f->agent);
	fake_syncing = sync_slowly;
	synced = 0;
	reconcile_all(&f->agent);
	agent_unlock(&f->agent);
	reconcile_stop(&f->agent);
	assert_int_equal(synced, 3);
}

/* Commands and workers at once: for ThreadSanitizer. */
static void commands_and_workers(void **state)
{
	struct fixture *f = *state;

	start_workers(f);
	for (int i = 0; i < 50; i++) {
		succeed(f, "limit set",
			"{\"server\":\"api\",\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1},\"subject\":\"a\"}");
		succeed(f, "limit delete", "{\"server\":\"api\",\"limit\":\"user\",\"subject\":\"a\"}");
		all_is_looked_at(f);
		json_decref(run(f, "status", "{}"));
		json_decref(run(f, "metrics", "{}"));
	}
	reconcile_stop(&f->agent);
	assert_int_equal(f->agent.state.servers[0]->n_limits, 0);
}

static void look_at_all_meanwhile(void)
{
	if (atomic_exchange(&has_asked, true))
		return;
	all_is_looked_at(asked);
	usleep(100 * MS); /* until a worker has come to the new server, where it is not kept from it */
}

/* The server that a worker has come to is taken back: it must not go on with it. */
static void attach_is_taken_back(void **state)
{
	struct fixture *f = *state;

	start_workers(f);
	asked = f;
	has_asked = false;
	fake_opening = look_at_all_meanwhile;
	refuse(f, "attach",
	       "{\"server\":{\"name\":\"four\",\"listen\":[\"*:84\"],\"netns\":\"/netns/3\",\"hold\":\"pace\"}}",
	       "no fq in this kernel");
	assert_true(has_asked);
	reconcile_stop(&f->agent);
	assert_int_equal(fake_nets[3].opened, 0); /* since it was removed */
	assert_false(fake_nets[3].open);
}

static atomic_bool is_open;

static void open_slowly(void)
{
	is_open = true;
	usleep(2 * MS);
}

static void *start_agent_workers(void *f)
{
	start_workers(f);
	return NULL;
}

/* Two servers of a namespace that is being opened: one worker opens it, another one waits, and a command ends both. */
static void detach_while_opening(void **state)
{
	struct fixture *f = *state;
	pthread_t starter;

	for (int i = 0; i < 30; i++) {
		begin_anew(f);
		is_open = false;
		fake_opening = open_slowly;
		assert_int_equal(pthread_create(&starter, NULL, start_agent_workers, f), 0);
		while (!is_open)
			usleep(MS / 10);
		succeed(f, "detach", "{\"all\":true,\"force\":true}");
		pthread_join(starter, NULL);
		reconcile_stop(&f->agent);
		assert_null(f->agent.nets);
		succeed(f, "attach", ATTACH);
		succeed(f, "attach", ATTACH_THREE);
	}
}

/* As the event loop does, which must not wait for a lock. */
static void ask_from_another_thread(void)
{
	pthread_t loop;

	assert_int_equal(pthread_create(&loop, NULL, ask_status, asked), 0);
	pthread_join(loop, NULL);
	has_asked = true;
}

static void sweeps_are_not_waited_for(void **state)
{
	struct fixture *f = *state;

	asked = f;
	has_asked = false;
	fake_sweeping = ask_from_another_thread;
	nets_look_after(&f->agent);
	assert_true(has_asked);
}

static atomic_bool swept_once;

static void sweep_until_stopped(void)
{
	atomic_store(&swept_once, true);
	while (!atomic_load(&fake_sweep_stopped))
		usleep(MS / 10);
}

/* A table is looked through while commands change what they like; who ends the namespace has that stopped, or would wait for ever. */
static void commands_do_not_wait_for_sweeps(void **state)
{
	struct fixture *f = *state;

	fake_sweeping = sweep_until_stopped;
	atomic_store(&swept_once, false);
	atomic_store(&fake_sweep_stopped, false);
	assert_int_equal(sweeper_start(&f->agent, NULL), 0);
	nets_look_after(&f->agent);
	while (!atomic_load(&swept_once))
		usleep(MS / 10);
	succeed(f, "limit set", "{\"server\":\"api\",\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}");
	assert_false(atomic_load(&fake_sweep_stopped));
	succeed(f, "detach", "{\"all\":true,\"force\":true}");
	assert_null(f->agent.nets);
	sweeper_stop(&f->agent);
}

static void explanations_are_not_waited_for(void **state)
{
	struct fixture *f = *state;

	asked = f;
	has_asked = false;
	fake_explaining = ask_from_another_thread;
	json_decref(run(f, "explain", "{\"server\":\"api\",\"request\":{\"method\":\"GET\",\"path\":\"/\"}}"));
	assert_true(has_asked);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_servers, tear_down_servers)
	const struct CMUnitTest tests[] = {
		TEST(two_namespaces_at_once),
		TEST(commands_do_not_wait),
		TEST(drift_is_counted),
		TEST(failures_are_tried_again),
		TEST(the_end_waits),
		TEST(commands_and_workers),
		TEST(attach_is_taken_back),
		TEST(detach_while_opening),
		TEST(sweeps_are_not_waited_for),
		TEST(commands_do_not_wait_for_sweeps),
		TEST(explanations_are_not_waited_for),
	};

	return cmocka_run_group_tests_name("agent workers", tests, NULL, NULL);
}
