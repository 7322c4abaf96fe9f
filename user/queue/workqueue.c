/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "queue/item.h"
#include "queue/workqueue.h"
#include "sys/thread.h"

struct workqueue {
	struct workqueue_options options;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* for workers: there is a key, or another one to wait for, or the end */
	pthread_cond_t idle;	/* for who drains */
	void *keys;		/* tree of the items' keys */
	struct items queued, processing;
	size_t length; /* of `queued` */
	struct workqueue_heap waiting;
	struct weir_bucket bucket; /* of the policy */
	struct workqueue_metrics metrics;
	bool shutting_down, draining;
};

static __u64 monotonic_ns(void *context)
{
	struct timespec now;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * WEIR_NS_PER_S + now.tv_nsec;
}

static __u64 now_ns(const struct workqueue *queue)
{
	return queue->options.now_ns(queue->options.context);
}

/* --- with the queue locked */

static void enqueue(struct workqueue *queue, struct item *item)
{
	TAILQ_INSERT_TAIL(&queue->queued, item, link);
	queue->length++;
	pthread_cond_signal(&queue->changed);
}

static void add_item(struct workqueue *queue, struct item *item)
{
	if (item->dirty)
		return;
	item->dirty = true;
	item->added_ns = now_ns(queue);
	queue->metrics.adds++;
	queue->metrics.depth++;
	if (!item->processing)
		enqueue(queue, item);
}

/* Whose time has come is added before what comes now. */
static void add_ready(struct workqueue *queue)
{
	struct workqueue_entry *first;

	while ((first = workqueue_heap_first(&queue->waiting)) && first->ready_ns <= now_ns(queue)) {
		workqueue_heap_remove(&queue->waiting, first);
		add_item(queue, item_of_entry(first));
	}
}

static int add_item_after(struct workqueue *queue, struct item *item, __u64 delay_ns)
{
	__u64 now = now_ns(queue);
	int ret;

	if (!delay_ns) {
		add_item(queue, item);
		return 0;
	}
	ret = workqueue_heap_add(&queue->waiting, &item->entry, delay_ns > ~now ? ~0ULL : now + delay_ns);
	/* Every worker that waits has to know until when. */
	if (!ret && workqueue_heap_first(&queue->waiting) == &item->entry)
		pthread_cond_broadcast(&queue->changed);
	return ret;
}

/* --- adding */

enum how {
	AT_ONCE,
	AFTER,
	RATE_LIMITED,
};

static int add_locked(struct workqueue *queue, const char *key, enum how how, __u64 delay_ns)
{
	struct item *item;
	int ret = 0;

	if (queue->shutting_down)
		return 0;
	add_ready(queue);
	item = item_make(&queue->keys, key);
	if (!item)
		return -ENOMEM;
	if (how == AT_ONCE) {
		add_item(queue, item);
		return 0;
	}
	if (how == RATE_LIMITED)
		delay_ns = weir_backoff_when(&queue->options.policy, &item->state, &queue->bucket, now_ns(queue));
	queue->metrics.retries++;
	ret = add_item_after(queue, item, delay_ns);
	item_settle(&queue->keys, item);
	return ret;
}

static int add(struct workqueue *queue, const char *key, enum how how, __u64 delay_ns)
{
	int ret;

	pthread_mutex_lock(&queue->lock);
	ret = add_locked(queue, key, how, delay_ns);
	pthread_mutex_unlock(&queue->lock);
	return ret;
}

int workqueue_add(struct workqueue *queue, const char *key)
{
	return add(queue, key, AT_ONCE, 0);
}

int workqueue_add_after(struct workqueue *queue, const char *key, __u64 delay_ns)
{
	return add(queue, key, AFTER, delay_ns);
}

int workqueue_add_rate_limited(struct workqueue *queue, const char *key)
{
	return add(queue, key, RATE_LIMITED, 0);
}

void workqueue_forget(struct workqueue *queue, const char *key)
{
	struct item *item;

	pthread_mutex_lock(&queue->lock);
	item = item_find(&queue->keys, key);
	if (item) {
		weir_backoff_forget(&item->state);
		item_settle(&queue->keys, item);
	}
	pthread_mutex_unlock(&queue->lock);
}

__u32 workqueue_requeues(struct workqueue *queue, const char *key)
{
	struct item *item;
	__u32 requeues;

	pthread_mutex_lock(&queue->lock);
	item = item_find(&queue->keys, key);
	requeues = item ? weir_backoff_requeues(&queue->options.policy, &item->state) : 0;
	pthread_mutex_unlock(&queue->lock);
	return requeues;
}

/* --- working */

/* No sleep is longer: it ends in time also where the clock is not the system's. */
#define SLEEP_MAX_NS (10 * WEIR_NS_PER_S)

/* Until another thread changes something, or until the first of those that wait is ready. */
static void wait_for_change(struct workqueue *queue)
{
	struct workqueue_entry *first = workqueue_heap_first(&queue->waiting);
	__u64 now = now_ns(queue), sleep_ns, until_ns;
	struct timespec until;

	if (!first) {
		pthread_cond_wait(&queue->changed, &queue->lock);
		return;
	}
	sleep_ns = first->ready_ns > now ? first->ready_ns - now : 0;
	until_ns = monotonic_ns(NULL) + (sleep_ns < SLEEP_MAX_NS ? sleep_ns : SLEEP_MAX_NS);
	until.tv_sec = until_ns / WEIR_NS_PER_S;
	until.tv_nsec = until_ns % WEIR_NS_PER_S;
	pthread_cond_timedwait(&queue->changed, &queue->lock, &until);
}

static struct item *take(struct workqueue *queue)
{
	struct item *item = TAILQ_FIRST(&queue->queued);

	if (!item)
		return NULL;
	TAILQ_REMOVE(&queue->queued, item, link);
	TAILQ_INSERT_TAIL(&queue->processing, item, link);
	queue->length--;
	queue->metrics.depth--;
	item->dirty = false;
	item->processing = true;
	item->started_ns = now_ns(queue);
	workqueue_histogram_observe(&queue->metrics.queue_duration, item->started_ns - item->added_ns);
	return item;
}

const char *workqueue_get(struct workqueue *queue)
{
	struct item *item;

	pthread_mutex_lock(&queue->lock);
	for (;;) {
		add_ready(queue);
		item = take(queue);
		if (item || queue->shutting_down)
			break;
		wait_for_change(queue);
	}
	pthread_mutex_unlock(&queue->lock);
	return item ? item->key : NULL;
}

static void finish(struct workqueue *queue, struct item *item)
{
	TAILQ_REMOVE(&queue->processing, item, link);
	item->processing = false;
	workqueue_histogram_observe(&queue->metrics.work_duration, now_ns(queue) - item->started_ns);
	if (item->dirty)
		enqueue(queue, item);
	else
		item_settle(&queue->keys, item);
	if (TAILQ_EMPTY(&queue->processing) && TAILQ_EMPTY(&queue->queued))
		pthread_cond_broadcast(&queue->idle);
}

void workqueue_done(struct workqueue *queue, const char *key)
{
	struct item *item;

	pthread_mutex_lock(&queue->lock);
	item = item_find(&queue->keys, key);
	if (item && item->processing)
		finish(queue, item);
	pthread_mutex_unlock(&queue->lock);
}

size_t workqueue_length(struct workqueue *queue)
{
	size_t length;

	pthread_mutex_lock(&queue->lock);
	add_ready(queue);
	length = queue->length;
	pthread_mutex_unlock(&queue->lock);
	return length;
}

/* --- the end */

static void drop_waiting(struct workqueue *queue)
{
	struct workqueue_entry *first;

	while ((first = workqueue_heap_first(&queue->waiting))) {
		workqueue_heap_remove(&queue->waiting, first);
		item_settle(&queue->keys, item_of_entry(first));
	}
}

static void shut_down(struct workqueue *queue, bool drain)
{
	pthread_mutex_lock(&queue->lock);
	queue->shutting_down = true;
	queue->draining = drain;
	drop_waiting(queue);
	pthread_cond_broadcast(&queue->changed);
	pthread_cond_broadcast(&queue->idle);
	while (queue->draining && !(TAILQ_EMPTY(&queue->processing) && TAILQ_EMPTY(&queue->queued)))
		pthread_cond_wait(&queue->idle, &queue->lock);
	pthread_mutex_unlock(&queue->lock);
}

void workqueue_shut_down(struct workqueue *queue)
{
	shut_down(queue, false);
}

void workqueue_shut_down_with_drain(struct workqueue *queue)
{
	shut_down(queue, true);
}

bool workqueue_shutting_down(struct workqueue *queue)
{
	bool shutting_down;

	pthread_mutex_lock(&queue->lock);
	shutting_down = queue->shutting_down;
	pthread_mutex_unlock(&queue->lock);
	return shutting_down;
}

void workqueue_metrics(struct workqueue *queue, struct workqueue_metrics *out)
{
	struct item *item;
	__u64 now;

	pthread_mutex_lock(&queue->lock);
	add_ready(queue);
	now = now_ns(queue);
	*out = queue->metrics;
	TAILQ_FOREACH (item, &queue->processing, link) {
		__u64 age_ns = now - item->started_ns;

		out->unfinished_work_ns += age_ns;
		if (age_ns > out->longest_running_ns)
			out->longest_running_ns = age_ns;
	}
	pthread_mutex_unlock(&queue->lock);
}

int workqueue_open(struct workqueue **out, const struct workqueue_options *options)
{
	struct workqueue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	queue->options = *options;
	if (!queue->options.now_ns)
		queue->options.now_ns = monotonic_ns;
	TAILQ_INIT(&queue->queued);
	TAILQ_INIT(&queue->processing);
	thread_condition(&queue->changed);
	pthread_cond_init(&queue->idle, NULL);
	pthread_mutex_init(&queue->lock, NULL);
	*out = queue;
	return 0;
}

void workqueue_close(struct workqueue *queue)
{
	if (!queue)
		return;
	items_free(queue->keys);
	workqueue_heap_free(&queue->waiting);
	pthread_mutex_destroy(&queue->lock);
	pthread_cond_destroy(&queue->idle);
	pthread_cond_destroy(&queue->changed);
	free(queue);
}
