/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The work queue of Kubernetes' controllers (k8s.io/client-go/util/workqueue): keys that name what is to be brought in
 * order, given to workers one after the other, first come first served.
 *
 * A key is there once, however often it is added (dirty). One that is added while a worker has it (processing) is
 * given out again when that worker is done, never to two at once: it may have been read before the change. Keys may be
 * added for later, and after failures by the limiters of weir/limit/backoff.h.
 *
 *   while ((key = workqueue_get(queue))) {
 *           failed = reconcile(key);
 *           if (failed)
 *                   workqueue_add_rate_limited(queue, key);
 *           else
 *                   workqueue_forget(queue, key);
 *           workqueue_done(queue, key);
 *   }
 *
 * One thing differs from client-go on purpose: draining waits for the keys that no worker has taken yet, too.
 *
 * Any thread may call any of these. Keys are copied.
 */
#ifndef WEIR_USER_QUEUE_WORKQUEUE_H
#define WEIR_USER_QUEUE_WORKQUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "weir/limit/backoff.h"

#include "queue/metrics.h"

struct workqueue;

struct workqueue_options {
	struct weir_backoff policy;	/* of workqueue_add_rate_limited(); all zero: at once */
	__u64 (*now_ns)(void *context); /* never goes back; NULL: CLOCK_MONOTONIC. Called with the queue locked. */
	void *context;
};

/* 0 or a negative errno. */
int workqueue_open(struct workqueue **out, const struct workqueue_options *options);

/* No thread may be in the queue any more: shut it down and join the workers before. NULL: nothing. */
void workqueue_close(struct workqueue *queue);

/* Once a queue is shut down, nothing is added to it any more: 0 all the same. -ENOMEM: not added. */
int workqueue_add(struct workqueue *queue, const char *key);

/* A key that waits already is added at the earlier of the two times. */
int workqueue_add_after(struct workqueue *queue, const char *key, __u64 delay_ns);

/* The key has failed once more. */
int workqueue_add_rate_limited(struct workqueue *queue, const char *key);

/* The key has not failed, or is given up: its failures count from the beginning. It still needs workqueue_done(). */
void workqueue_forget(struct workqueue *queue, const char *key);

/* How often the key has failed since it was forgotten. */
__u32 workqueue_requeues(struct workqueue *queue, const char *key);

/*
 * Waits for a key, which is the caller's until workqueue_done(). NULL: the queue is shut down and empty, and the worker is
 * to end.
 */
const char *workqueue_get(struct workqueue *queue);

/* With the key that workqueue_get() has returned. */
void workqueue_done(struct workqueue *queue, const char *key);

/* Keys that a worker could get now: neither those that wait for their time, nor those that a worker has. */
size_t workqueue_length(struct workqueue *queue);

/* Takes no more keys; what waits for its time is dropped. Workers get what is in the queue, and then NULL. */
void workqueue_shut_down(struct workqueue *queue);

/*
 * The same, and returns when all of it is done. A workqueue_shut_down() of another thread ends the waiting. Not to be
 * called by a worker that has a key, nor without workers.
 */
void workqueue_shut_down_with_drain(struct workqueue *queue);

bool workqueue_shutting_down(struct workqueue *queue);

/* As they are now. */
void workqueue_metrics(struct workqueue *queue, struct workqueue_metrics *out);

#endif
