/* SPDX-License-Identifier: GPL-2.0 */
#include <stdlib.h>
#include <sys/epoll.h>

#include "agent/agent.h"
#include "agent/jobs.h"
#include "agent/net.h"
#include "agent/servers.h"
#include "base/cleanup.h"

void agent_init(struct agent *agent, const struct agent_options *options)
{
	*agent = (struct agent){ .options = options, .events = json_array() };
	pthread_mutex_init(&agent->turn, NULL);
	pthread_cond_init(&agent->settled, NULL);
	pthread_mutex_init(&agent->lock, NULL);
	pthread_cond_init(&agent->looked, NULL);
	agent->devices_fd = epoll_create1(EPOLL_CLOEXEC);
	agent->rings_fd = epoll_create1(EPOLL_CLOEXEC);
}

void agent_destroy(struct agent *agent)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		server_listening_free(&agent->servers[slot].listening);
		free(agent->servers[slot].held_elsewhere);
	}
	json_decref(agent->events);
	cleanup_close(&agent->devices_fd);
	cleanup_close(&agent->rings_fd);
	pthread_cond_destroy(&agent->looked);
	pthread_mutex_destroy(&agent->lock);
	pthread_cond_destroy(&agent->settled);
	pthread_mutex_destroy(&agent->turn);
}

void agent_lock(struct agent *agent)
{
	pthread_mutex_lock(&agent->lock);
}

void agent_unlock(struct agent *agent)
{
	pthread_mutex_unlock(&agent->lock);
}

/* --- turns */

void agent_work_begin(struct agent *agent)
{
	pthread_mutex_lock(&agent->turn);
	agent_lock(agent);
}

void agent_work_end(struct agent *agent)
{
	agent_unlock(agent);
	pthread_mutex_unlock(&agent->turn);
}

void agent_wait(struct agent *agent)
{
	agent_unlock(agent);
	pthread_cond_wait(&agent->settled, &agent->turn);
	agent_lock(agent);
}

struct agent *agent_release(struct agent *agent)
{
	if (agent->released)
		return NULL;
	agent->released = true;
	agent_unlock(agent);
	return agent;
}

void agent_retake(struct agent **released)
{
	struct agent *agent = *released;

	if (!agent)
		return;
	agent_lock(agent);
	agent->released = false;
	for (struct net *net = agent->nets; net; net = net->next)
		net->written = *datapath_written(net->dp);
}

/* --- changes and repairs */

static void tell_settled(struct agent *agent)
{
	pthread_cond_broadcast(&agent->settled);
	pthread_cond_broadcast(&agent->looked);
}

/* The flag comes before the wait: new repairs do not keep a change waiting. */
void agent_change_begin(struct agent *agent)
{
	agent_work_begin(agent);
	agent->changing = true;
	while (agent->repairing)
		agent_wait(agent);
}

void agent_change_end(struct agent *agent)
{
	agent->changing = false;
	tell_settled(agent);
	agent_work_end(agent);
}

void agent_repair_begin(struct agent *agent)
{
	agent_work_begin(agent);
	while (agent->changing)
		agent_wait(agent);
	agent->repairing++;
}

void agent_repair_end(struct agent *agent)
{
	agent->repairing--;
	tell_settled(agent);
	agent_work_end(agent);
}

void agent_end(struct agent *agent)
{
	jobs_end(agent);
	agent_lock(agent);
	agent->ending = true;
	pthread_cond_broadcast(&agent->looked);
	agent_unlock(agent);
}
