/* SPDX-License-Identifier: GPL-2.0 */
#include "cli/slow.h"

#include <errno.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "sys/thread.h"
#include "weir/base/duration.h"

static struct timespec moment_to_speak(void)
{
	__u64 ns = clock_ns(CLOCK_MONOTONIC) + SLOW_MS * WEIR_NS_PER_MS;

	return (struct timespec){ .tv_sec = ns / WEIR_NS_PER_S, .tv_nsec = ns % WEIR_NS_PER_S };
}

/* A thread of its own: a signal would have the kernel give up a program that it is just checking. */
static void *watch(void *arg)
{
	struct timespec until = moment_to_speak();
	struct slow *slow = arg;
	int ret = 0;

	pthread_mutex_lock(&slow->lock);
	while (!slow->over && !ret)
		ret = pthread_cond_timedwait(&slow->changed, &slow->lock, &until);
	if (!slow->over)
		cli_progress(slow->text);
	pthread_mutex_unlock(&slow->lock);
	return NULL;
}

void slow_begin(struct slow *slow, const char *text)
{
	*slow = (struct slow){ .text = text };
	pthread_mutex_init(&slow->lock, NULL);
	thread_condition(&slow->changed);
	slow->watched = !thread_start(&slow->thread, watch, slow);
}

void slow_end(struct slow *slow)
{
	if (!slow->watched)
		return;
	pthread_mutex_lock(&slow->lock);
	slow->over = true;
	pthread_cond_broadcast(&slow->changed);
	pthread_mutex_unlock(&slow->lock);
	pthread_join(slow->thread, NULL);
	slow->watched = false;
}
