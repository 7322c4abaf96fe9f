/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/jobs.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

#include "agent/agent.h"
#include "agent/trace.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "sys/thread.h"

struct job {
	TAILQ_ENTRY(job) entry;
	void (*task)(struct agent *agent); /* or NULL, and a call: */
	void (*run)(void *arg);
	void (*done)(void *arg);
	void *arg;
};

TAILQ_HEAD(job_list, job);

struct jobs {
	struct agent *agent;
	pthread_t thread;
	bool started;
	pthread_mutex_t lock; /* of what follows; never held while a job runs */
	pthread_cond_t added;
	struct job_list waiting, questions, done;
	bool ending;
	int done_fd; /* readable while there are jobs that are done */
	struct event *done_event;
};

/* --- the thread */

static struct job_list *next_list(struct jobs *jobs)
{
	return TAILQ_EMPTY(&jobs->waiting) ? &jobs->questions : &jobs->waiting;
}

/* NULL: it is to end. */
static struct job *take(struct jobs *jobs)
{
	struct job *job;

	pthread_mutex_lock(&jobs->lock);
	while (TAILQ_EMPTY(next_list(jobs)) && !jobs->ending)
		pthread_cond_wait(&jobs->added, &jobs->lock);
	job = jobs->ending ? NULL : TAILQ_FIRST(next_list(jobs));
	if (job)
		TAILQ_REMOVE(next_list(jobs), job, entry);
	pthread_mutex_unlock(&jobs->lock);
	return job;
}

static void put_done(struct jobs *jobs, struct job *job)
{
	pthread_mutex_lock(&jobs->lock);
	TAILQ_INSERT_TAIL(&jobs->done, job, entry);
	pthread_mutex_unlock(&jobs->lock);
	eventfd_write(jobs->done_fd, 1);
}

static void *work(void *context)
{
	struct jobs *jobs = context;
	struct job *job;

	while ((job = take(jobs))) {
		if (job->task)
			job->task(jobs->agent);
		else
			job->run(job->arg);
		put_done(jobs, job);
	}
	return NULL;
}

/* --- the event loop */

static void tell_done(struct jobs *jobs)
{
	struct job_list done = TAILQ_HEAD_INITIALIZER(done);
	struct job *job;

	pthread_mutex_lock(&jobs->lock);
	TAILQ_CONCAT(&done, &jobs->done, entry);
	pthread_mutex_unlock(&jobs->lock);
	while ((job = TAILQ_FIRST(&done))) {
		TAILQ_REMOVE(&done, job, entry);
		if (job->done)
			job->done(job->arg);
		free(job);
	}
	/* A job may have ended servers that are traced. */
	agent_lock(jobs->agent);
	trace_flush(jobs->agent);
	agent_unlock(jobs->agent);
}

static void some_done(evutil_socket_t fd, short what, void *context)
{
	eventfd_t n;

	(void)what;
	eventfd_read(fd, &n);
	tell_done(context);
}

static bool is_waiting(const struct jobs *jobs, const struct job *job)
{
	const struct job *other;

	TAILQ_FOREACH (other, &jobs->waiting, entry)
		if (job->task && other->task == job->task)
			return true;
	return false;
}

/* Takes over the job unless it fails. */
static int add(struct jobs *jobs, struct job_list *list, struct job *job)
{
	int ret = 0;

	pthread_mutex_lock(&jobs->lock);
	if (jobs->ending)
		ret = -ESHUTDOWN;
	else if (is_waiting(jobs, job))
		free(job);
	else
		TAILQ_INSERT_TAIL(list, job, entry);
	pthread_cond_signal(&jobs->added);
	pthread_mutex_unlock(&jobs->lock);
	return ret;
}

void jobs_add(struct agent *agent, void (*run)(struct agent *agent))
{
	struct job *job;

	if (!agent->jobs) {
		run(agent);
		return;
	}
	job = calloc(1, sizeof(*job));
	if (!job) {
		log_error("a job is not done: out of memory");
		return;
	}
	job->task = run;
	if (add(agent->jobs, &agent->jobs->waiting, job))
		free(job);
}

int jobs_add_call(struct agent *agent, void (*run)(void *arg), void (*done)(void *arg), void *arg, bool question)
{
	struct jobs *jobs = agent->jobs;
	struct job *job = calloc(1, sizeof(*job));
	int ret;

	if (!job)
		return -ENOMEM;
	*job = (struct job){ .run = run, .done = done, .arg = arg };
	ret = add(jobs, question ? &jobs->questions : &jobs->waiting, job);
	if (ret)
		free(job);
	return ret;
}

/* --- its life */

int jobs_start(struct agent *agent, struct error *err)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));
	int ret = -ENOMEM;

	if (!jobs)
		return error_set(err, -ENOMEM, "out of memory");
	agent->jobs = jobs;
	jobs->agent = agent;
	TAILQ_INIT(&jobs->waiting);
	TAILQ_INIT(&jobs->questions);
	TAILQ_INIT(&jobs->done);
	pthread_mutex_init(&jobs->lock, NULL);
	pthread_cond_init(&jobs->added, NULL);
	jobs->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (jobs->done_fd < 0)
		return error_set(err, -errno, "eventfd: %s", strerror(errno));
	jobs->done_event = event_new(agent->base, jobs->done_fd, EV_READ | EV_PERSIST, some_done, jobs);
	if (jobs->done_event && !event_add(jobs->done_event, NULL))
		ret = thread_start(&jobs->thread, work, jobs);
	jobs->started = !ret;
	return ret ? error_set(err, ret, "starting a thread: %s", strerror(-ret)) : 0;
}

void jobs_end(struct agent *agent)
{
	struct jobs *jobs = agent->jobs;

	if (!jobs)
		return;
	pthread_mutex_lock(&jobs->lock);
	jobs->ending = true;
	pthread_cond_signal(&jobs->added);
	pthread_mutex_unlock(&jobs->lock);
}

void jobs_stop(struct agent *agent)
{
	struct jobs *jobs = agent->jobs;

	if (!jobs)
		return;
	if (jobs->started)
		pthread_join(jobs->thread, NULL);
	jobs->started = false;
	TAILQ_CONCAT(&jobs->done, &jobs->waiting, entry);
	TAILQ_CONCAT(&jobs->done, &jobs->questions, entry);
	tell_done(jobs);
	/* What was answered goes out. */
	event_base_loop(agent->base, EVLOOP_NONBLOCK);
}

void jobs_free(struct agent *agent)
{
	struct jobs *jobs = agent->jobs;

	if (!jobs)
		return;
	if (jobs->done_event)
		event_free(jobs->done_event);
	cleanup_close(&jobs->done_fd);
	pthread_cond_destroy(&jobs->added);
	pthread_mutex_destroy(&jobs->lock);
	free(jobs);
	agent->jobs = NULL;
}
