/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections whose sockets are gone leave the tables. A table of a million takes seconds, so a thread of its own looks
 * through it: no job waits for that, but one that ends the namespace, for as long as the sweep needs to stop.
 */
#include "agent/sweep.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "agent/net.h"
#include "base/log.h"
#include "sys/thread.h"

#define SWEEPER_NICE 10

struct sweeper {
	struct agent *agent;
	pthread_t thread;
	bool started;
	pthread_cond_t changed; /* of the agent's lock, as is what follows */
	bool due, ending;
	__u64 round;
	struct net *net; /* whose table is being looked through; NULL: none */
};

/* --- the thread, or without one whoever wakes it */

static void sweep(struct net *net)
{
	struct error err;
	int n;

	agent_unlock(net->agent);
	n = datapath_sweep(net->dp, DATAPATH_IDLE_NS, &err);
	agent_lock(net->agent);
	if (n < 0)
		log_error("sweep: %s", err.text);
	else if (n > 0)
		log_info("swept %d connection%s without a socket", n, n == 1 ? "" : "s");
}

/* One that has not had its turn in this round. */
static struct net *next_net(const struct sweeper *s)
{
	struct net *net = s->agent->nets;

	while (net && (net->leaving || net->swept == s->round))
		net = net->next;
	return net;
}

/* Namespaces come and go while the lock is not held. */
static void sweep_all(struct sweeper *s)
{
	s->round++;
	while (!s->ending && (s->net = next_net(s))) {
		s->net->swept = s->round;
		sweep(s->net);
		s->net = NULL;
		pthread_cond_broadcast(&s->changed);
	}
}

static void *work(void *context)
{
	struct sweeper *s = context;

	/* The threads that somebody waits for come first. */
	setpriority(PRIO_PROCESS, 0, SWEEPER_NICE);
	agent_lock(s->agent);
	while (!s->ending) {
		if (s->due) {
			s->due = false;
			sweep_all(s);
		} else {
			pthread_cond_wait(&s->changed, &s->agent->lock);
		}
	}
	agent_unlock(s->agent);
	return NULL;
}

/* --- for others */

int sweeper_start(struct agent *agent, struct error *err)
{
	struct sweeper *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return error_set(err, -ENOMEM, "out of memory");
	s->agent = agent;
	pthread_cond_init(&s->changed, NULL);
	agent->sweeper = s;
	ret = thread_start(&s->thread, work, s);
	s->started = !ret;
	return ret ? error_set(err, ret, "starting a thread: %s", strerror(-ret)) : 0;
}

void sweeper_stop(struct agent *agent)
{
	struct sweeper *s = agent->sweeper;

	if (!s)
		return;
	agent_lock(agent);
	s->ending = true;
	if (s->net)
		datapath_sweep_stop(s->net->dp);
	pthread_cond_broadcast(&s->changed);
	agent_unlock(agent);
	if (s->started)
		pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->changed);
	free(s);
	agent->sweeper = NULL;
}

void sweeper_wake(struct agent *agent)
{
	struct sweeper *s = agent->sweeper;

	agent_lock(agent);
	if (s) {
		s->due = true;
		pthread_cond_broadcast(&s->changed);
	} else {
		sweep_all(&(struct sweeper){ .agent = agent });
	}
	agent_unlock(agent);
}

void sweeper_leave(struct net *net)
{
	struct sweeper *s = net->agent->sweeper;

	net->leaving = true;
	while (s && s->net == net) {
		datapath_sweep_stop(net->dp);
		pthread_cond_wait(&s->changed, &net->agent->lock);
	}
}
