/* SPDX-License-Identifier: GPL-2.0 */
#include "workqueue_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/backoff_text.h"

__u64 now;

__u64 read_now(void *context)
{
	return *(__u64 *)context;
}

int open_queue(void **state)
{
	struct workqueue_options options = { .now_ns = read_now, .context = &now };
	struct error err;

	now = SECOND;
	assert_int_equal(backoff_parse("exponential:1ms..1s", &options.policy, &err), 0);
	return workqueue_open((struct workqueue **)state, &options);
}

int close_queue(void **state)
{
	workqueue_close(*state);
	return 0;
}

void work(struct workqueue *queue, const char *expected)
{
	const char *key;

	assert_int_not_equal(workqueue_length(queue), 0);
	key = workqueue_get(queue);
	assert_string_equal(key, expected);
	workqueue_done(queue, key);
}

struct workqueue_metrics metrics_of(struct workqueue *queue)
{
	struct workqueue_metrics metrics;

	workqueue_metrics(queue, &metrics);
	return metrics;
}

void comes_after(struct workqueue *queue, const char *key, __u64 delay_ns)
{
	now += delay_ns - 1;
	assert_int_equal(workqueue_length(queue), 0);
	now += 1;
	work(queue, key);
}
