/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What becomes of the keys of a work queue that fail: each is tried again, later every time, and is given up after a
 * number of tries. What was given up is kept in a list for people, until it succeeds: it is tried anew whenever it is
 * added again. Any thread may call any of these.
 */
#ifndef WEIR_USER_QUEUE_RETRIES_H
#define WEIR_USER_QUEUE_RETRIES_H

#include <jansson.h>

#include "base/error.h"
#include "queue/workqueue.h"

struct retries;

/*
 * The queue stays the caller's; its policy has to be one that counts what a key fails (exponential or fast-slow). tries:
 * at least 1. 0 or a negative errno.
 */
int retries_open(struct retries **out, struct workqueue *queue, __u32 tries);

/* NULL: nothing. */
void retries_close(struct retries *retries);

enum retries_outcome {
	RETRIES_GIVEN_UP,
	RETRIES_STILL_GIVEN_UP, /* as before, for the same reason */
	RETRIES_AGAIN,
};

/* For who has the key, before workqueue_done(). -ENOMEM: it is lost unless it is added again. */
int retries_failed(struct retries *retries, const char *key, const struct error *why);
void retries_succeeded(struct retries *retries, const char *key);

/* {KEY: {tries, error}} of what was given up. A new reference; NULL without memory. */
json_t *retries_dropped(struct retries *retries);

#endif
