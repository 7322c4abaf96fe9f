/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A recording is taken batch by batch: one thread reads the next batch's lines and asks about them, while this one has the
 * batch before decided and counts it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/output.h"
#include "replay/lines.h"
#include "replay/private.h"
#include "sys/thread.h"

#define BATCHES 2
#define BATCH_LINES (WEIR_REPLAY_SLOTS / BATCHES)

struct batch {
	struct lines text;
	struct replay_line lines[BATCH_LINES];
	size_t n;
	__u64 first;	  /* the number of its first line */
	bool full;	  /* it is the counting thread's turn */
	bool last;	  /* nothing comes behind it */
	int ret;	  /* what was met behind its lines */
	struct error err; /* of ret */
};

struct reading {
	struct replay *replay;
	int fd;
	const char *name;
	bool whole; /* lines are kept as they stand, too */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool over; /* nobody counts any more */
	struct batch batches[BATCHES];
};

static __u32 slot_of(const struct reading *r, const struct batch *batch, size_t line)
{
	return (batch - r->batches) * BATCH_LINES + line;
}

/* --- turns */

static void pass_on(struct reading *r, struct batch *batch, bool full)
{
	pthread_mutex_lock(&r->lock);
	batch->full = full;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* False: it will not be anybody's turn any more. */
static bool wait_for(struct reading *r, const struct batch *batch, bool full)
{
	bool over;

	pthread_mutex_lock(&r->lock);
	while (batch->full != full && !r->over)
		pthread_cond_wait(&r->changed, &r->lock);
	over = r->over;
	pthread_mutex_unlock(&r->lock);
	return !over;
}

static void end_reading(struct reading *r)
{
	pthread_mutex_lock(&r->lock);
	r->over = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* --- reading */

static void line_clear(struct replay_line *line)
{
	json_decref(line->whole);
	line->whole = NULL;
	recorded_clear(&line->recorded);
}

static int take_line(struct reading *r, struct replay_line *line, char *text, size_t length, __u32 slot,
		     struct error *err)
{
	int ret;

	line_clear(line);
	/* Before the reader writes to it. */
	line->whole = r->whole ? json_loadb(text, length, 0, NULL) : NULL;
	ret = recorded_read(text, length, &line->recorded, err) ?: replay_ask(r->replay, line, slot, err);
	if (!ret && r->whole && !line->whole)
		return error_set(err, -EINVAL, "its JSON cannot be read");
	return ret;
}

static int unread(const struct reading *r, __u64 number, int why, struct error *err)
{
	if (why == -EFBIG)
		return error_set(err, why, "%s:%llu: not a line of weir trace --json: " RECORDED_TOO_LONG, r->name,
				 number);
	return error_set(err, why, "%s: %s", r->name, strerror(-why));
}

/* Its next line. Only for the first one it waits: what is there is decided now. False: there is none. */
static bool fill_line(struct reading *r, struct batch *batch)
{
	size_t length = 0, n = batch->n;
	struct error why;
	char *text = NULL;
	int got = lines_next(&batch->text, r->fd, !n, &text, &length);

	if (got < 0)
		batch->ret = unread(r, batch->first + n, got, &batch->err);
	if (got <= 0)
		return false;
	batch->ret = take_line(r, &batch->lines[n], text, length, slot_of(r, batch, n), &why);
	if (batch->ret)
		error_set(&batch->err, batch->ret, "%s:%llu: %s", r->name, batch->first + n, why.text);
	batch->n += !batch->ret;
	return !batch->ret;
}

static void fill(struct reading *r, struct batch *batch, struct batch *before)
{
	batch->first = before->first + before->n;
	batch->n = 0;
	batch->ret = lines_begin(&batch->text, &before->text);
	if (batch->ret)
		error_set(&batch->err, batch->ret, "out of memory");
	while (!batch->ret && batch->n < BATCH_LINES && fill_line(r, batch))
		;
	batch->last = batch->ret || !batch->n;
}

static void *read_all(void *arg)
{
	struct reading *r = arg;
	struct batch *batch, *before = &r->batches[BATCHES - 1];

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	before->first = 1; /* line; it has none itself */
	for (size_t i = 0;; i = (i + 1) % BATCHES) {
		batch = &r->batches[i];
		if (!wait_for(r, batch, false))
			return NULL;
		fill(r, batch, before);
		pass_on(r, batch, true);
		if (batch->last)
			return NULL;
		before = batch;
	}
}

/* --- deciding */

/* The slots of those that are asked about; few are not. */
static int decide(struct reading *r, const struct batch *batch, struct error *err)
{
	int ret = 0;

	for (size_t i = 0, n; i < batch->n && !ret; i += n + 1) {
		for (n = 0; i + n < batch->n && batch->lines[i + n].asked; n++)
			;
		ret = n ? datapath_replay_run(r->replay->dp, slot_of(r, batch, i), n, err) : 0;
	}
	return ret;
}

static int count_line(struct reading *r, const struct batch *batch, size_t i, replay_each *each, struct error *err)
{
	const struct replay_line *line = &batch->lines[i];
	struct replayed replayed;
	int ret = replay_count(r->replay, line, datapath_replay_answer(r->replay->dp, slot_of(r, batch, i)), &replayed,
			       err);

	if (ret || !each)
		return ret;
	ret = each(line->whole, &replayed);
	return ret ? output_error(ret, err) : 0;
}

static int take_batch(struct reading *r, const struct batch *batch, replay_each *each, struct error *err)
{
	struct error why;
	int ret = decide(r, batch, &why);
	size_t i = 0;

	if (ret)
		return error_set(err, ret, "%s: one of the lines %llu to %llu: %s", r->name, batch->first,
				 batch->first + batch->n - 1, why.text);
	while (!ret && i < batch->n) {
		ret = count_line(r, batch, i, each, &why);
		i += !ret;
	}
	if (ret)
		return error_set(err, ret, "%s:%llu: %s", r->name, batch->first + i, why.text);
	return batch->ret ? error_set(err, batch->ret, "%s", batch->err.text) : 0;
}

static int take_all(struct reading *r, replay_each *each, struct error *err)
{
	bool last = false;
	int ret = 0;

	for (size_t i = 0; !ret && !last; i = (i + 1) % BATCHES) {
		struct batch *batch = &r->batches[i];

		wait_for(r, batch, true);
		ret = take_batch(r, batch, each, err);
		last = batch->last;
		pass_on(r, batch, false);
	}
	return ret;
}

static void reading_free(struct reading *r)
{
	for (size_t i = 0; i < BATCHES; i++) {
		lines_free(&r->batches[i].text);
		for (size_t n = 0; n < BATCH_LINES; n++)
			line_clear(&r->batches[i].lines[n]);
	}
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

int replay_recording(struct replay *replay, int fd, const char *name, replay_each *each, struct error *err)
{
	struct reading *r = calloc(1, sizeof(*r));
	pthread_t reader;
	int ret;

	if (!r)
		return error_set(err, -ENOMEM, "out of memory");
	*r = (struct reading){ .replay = replay, .fd = fd, .name = name, .whole = each };
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
	ret = thread_start(&reader, read_all, r);
	if (ret) {
		error_set(err, ret, "starting a thread: %s", strerror(-ret));
	} else {
		ret = take_all(r, each, err);
		end_reading(r);
		pthread_cancel(reader);
		pthread_join(reader, NULL);
	}
	reading_free(r);
	return ret;
}
