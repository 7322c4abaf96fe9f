/* SPDX-License-Identifier: GPL-2.0 */
/* Namespaces are opened by whoever comes to them first, unlocked while the kernel loads programs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "agent/log.h"
#include "agent/private.h"
#include "base/cleanup.h"
#include "datapath/remains.h"

/* A namespace that some thread opens. */
struct opening {
	struct opening *next;
	__u64 cookie;
};

static bool is_opening(const struct agent *agent, __u64 cookie)
{
	const struct opening *opening;

	for (opening = agent->openings; opening; opening = opening->next)
		if (opening->cookie == cookie)
			return true;
	return false;
}

static int open_datapath(const struct agent *agent, int fd, __u64 cookie, struct datapath **dp, struct error *err)
{
	const struct datapath_options options = {
		.pin_dir = agent->options->pin_dir,
		.netns_fd = fd,
		.netns_cookie = cookie,
		.conns_max = agent->options->conns_max,
	};

	return datapath_open(dp, &options, err);
}

/* Loading programs takes seconds: others go on meanwhile. */
static int open_unlocked(struct agent *agent, int fd, __u64 cookie, struct datapath **dp, struct error *err)
{
	struct opening opening = { agent->openings, cookie }, **link = &agent->openings;
	int ret;

	agent->openings = &opening;
	agent_unlock(agent);
	ret = open_datapath(agent, fd, cookie, dp, err);
	agent_lock(agent);
	while (*link != &opening)
		link = &(*link)->next;
	*link = opening.next;
	pthread_cond_broadcast(&agent->settled);
	return ret;
}

int net_get(struct agent *agent, int fd, __u64 cookie, struct net **out, struct error *err)
{
	CLEANUP_CLOSE int own = -1;
	struct datapath *dp = NULL;
	int ret;

	while (is_opening(agent, cookie))
		pthread_cond_wait(&agent->settled, &agent->lock);
	*out = net_find(agent, cookie);
	if (*out)
		return 0;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return error_set(err, -errno, "network namespace: %s", strerror(errno));
	ret = open_unlocked(agent, own, cookie, &dp, err);
	if (ret)
		return ret;
	*out = net_add(agent, own, cookie, dp);
	if (!*out) {
		datapath_close(dp);
		return error_set(err, -ENOMEM, "out of memory");
	}
	cleanup_take(&own);
	return 0;
}

/* --- what is pinned for namespaces that are not open */

static void pin_path(const struct agent *agent, __u64 cookie, char path[static PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/net-%llu", agent->options->pin_dir, cookie);
}

/* The pins are all that holds links and maps of a namespace that cannot be entered any more. */
void net_unpin(const struct agent *agent, __u64 cookie)
{
	char path[PATH_MAX];
	struct error err;

	pin_path(agent, cookie, path);
	if (net_first_server(agent, cookie) < 0 && remains_remove(path, -1, &err))
		log_warning("%s", err.text);
}

int net_clear_leftovers(struct agent *agent, int fd, __u64 cookie, struct error *err)
{
	struct datapath *dp;
	char dir[PATH_MAX];
	int ret;

	pin_path(agent, cookie, dir);
	if (net_first_server(agent, cookie) >= 0 || net_find(agent, cookie) || access(dir, F_OK))
		return 0;
	log_warning("%s belongs to servers that are not in the state: removed", dir);
	ret = open_unlocked(agent, fd, cookie, &dp, err);
	if (ret)
		return ret;
	ret = datapath_remove(dp, err);
	datapath_close(dp);
	return ret;
}
