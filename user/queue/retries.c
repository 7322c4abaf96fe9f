/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/output.h"
#include "queue/retries.h"

struct retries {
	struct workqueue *queue;
	__u32 tries;
	pthread_mutex_t lock; /* of the list */
	json_t *dropped;
};

int retries_open(struct retries **out, struct workqueue *queue, __u32 tries)
{
	struct retries *retries = calloc(1, sizeof(*retries));
	json_t *dropped = json_object();

	if (!retries || !dropped) {
		free(retries);
		json_decref(dropped);
		return -ENOMEM;
	}
	retries->queue = queue;
	retries->tries = tries;
	retries->dropped = dropped;
	pthread_mutex_init(&retries->lock, NULL);
	*out = retries;
	return 0;
}

void retries_close(struct retries *retries)
{
	if (!retries)
		return;
	pthread_mutex_destroy(&retries->lock);
	json_decref(retries->dropped);
	free(retries);
}

static int drop(struct retries *retries, const char *key, const struct error *why)
{
	json_t *entry = json_pack("{s:I, s:o}", "tries", (json_int_t)retries->tries, "error",
				  output_text_json(why->text));
	bool same;
	int ret;

	pthread_mutex_lock(&retries->lock);
	same = json_equal(json_object_get(retries->dropped, key), entry);
	ret = json_object_set_new(retries->dropped, key, entry);
	pthread_mutex_unlock(&retries->lock);
	return ret ? -ENOMEM : same ? RETRIES_STILL_GIVEN_UP : RETRIES_GIVEN_UP;
}

int retries_failed(struct retries *retries, const char *key, const struct error *why)
{
	int ret;

	if (workqueue_requeues(retries->queue, key) + 1 < retries->tries) {
		ret = workqueue_add_rate_limited(retries->queue, key);
		return ret ?: RETRIES_AGAIN;
	}
	workqueue_forget(retries->queue, key);
	return drop(retries, key, why);
}

void retries_succeeded(struct retries *retries, const char *key)
{
	workqueue_forget(retries->queue, key);
	pthread_mutex_lock(&retries->lock);
	json_object_del(retries->dropped, key);
	pthread_mutex_unlock(&retries->lock);
}

json_t *retries_dropped(struct retries *retries)
{
	json_t *copy;

	pthread_mutex_lock(&retries->lock);
	copy = json_deep_copy(retries->dropped);
	pthread_mutex_unlock(&retries->lock);
	return copy;
}
