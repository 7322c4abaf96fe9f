/* SPDX-License-Identifier: GPL-2.0 */
#include <sys/epoll.h>

#include "agent/jobs.h"
#include "agent/private.h"
#include "base/cleanup.h"

void agent_init(struct agent *agent, const struct agent_options *options)
{
	*agent = (struct agent){ .options = options };
	pthread_mutex_init(&agent->lock, NULL);
	pthread_cond_init(&agent->settled, NULL);
	agent->devices_fd = epoll_create1(EPOLL_CLOEXEC);
	agent->rings_fd = epoll_create1(EPOLL_CLOEXEC);
}

void agent_destroy(struct agent *agent)
{
	cleanup_close(&agent->devices_fd);
	cleanup_close(&agent->rings_fd);
	pthread_cond_destroy(&agent->settled);
	pthread_mutex_destroy(&agent->lock);
}

void agent_lock(struct agent *agent)
{
	pthread_mutex_lock(&agent->lock);
}

void agent_unlock(struct agent *agent)
{
	pthread_mutex_unlock(&agent->lock);
}

/* The flag comes before the wait: new repairs do not keep a change waiting. */
void agent_change_begin(struct agent *agent)
{
	agent_lock(agent);
	agent->changing = true;
	while (agent->repairing)
		pthread_cond_wait(&agent->settled, &agent->lock);
}

void agent_change_end(struct agent *agent)
{
	agent->changing = false;
	pthread_cond_broadcast(&agent->settled);
	agent_unlock(agent);
}

void agent_end(struct agent *agent)
{
	jobs_end(agent);
	agent_lock(agent);
	agent->ending = true;
	pthread_cond_broadcast(&agent->settled);
	agent_unlock(agent);
}

void agent_repair_begin(struct agent *agent)
{
	agent_lock(agent);
	while (agent->changing)
		pthread_cond_wait(&agent->settled, &agent->lock);
	agent->repairing++;
}

void agent_repair_end(struct agent *agent)
{
	agent->repairing--;
	pthread_cond_broadcast(&agent->settled);
	agent_unlock(agent);
}
