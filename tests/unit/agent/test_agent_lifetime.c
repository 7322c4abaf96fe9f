/* SPDX-License-Identifier: GPL-2.0 */
/* Servers and agents come and go: detaching, draining, taking over, what cannot be brought up, loopback's mode. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <sys/stat.h>

#include "agent/inside.h"
#include "agent/net.h"
#include "agent/servers.h"
#include "agent_fixture.h"
#include "base/cleanup.h"
#include "fake_datapath.h"
#include "metrics/metrics.h"
#include "sys/cgroup.h"

static void in_turn(struct fixture *f, void (*look)(struct net *net))
{
	agent_work_begin(&f->agent);
	look(f->agent.nets);
	agent_work_end(&f->agent);
}

/* What stands for the pins of the agent's own namespace. */
static void make_pins(const struct fixture *f)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/net-1", f->pin_dir);
	assert_int_equal(mkdir(path, 0700), 0);
	strcat(path, "/conns");
	file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
}

static void detach_at_once(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}");
	refuse(f, "detach", "{\"name\":\"b\"}", "\"b\"");
	refuse(f, "detach", "{}", "name one");
	refuse(f, "detach", "{\"name\":\"api\",\"all\":true}", "name one");
	succeed(f, "detach", "{\"name\":\"api\"}");
	assert_null(f->agent.state.servers[0]);
	assert_null(f->agent.nets);
	assert_false(fake_nets[1].pinned || fake_nets[1].open);
	succeed(f, "attach", ATTACH);
	assert_int_equal(f->agent.state.servers[0]->n_limits, 0);
}

/* A server with translated connections limits nothing more and stays until they have ended. */
static void detach_drains(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];
	CLEANUP_JSON json_t *result = NULL, *list = NULL;
	CLEANUP_FREE char *text = NULL;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}");
	dp->counters[0][WEIR_SPLICE_OPENED] = 5;
	dp->counters[0][WEIR_SPLICE_CLOSED] = 3;
	result = run(f, "detach", "{\"name\":\"api\"}");
	text = json_dumps(result, JSON_COMPACT);
	assert_string_equal(text, "{\"servers\":[{\"name\":\"api\",\"reset\":0,\"draining\":2}]}");
	assert_int_equal(dp->servers[0].flags, ACTIVE | WEIR_SERVER_DRAINING);
	list = run(f, "limit list", "{}");
	assert_int_equal(json_array_size(json_object_get(list, "limits")), 0);
	refuse(f, "attach", ATTACH, "draining");
	refuse(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"1\",\"burst\":1}}", "draining");
	refuse(f, "pause", "{\"name\":\"api\"}", "draining");

	/* It drains on under the next agent, which sets no limit again. */
	end_agent(f);
	memset(dp->limits, 0, sizeof(dp->limits));
	start_agent(f);
	assert_int_equal(dp->servers[0].flags, ACTIVE | WEIR_SERVER_DRAINING);
	assert_null(fake_limit(dp, 0, WEIR_BUILTIN_USER));
	servers_drain(&f->agent);
	assert_non_null(f->agent.state.servers[0]);
	dp->counters[0][WEIR_SPLICE_CLOSED] = 5;
	servers_drain(&f->agent);
	assert_null(f->agent.state.servers[0]);
	assert_false(dp->pinned);
	succeed(f, "attach", ATTACH);
}

static void detach_by_force(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *result = NULL;
	CLEANUP_FREE char *text = NULL;

	succeed(f, "attach", ATTACH);
	fake_nets[1].counters[0][WEIR_SPLICE_OPENED] = 2;
	succeed(f, "detach", "{\"name\":\"api\"}");
	assert_true(fake_nets[1].pinned);
	succeed(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:90\"]}}");
	result = run(f, "detach", "{\"all\":true,\"force\":true}");
	text = json_dumps(result, JSON_COMPACT);
	assert_string_equal(text, "{\"servers\":[{\"name\":\"api\",\"reset\":2,\"draining\":0},"
				  "{\"name\":\"b\",\"reset\":0,\"draining\":0}]}");
	assert_false(fake_nets[1].pinned);
}

static void detach_undone(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *before = NULL;

	succeed(f, "attach", ATTACH);
	before = saved_state(f);
	fake_fail("datapath_server_flags", 1);
	refuse(f, "detach", "{\"name\":\"api\"}", fake_failing);
	assert_saved(f, before);
	assert_int_equal(fake_nets[1].servers[0].flags, ACTIVE);
}

/* The next agent finds what was in force in its old slots and changes none of it. */
static void take_over(void **state)
{
	struct fixture *f = *state;
	struct datapath before;

	succeed(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}");
	succeed(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:2\"]}}");
	succeed(f, "detach", "{\"name\":\"a\"}");
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"0.25\",\"burst\":2,\"keys\":9}}");
	succeed(f, "limit set", "{\"limit\":{\"name\":\"user\",\"qps\":\"7\",\"burst\":1},\"subject\":\"alice\"}");
	succeed(f, "pause", "{}");
	before = fake_nets[1];
	end_agent(f);
	start_agent(f);
	assert_string_equal(f->agent.state.servers[1]->name, "b");
	assert_memory_equal(fake_nets[1].servers, before.servers, sizeof(before.servers));
	assert_memory_equal(fake_nets[1].limits, before.limits, sizeof(before.limits));
	assert_memory_equal(fake_nets[1].overrides, before.overrides, sizeof(before.overrides));
	assert_true(fake_nets[1].open);
}

/* A server that cannot be brought up is kept, told of, tried again, and leaves only by force. */
static void not_in_force(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *status = NULL, *metrics = NULL;
	CLEANUP_FREE char *text = NULL;
	json_t *server;

	succeed(f, "attach", ATTACH);
	succeed(f, "limit set", "{\"limit\":{\"name\":\"total\",\"qps\":\"1\",\"burst\":1}}");
	end_agent(f);
	fake_fail("datapath_open", 2);
	start_agent(f);
	status = run(f, "status", "{}");
	server = json_array_get(json_object_get(status, "servers"), 0);
	assert_string_equal(json_string_value(json_object_get(server, "mode")), "failed");
	assert_string_equal(json_string_value(json_object_get(server, "problem")), "datapath_open failed");
	metrics = run(f, "metrics", "{}");
	text = metrics_text(json_object_get(metrics, "metrics"));
	assert_non_null(strstr(text, "weir_server_mode{server=\"api\",mode=\"failed\"} 1\n"));
	/* 0 would look like a reset, and the next count like a flood. */
	assert_null(strstr(text, "weir_requests_total{server=\"api\""));
	refuse(f, "detach", "{\"name\":\"api\"}", "--force");
	succeed(f, "pause", "{}");
	reconcile(f); /* fails again */
	assert_false(f->agent.servers[0].in_force);
	reconcile(f);
	assert_true(f->agent.servers[0].in_force);
	assert_int_equal(fake_nets[1].servers[0].flags, ACTIVE | WEIR_SERVER_PAUSED);
	end_agent(f);
	fake_fail("datapath_open", 1);
	start_agent(f);
	make_pins(f);
	succeed(f, "detach", "{\"name\":\"api\",\"force\":true}");
	assert_null(f->agent.state.servers[0]); /* and its pins are gone: tear_down removes the directory */
}

/* Where connections that cannot be read cannot be held, the server is in force all the same, and it is said. */
static void hold_fails(void **state)
{
	struct fixture *f = *state;
	CLEANUP_JSON json_t *without = NULL, *with = NULL;
	json_t *hold;

	fake_fail("datapath_hold_sync", 1);
	succeed(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}");
	without = run(f, "status", "{}");
	hold = json_object_get(json_array_get(json_object_get(without, "servers"), 0), "hold");
	assert_true(json_is_false(json_object_get(hold, "on")));
	assert_string_equal(json_string_value(json_object_get(hold, "why")), "datapath_hold_sync failed");
	assert_true(f->agent.servers[0].in_force);
	free(f->agent.state.servers[0]->cgroup);
	f->agent.state.servers[0]->cgroup = strdup("/cgroup");
	in_turn(f, net_hold);
	with = run(f, "status", "{}");
	hold = json_object_get(json_array_get(json_object_get(with, "servers"), 0), "hold");
	assert_true(json_is_true(json_object_get(hold, "on")));
	assert_int_equal(fake_nets[1].n_cgroups, 1);
}

/* Where a server was attached without cgroup2, it is held as soon as there is one, and it is said while there is none. */
static void attached_without_cgroup2(void **state)
{
	struct fixture *f = *state;
	CLEANUP_FREE char *root = cgroup_root();

	succeed(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}");
	free(f->agent.state.servers[0]->cgroup);
	f->agent.state.servers[0]->cgroup = NULL;
	in_turn(f, net_hold);
	if (root)
		assert_string_equal(f->agent.nets->hold_err.text, "");
	else
		assert_non_null(strstr(f->agent.nets->hold_err.text, "cgroup2"));
	assert_int_equal(fake_nets[1].n_cgroups, root ? 1 : 0);
}

static void loopback(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];

	dp->tracked = -EIO; /* never known: the safe one */
	succeed(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}");
	assert_int_equal(dp->servers[0].flags, ACTIVE | WEIR_SERVER_CLOSING_LOOPBACK);
	dp->tracked = 1;
	in_turn(f, net_find_tracking);
	succeed(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:2\"],\"loopback\":\"translate\"}}");
	succeed(f, "attach", "{\"server\":{\"name\":\"c\",\"listen\":[\"*:3\"],\"loopback\":\"close\"}}");
	assert_int_equal(dp->servers[0].flags, ACTIVE | WEIR_SERVER_CLOSING_LOOPBACK);
	assert_int_equal(dp->servers[1].flags, ACTIVE);
	assert_int_equal(dp->servers[2].flags, ACTIVE | WEIR_SERVER_CLOSING_LOOPBACK);
	dp->tracked = 0;
	in_turn(f, net_find_tracking);
	assert_int_equal(dp->servers[0].flags, ACTIVE);
	assert_int_equal(dp->servers[1].flags, ACTIVE);
	assert_int_equal(dp->servers[2].flags, ACTIVE | WEIR_SERVER_CLOSING_LOOPBACK);
	dp->tracked = -EIO; /* not known: as before */
	in_turn(f, net_find_tracking);
	assert_int_equal(dp->servers[0].flags, ACTIVE);
}

static const char *hold_text(struct fixture *f, int server, const char *key)
{
	static char text[128];
	CLEANUP_JSON json_t *status = run(f, "status", "{}");
	json_t *hold = json_object_get(json_array_get(json_object_get(status, "servers"), server), "hold");

	snprintf(text, sizeof(text), "%s", json_string_value(json_object_get(hold, key)) ?: "");
	return text;
}

/* What cannot be read waits on a device as soon as one server of a namespace wants that, and as long as one does. */
static void pace(void **state)
{
	struct fixture *f = *state;
	struct datapath *dp = &fake_nets[1];

	dp->can_pace = true;
	succeed(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:1\"],\"hold\":\"drop\"}}");
	assert_false(dp->paced);
	assert_int_equal(dp->servers[0].flags, ACTIVE);
	assert_string_equal(hold_text(f, 0, "mode"), "drop");
	assert_string_equal(hold_text(f, 0, "no_pace"), "asked for");
	succeed(f, "attach", "{\"server\":{\"name\":\"b\",\"listen\":[\"*:2\"]}}");
	succeed(f, "attach", "{\"server\":{\"name\":\"c\",\"listen\":[\"*:3\"],\"hold\":\"pace\"}}");
	assert_true(dp->paced);
	assert_int_equal(dp->servers[0].flags, ACTIVE);
	assert_int_equal(dp->servers[1].flags, ACTIVE | WEIR_SERVER_PACED);
	assert_int_equal(dp->servers[2].flags, ACTIVE | WEIR_SERVER_PACED);
	assert_string_equal(hold_text(f, 0, "mode"), "drop");
	assert_string_equal(hold_text(f, 1, "mode"), "pace");
	assert_string_equal(hold_text(f, 1, "no_pace"), "");
	/* The device is gone and cannot be made again. */
	dp->can_pace = false;
	in_turn(f, net_pace);
	assert_int_equal(dp->servers[2].flags, ACTIVE);
	assert_string_equal(hold_text(f, 2, "mode"), "drop");
	assert_string_equal(hold_text(f, 2, "no_pace"), "no fq in this kernel");
	dp->can_pace = true;
	in_turn(f, net_pace);
	assert_int_equal(dp->servers[2].flags, ACTIVE | WEIR_SERVER_PACED);
	succeed(f, "detach", "{\"name\":\"b\"}");
	assert_true(dp->paced);
	succeed(f, "detach", "{\"name\":\"c\"}");
	assert_false(dp->paced);
}

static void cannot_pace(void **state)
{
	struct fixture *f = *state;

	refuse(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:1\"],\"hold\":\"pace\"}}",
	       "no fq in this kernel");
	assert_null(f->agent.state.servers[0]);
	succeed(f, "attach", "{\"server\":{\"name\":\"a\",\"listen\":[\"*:1\"]}}");
	assert_int_equal(fake_nets[1].servers[0].flags, ACTIVE);
	assert_string_equal(hold_text(f, 0, "mode"), "drop");
	assert_string_equal(hold_text(f, 0, "no_pace"), "no fq in this kernel");
}

/* What is kept of requests: looking through it would cost servers their caches, so not in each turn. */
static void inside_is_swept_now_and_then(void **state)
{
	struct fixture *f = *state;

	succeed(f, "attach", ATTACH);
	for (unsigned int turn = 1; turn <= 30; turn++) {
		inside_follow(&f->agent);
		assert_int_equal(fake_nets[1].inside_swept, turn / 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_agent(detach_at_once), with_agent(detach_drains), with_agent(detach_by_force),
		with_agent(detach_undone),  with_agent(take_over),     with_agent(not_in_force),
		with_agent(loopback),	    with_agent(hold_fails),    with_agent(attached_without_cgroup2),
		with_agent(pace),	    with_agent(cannot_pace),   with_agent(inside_is_swept_now_and_then),
	};

	return cmocka_run_group_tests_name("agent lifetime", tests, NULL, NULL);
}
