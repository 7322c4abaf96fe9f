/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The work queue with many threads and the system's clock. Built twice: as the other unit tests are, and with
 * ThreadSanitizer. What goes wrong here may also hang: the alarm ends that.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "queue/retries.h"
#include "queue/workqueue.h"

#define MS 1000000ULL
#define HOUR (3600 * WEIR_NS_PER_S)
#define PATIENCE_S 300

#define KEYS 50
#define WORKERS 10
#define ADDS 50

typedef void shut_down(struct workqueue *queue);
static shut_down *const ways_to_shut_down[] = { workqueue_shut_down, workqueue_shut_down_with_drain };

static struct workqueue *open_queue(void)
{
	struct workqueue_options options = {
		.policy = { .parts = WEIR_BACKOFF_EXPONENTIAL, .base_ns = 1, .max_ns = MS },
	};
	struct workqueue *queue;

	assert_int_equal(workqueue_open(&queue, &options), 0);
	return queue;
}

static pthread_t start(void *(*run)(void *), void *context)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, context), 0);
	return thread;
}

static void join(pthread_t thread)
{
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* --- everyone at once */

struct crowd {
	struct workqueue *queue;
	struct retries *retries;
	struct {
		atomic_uint wanted; /* what its producer has brought it to */
		atomic_uint done;   /* what a worker has seen of that */
		atomic_int workers; /* that have it now */
	} keys[KEYS];
	atomic_int twice_at_once, unknown;
	atomic_uint adds_again; /* by workers */
};

struct producer {
	struct crowd *crowd;
	unsigned int key;
};

static void *produce(void *context)
{
	struct producer *producer = context;
	struct crowd *crowd = producer->crowd;
	char key[16];

	snprintf(key, sizeof(key), "%u", producer->key);
	for (int i = 0; i < ADDS; i++) {
		crowd->keys[producer->key].wanted++;
		workqueue_add(crowd->queue, key);
		sched_yield();
	}
	return NULL;
}

/* Adds every key again the first two times that it gets it; half of the keys because they have failed. */
static void add_again(struct crowd *crowd, unsigned long n, const char *key)
{
	struct error why = { .text = "not yet" };

	crowd->adds_again++;
	if (n % 2)
		workqueue_add(crowd->queue, key);
	else
		retries_failed(crowd->retries, key, &why);
}

static void *consume(void *context)
{
	struct crowd *crowd = context;
	unsigned int gotten[KEYS] = {};
	const char *key;

	while ((key = workqueue_get(crowd->queue))) {
		char *end;
		unsigned long n = strtoul(key, &end, 10);

		if (*end || n >= KEYS) {
			crowd->unknown++;
			workqueue_done(crowd->queue, key);
			continue;
		}
		if (crowd->keys[n].workers++)
			crowd->twice_at_once++;
		crowd->keys[n].done = crowd->keys[n].wanted;
		if (gotten[n]++ < 2)
			add_again(crowd, n, key);
		else
			retries_succeeded(crowd->retries, key);
		sched_yield();
		crowd->keys[n].workers--;
		workqueue_done(crowd->queue, key);
	}
	return NULL;
}

/* Looks on, and is not counted: what it adds for later has no time left to come. */
static void *observe(void *context)
{
	struct crowd *crowd = context;
	struct workqueue_metrics metrics;

	while (!workqueue_shutting_down(crowd->queue)) {
		workqueue_metrics(crowd->queue, &metrics);
		if (workqueue_length(crowd->queue) > KEYS)
			crowd->unknown++;
		workqueue_requeues(crowd->queue, "0");
		workqueue_add_after(crowd->queue, "1", HOUR);
		json_decref(retries_dropped(crowd->retries));
		sched_yield();
	}
	return NULL;
}

static void run_crowd(struct crowd *crowd, shut_down *end)
{
	pthread_t producers[KEYS], workers[WORKERS], observer;
	struct producer contexts[KEYS];
	struct workqueue_metrics metrics;

	crowd->queue = open_queue();
	assert_int_equal(retries_open(&crowd->retries, crowd->queue, 3), 0);
	observer = start(observe, crowd);
	for (unsigned int i = 0; i < KEYS; i++) {
		contexts[i] = (struct producer){ crowd, i };
		producers[i] = start(produce, &contexts[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		workers[i] = start(consume, crowd);
	for (int i = 0; i < KEYS; i++)
		join(producers[i]);
	end(crowd->queue);
	workqueue_add(crowd->queue, "added after the end");
	for (int i = 0; i < WORKERS; i++)
		join(workers[i]);
	join(observer);
	assert_int_equal(workqueue_length(crowd->queue), 0);
	workqueue_metrics(crowd->queue, &metrics);
	assert_int_equal(metrics.depth, 0);
	assert_int_equal(metrics.unfinished_work_ns, 0);
	assert_in_range(metrics.adds, KEYS, KEYS * ADDS + crowd->adds_again);
	retries_close(crowd->retries);
	workqueue_close(crowd->queue);
}

static void test_crowd(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		struct crowd crowd = {};

		run_crowd(&crowd, ways_to_shut_down[way]);
		assert_int_equal(crowd.twice_at_once, 0);
		assert_int_equal(crowd.unknown, 0);
		/* Whatever came while a key was in work was seen afterwards. */
		for (int i = 0; i < KEYS; i++)
			assert_int_equal(crowd.keys[i].done, ADDS);
	}
}

/* --- draining */

struct drainer {
	struct workqueue *queue;
	atomic_bool ended;
};

static void *drain(void *context)
{
	struct drainer *drainer = context;

	workqueue_shut_down_with_drain(drainer->queue);
	drainer->ended = true;
	return NULL;
}

static pthread_t start_to_drain(struct drainer *drainer)
{
	pthread_t thread = start(drain, drainer);

	while (!workqueue_shutting_down(drainer->queue))
		sched_yield();
	return thread;
}

static void test_drain(void **state)
{
	struct drainer drainer = { .queue = open_queue() };
	const char *foo, *bar;
	pthread_t thread;

	(void)state;
	workqueue_add(drainer.queue, "foo");
	workqueue_add(drainer.queue, "bar");
	foo = workqueue_get(drainer.queue);
	bar = workqueue_get(drainer.queue);
	thread = start_to_drain(&drainer);
	assert_null(workqueue_get(drainer.queue));
	workqueue_done(drainer.queue, foo);
	assert_false(drainer.ended);
	workqueue_done(drainer.queue, bar);
	join(thread);
	workqueue_close(drainer.queue);
}

/* A key that was added while it was in work is done, too, and so is one that nobody had. */
static void test_drain_to_the_last(void **state)
{
	struct drainer drainer = { .queue = open_queue() };
	const char *key;
	pthread_t thread;

	(void)state;
	workqueue_add(drainer.queue, "foo");
	key = workqueue_get(drainer.queue);
	workqueue_add(drainer.queue, "foo");
	workqueue_add(drainer.queue, "bar");
	thread = start_to_drain(&drainer);
	workqueue_done(drainer.queue, key);
	assert_false(drainer.ended);
	key = workqueue_get(drainer.queue);
	assert_string_equal(key, "bar");
	workqueue_done(drainer.queue, key);
	assert_false(drainer.ended);
	key = workqueue_get(drainer.queue);
	assert_string_equal(key, "foo");
	assert_null(workqueue_get(drainer.queue));
	assert_false(drainer.ended);
	workqueue_done(drainer.queue, key);
	join(thread);
	assert_null(workqueue_get(drainer.queue));
	workqueue_close(drainer.queue);
}

static void test_shut_down_does_not_wait(void **state)
{
	struct workqueue *queue = open_queue();

	(void)state;
	workqueue_add(queue, "foo");
	workqueue_add(queue, "bar");
	workqueue_get(queue);
	workqueue_get(queue);
	workqueue_shut_down(queue);
	assert_null(workqueue_get(queue));
	workqueue_close(queue);
}

static void test_shut_down_ends_draining(void **state)
{
	struct drainer drainer = { .queue = open_queue() };
	pthread_t thread;

	(void)state;
	workqueue_add(drainer.queue, "foo");
	workqueue_get(drainer.queue);
	workqueue_add(drainer.queue, "bar");
	thread = start_to_drain(&drainer);
	assert_false(drainer.ended);
	workqueue_shut_down(drainer.queue);
	join(thread);
	workqueue_close(drainer.queue);
}

/* --- waiting */

struct waiter {
	struct workqueue *queue;
	const char *hold; /* the key that is kept until the other one has been had */
	atomic_bool *other_had;
	atomic_int got;
};

static void meet_other(const struct waiter *waiter, const char *key)
{
	if (!waiter->other_had)
		return;
	if (!waiter->hold || strcmp(key, waiter->hold) != 0)
		*waiter->other_had = true;
	while (!*waiter->other_had)
		sched_yield();
}

static void *wait_for_keys(void *context)
{
	struct waiter *waiter = context;
	const char *key;

	while ((key = workqueue_get(waiter->queue))) {
		waiter->got++;
		meet_other(waiter, key);
		workqueue_done(waiter->queue, key);
	}
	return NULL;
}

static __u64 monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * WEIR_NS_PER_S + now.tv_nsec;
}

/* A worker that waits without an end, or for a later one, gets what is due before. */
static void test_waiting_worker(void **state)
{
	struct waiter waiter = { .queue = open_queue() };
	pthread_t thread = start(wait_for_keys, &waiter);
	__u64 began = monotonic_ns();

	(void)state;
	workqueue_add_after(waiter.queue, "in an hour", HOUR);
	usleep(1000);
	workqueue_add_after(waiter.queue, "soon", 20 * MS);
	while (!waiter.got)
		sched_yield();
	assert_true(monotonic_ns() - began >= 20 * MS);
	workqueue_shut_down(waiter.queue);
	join(thread);
	assert_int_equal(waiter.got, 1);
	workqueue_close(waiter.queue);
}

/* The worker that knew until when to wait has something else to do by then: another one gets it. */
static void test_waiting_workers(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		atomic_bool had = false;
		struct waiter waiter = { .queue = open_queue(), .hold = "now", .other_had = &had };
		pthread_t threads[3];

		for (int i = 0; i < 3; i++)
			threads[i] = start(wait_for_keys, &waiter);
		usleep(1000);
		workqueue_add_after(waiter.queue, "soon", 5 * MS);
		workqueue_add(waiter.queue, "now");
		workqueue_add(waiter.queue, "now");
		while (!had)
			sched_yield();
		workqueue_shut_down_with_drain(waiter.queue);
		for (int i = 0; i < 3; i++)
			join(threads[i]);
		assert_in_range(waiter.got, 2, 3);
		workqueue_close(waiter.queue);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crowd),
		cmocka_unit_test(test_drain),
		cmocka_unit_test(test_drain_to_the_last),
		cmocka_unit_test(test_shut_down_does_not_wait),
		cmocka_unit_test(test_shut_down_ends_draining),
		cmocka_unit_test(test_waiting_worker),
		cmocka_unit_test(test_waiting_workers),
	};

	alarm(PATIENCE_S);
	return cmocka_run_group_tests_name("workqueue_threads", tests, NULL, NULL);
}
