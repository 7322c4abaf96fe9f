/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When policy files change: directories are watched, since a file that is replaced, or a ConfigMap whose links are moved on to
 * another directory, is another file afterwards. What is noticed there is only a reason to look.
 */
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/jobs.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "follow/follow.h"
#include "sys/privilege.h"

/* Whoever writes several files, or one in pieces, has this long to go on; and all in all so long. */
#define QUIET_NS (WEIR_NS_PER_S / 10 * 3)
#define PATIENCE_NS (3 * WEIR_NS_PER_S)

#define EVENTS                                                                                               \
	(IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | \
	 IN_MOVE_SELF)

struct follow_watch {
	struct agent *agent;
	int fd;
	struct event *readable, *quiet;
	__u64 first_ns; /* of what has been noticed and not been looked at; 0: nothing */
};

static void look(evutil_socket_t fd, short what, void *context)
{
	struct follow_watch *watch = context;

	(void)fd;
	(void)what;
	watch->first_ns = 0;
	jobs_add(watch->agent, follow_sync);
}

void follow_watch_wake(struct follow_watch *watch)
{
	__u64 now = clock_ns(CLOCK_MONOTONIC), left;

	if (!watch->first_ns)
		watch->first_ns = now;
	left = watch->first_ns + PATIENCE_NS > now ? watch->first_ns + PATIENCE_NS - now : 0;
	if (left > QUIET_NS)
		left = QUIET_NS;
	event_add(watch->quiet, &(struct timeval){ .tv_usec = left / 1000 });
}

static void notice(evutil_socket_t fd, short what, void *context)
{
	char events[4096];

	(void)what;
	while (read(fd, events, sizeof(events)) > 0)
		;
	follow_watch_wake(context);
}

/* --- what is watched */

/* What is not there is seen when it comes: in the directory above it, or by and by. */
static void add_directory(struct follow_watch *watch, const char *path)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_READ);

	inotify_add_watch(watch->fd, path, EVENTS | IN_ONLYDIR);
}

static void add_directory_of(struct follow_watch *watch, const char *path)
{
	CLEANUP_FREE char *copy = strdup(path);

	if (copy)
		add_directory(watch, dirname(copy));
}

/* Where it is, and where that is in truth. */
static void add_file(struct follow_watch *watch, const char *path)
{
	CLEANUP_FREE char *real = realpath(path, NULL);

	add_directory_of(watch, path);
	if (real && strcmp(real, path) != 0)
		add_directory_of(watch, real);
}

void follow_watch_add(struct follow_watch *watch, const struct followed *followed)
{
	add_file(watch, followed->path);
	add_directory(watch, followed->path);
	for (size_t i = 0; i < followed->policy.n_files; i++)
		add_file(watch, followed->policy.files[i].path);
}

/* --- its life */

int follow_watch_open(struct follow_watch **out, struct agent *agent, struct error *err)
{
	struct follow_watch *watch = calloc(1, sizeof(*watch));
	int ret;

	if (!watch)
		return error_set(err, -ENOMEM, "out of memory");
	watch->agent = agent;
	watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	ret = watch->fd < 0 ? error_set(err, -errno, "inotify: %s", strerror(errno)) : 0;
	if (!ret) {
		watch->readable = event_new(agent->base, watch->fd, EV_READ | EV_PERSIST, notice, watch);
		watch->quiet = evtimer_new(agent->base, look, watch);
		if (!watch->readable || !watch->quiet)
			ret = error_set(err, -ENOMEM, "out of memory");
	}
	if (ret) {
		follow_watch_close(watch);
		return ret;
	}
	event_add(watch->readable, NULL);
	*out = watch;
	return 0;
}

void follow_watch_close(struct follow_watch *watch)
{
	if (!watch)
		return;
	if (watch->readable)
		event_free(watch->readable);
	if (watch->quiet)
		event_free(watch->quiet);
	if (watch->fd >= 0)
		close(watch->fd);
	free(watch);
}
