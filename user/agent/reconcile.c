/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control loop. Keys ("server/NAME") say what is to be looked at, never what has changed: a worker compares all that is
 * in force of the server with all that was asked for, and writes what differs. Keys come from the start, from commands that
 * failed, and all of them at an interval.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "weir/base/duration.h"

#include "agent/net.h"
#include "agent/reconcile.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "queue/retries.h"
#include "queue/workqueue.h"
#include "sys/thread.h"

#define WORKERS 4
#define TRIES 15
#define DRAIN_S 10
#define JOIN_PAUSE_US 5000
#define SERVER_KEY "server/"
#define KEY_SIZE (sizeof(SERVER_KEY) + PARSE_NAME_SIZE)

struct reconcile {
	struct agent *agent;
	struct workqueue *queue;
	struct retries *retries;
	pthread_t workers[WORKERS];
	size_t n_workers;
	atomic_bool late; /* the end has taken too long: what is left is left */
	__u64 given_up;
};

/*
 * client-go's own limiters, DefaultControllerRateLimiter(), with one difference: no server waits for longer than 10 s, so that
 * whoever has removed the cause need not wonder whether that was it. Fifteen tries take 50 s.
 */
static struct weir_backoff policy(void)
{
	return (struct weir_backoff){
		.parts = WEIR_BACKOFF_BUCKET | WEIR_BACKOFF_EXPONENTIAL | WEIR_BACKOFF_MAX_WAIT,
		.base_ns = 5 * WEIR_NS_PER_MS,
		.max_ns = 10 * WEIR_NS_PER_S,
		.max_wait_ns = 10 * WEIR_NS_PER_S,
		.bucket = weir_rate_always(10 * WEIR_QPS, 100),
	};
}

static void server_key(const char *name, char key[static KEY_SIZE])
{
	snprintf(key, KEY_SIZE, SERVER_KEY "%s", name);
}

/* --- a server */

static int bring_in(struct agent *agent, int slot, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct error before = agent->servers[slot].problem;
	int ret = server_bring_up(agent, slot, err);

	if (!ret) {
		log_info("server \"%s\" is in force", server->name);
		net_follow(server_net(agent, server));
		net_hold(server_net(agent, server));
	} else if (strcmp(err->text, before.text) != 0) {
		log_error("server \"%s\" is not in force: %s", server->name, err->text);
	}
	return ret;
}

/* The problem is kept for `weir status`, and logged when it is a new one. */
static void note_problem(struct agent *agent, int slot, const char *what, const struct error *why)
{
	if (why->text[0] && strcmp(why->text, agent->servers[slot].problem.text) != 0)
		log_error("server \"%s\"%s: %s", agent->state.servers[slot]->name, what, why->text);
	agent->servers[slot].problem = *why;
}

static int repair(struct agent *agent, int slot, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct net *net = server_net(agent, server);
	struct datapath_written before = *datapath_written(net->dp);
	struct error why = { 0 };
	int ret = server_sync(net, slot, &why);

	net_follow(net);
	net_hold(net);
	drift_found(agent, net, slot, &before);
	if (ret) {
		note_problem(agent, slot, ": the kernel cannot be repaired", &why);
		return error_set(err, ret, "%s", why.text);
	}
	why = (struct error){ 0 };
	server_check_netns(agent, slot, &why); /* nothing that could be tried again */
	note_problem(agent, slot, "", &why);
	return 0;
}

int server_reconcile(struct agent *agent, int slot, struct error *err)
{
	int ret = agent->servers[slot].in_force ? repair(agent, slot, err) : bring_in(agent, slot, err);

	agent->servers[slot].tried = true;
	return ret;
}

/* --- workers */

/* An agent that ends has no more programs loaded: what earlier ones have pinned stays in force. */
static int reconcile(struct agent *agent, const char *key, struct error *err)
{
	int slot, ret = 0;

	agent_repair_begin(agent);
	slot = state_find(&agent->state, key + strlen(SERVER_KEY));
	if (slot >= 0 && (agent->servers[slot].in_force || !agent->ending))
		ret = server_reconcile(agent, slot, err);
	agent_repair_end(agent);
	return ret;
}

/* Each resync is a try for one that was given up: it is told once. */
static void finish_key(struct reconcile *r, const char *key, int ret, const struct error *why)
{
	int outcome;

	if (!ret) {
		retries_succeeded(r->retries, key);
		return;
	}
	outcome = retries_failed(r->retries, key, why);
	if (outcome < 0 || outcome == RETRIES_AGAIN)
		return;
	agent_lock(r->agent);
	r->given_up++;
	agent_unlock(r->agent);
	if (outcome == RETRIES_GIVEN_UP)
		log_error("%s is given up until the next resync after %d tries: %s", key, TRIES, why->text);
}

static void *work(void *context)
{
	struct reconcile *r = context;
	const char *key;

	while ((key = workqueue_get(r->queue))) {
		struct error why;

		if (!r->late)
			finish_key(r, key, reconcile(r->agent, key, &why), &why);
		workqueue_done(r->queue, key);
	}
	return NULL;
}

static int start_workers(struct reconcile *r)
{
	int ret = 0;

	while (!ret && r->n_workers < WORKERS) {
		ret = thread_start(&r->workers[r->n_workers], work, r);
		r->n_workers += !ret;
	}
	return ret;
}

static bool all_tried(const struct agent *agent)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (agent->state.servers[slot] && !agent->servers[slot].tried)
			return false;
	return true;
}

int reconcile_start(struct agent *agent, struct error *err)
{
	const struct workqueue_options options = { .policy = policy() };
	struct reconcile *r = calloc(1, sizeof(*r));
	int ret;

	if (!r)
		return error_set(err, -ENOMEM, "out of memory");
	agent->reconcile = r;
	r->agent = agent;
	ret = workqueue_open(&r->queue, &options) ?: retries_open(&r->retries, r->queue, TRIES) ?: start_workers(r);
	if (ret)
		return error_set(err, ret, "starting workers: %s", strerror(-ret));
	agent_lock(agent);
	reconcile_all(agent);
	agent_unlock(agent);
	return 0;
}

bool reconcile_wait(struct agent *agent)
{
	bool ending;

	agent_lock(agent);
	while (!all_tried(agent) && !agent->ending)
		pthread_cond_wait(&agent->looked, &agent->lock);
	ending = agent->ending;
	agent_unlock(agent);
	return !ending;
}

static void *drain(void *context)
{
	struct reconcile *r = context;

	workqueue_shut_down_with_drain(r->queue);
	return NULL;
}

/* By the clock that nobody sets. True: it has ended. */
static bool join_in_time(pthread_t thread, int seconds)
{
	const __u64 end = clock_ns(CLOCK_MONOTONIC) + seconds * WEIR_NS_PER_S;

	while (pthread_tryjoin_np(thread, NULL)) {
		if (clock_ns(CLOCK_MONOTONIC) > end)
			return false;
		usleep(JOIN_PAUSE_US);
	}
	return true;
}

static void drain_in_time(struct reconcile *r)
{
	pthread_t drainer;

	if (!r->n_workers || pthread_create(&drainer, NULL, drain, r)) {
		workqueue_shut_down(r->queue);
		return;
	}
	if (join_in_time(drainer, DRAIN_S))
		return;
	log_warning("repairs are not finished after %d s: the next agent will finish them", DRAIN_S);
	r->late = true;
	workqueue_shut_down(r->queue);
	pthread_join(drainer, NULL);
}

void reconcile_stop(struct agent *agent)
{
	struct reconcile *r = agent->reconcile;

	if (!r)
		return;
	if (r->queue)
		drain_in_time(r);
	for (size_t i = 0; i < r->n_workers; i++)
		pthread_join(r->workers[i], NULL);
	retries_close(r->retries);
	workqueue_close(r->queue);
	free(r);
	agent->reconcile = NULL;
}

/* --- keys */

void reconcile_all(struct agent *agent)
{
	char key[KEY_SIZE];

	for (int slot = 0; slot < WEIR_MAX_SERVERS && agent->reconcile; slot++) {
		if (!agent->state.servers[slot])
			continue;
		server_key(agent->state.servers[slot]->name, key);
		if (workqueue_add(agent->reconcile->queue, key))
			log_error("%s is not looked at: out of memory", key);
	}
}

void reconcile_forget(struct agent *agent, const char *name)
{
	char key[KEY_SIZE];

	server_key(name, key);
	if (agent->reconcile)
		retries_succeeded(agent->reconcile->retries, key);
}

/* --- for people */

json_t *reconcile_status(const struct agent *agent)
{
	json_t *dropped = agent->reconcile ? retries_dropped(agent->reconcile->retries) : json_object();
	struct workqueue_metrics metrics = { 0 };

	if (agent->reconcile)
		workqueue_metrics(agent->reconcile->queue, &metrics);
	return json_pack("{s:i, s:I, s:o}", "resync_seconds", (int)agent->options->resync_s, "queued",
			 (json_int_t)metrics.depth, "given_up", dropped);
}

void reconcile_metrics(const struct agent *agent, json_t *families)
{
	const struct reconcile *r = agent->reconcile;
	struct workqueue_metrics metrics = { 0 };

	if (r)
		workqueue_metrics(r->queue, &metrics);
	workqueue_metrics_families(families, "servers", &metrics);
	metrics_add_sample(metrics_add_family(families, "weir_reconcile_given_up_total", "counter",
					      "Servers given up until the next resync after repeated failures."),
			   json_object(), json_integer(r ? r->given_up : 0));
	drift_metrics(agent, families);
}
