/* SPDX-License-Identifier: GPL-2.0 */
#include "sys/aside.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <time.h>

#include "weir/base/duration.h"

#include "base/clock.h"
#include "sys/thread.h"

struct call {
	__u64 key;
	void (*run)(void *arg);
	void (*release)(void *arg);
	void *arg;
	bool returned, left;
	LIST_ENTRY(call) entry; /* where it is left */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_cond_t returned;
static LIST_HEAD(, call) left = LIST_HEAD_INITIALIZER(left);
static unsigned int n_left;

static void begin(void)
{
	thread_condition(&returned);
}

/* Who makes new keys at will, as by new processes, is not to have a thread for each. */
static bool is_refused(__u64 key)
{
	const struct call *call;

	if (n_left == ASIDE_LEFT_MAX)
		return true;
	LIST_FOREACH (call, &left, entry)
		if (call->key == key)
			return true;
	return false;
}

/* Whoever comes second, of the thread and who waits for it, has the call to free. */
static void *run_aside(void *arg)
{
	struct call *call = arg;
	bool alone;

	call->run(call->arg);
	pthread_mutex_lock(&lock);
	alone = call->left;
	call->returned = true;
	if (alone) {
		LIST_REMOVE(call, entry);
		n_left--;
	} else {
		pthread_cond_broadcast(&returned);
	}
	pthread_mutex_unlock(&lock);
	if (!alone)
		return NULL;
	call->release(call->arg);
	free(call);
	return NULL;
}

static int start(struct call *call)
{
	pthread_t thread;
	int ret = thread_start(&thread, run_aside, call);

	if (!ret)
		pthread_detach(thread); /* it cannot fail: nobody has joined it */
	return ret;
}

/* With the lock. True: it has returned. */
static bool wait_for(const struct call *call, __u32 ms)
{
	const __u64 end = clock_ns(CLOCK_MONOTONIC) + ms * WEIR_NS_PER_MS;
	const struct timespec until = { .tv_sec = end / WEIR_NS_PER_S, .tv_nsec = end % WEIR_NS_PER_S };

	while (!call->returned && !pthread_cond_timedwait(&returned, &lock, &until))
		;
	return call->returned;
}

/* Once it is among those that are left, the call is its thread's. */
static int run_locked(struct call *call, __u32 ms)
{
	int ret = is_refused(call->key) ? -EBUSY : start(call);

	if (ret || wait_for(call, ms))
		return ret;
	call->left = true;
	LIST_INSERT_HEAD(&left, call, entry);
	n_left++;
	return -ETIMEDOUT;
}

int aside_run(__u64 key, void (*run)(void *arg), void (*release)(void *arg), void *arg, __u32 ms)
{
	struct call *call = malloc(sizeof(*call));
	int ret = -ENOMEM;

	pthread_once(&once, begin);
	if (call) {
		*call = (struct call){ .key = key, .run = run, .release = release, .arg = arg };
		pthread_mutex_lock(&lock);
		ret = run_locked(call, ms);
		pthread_mutex_unlock(&lock);
	}
	if (ret == -ETIMEDOUT)
		return ret;
	if (ret)
		release(arg);
	free(call);
	return ret;
}
