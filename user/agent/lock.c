/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/private.h"

void agent_init(struct agent *agent, const struct agent_options *options)
{
	pthread_mutexattr_t recursive;

	*agent = (struct agent){ .options = options };
	/* What ends a stream may be heard of in the midst of something else. */
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&agent->lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
	pthread_cond_init(&agent->settled, NULL);
}

void agent_destroy(struct agent *agent)
{
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
