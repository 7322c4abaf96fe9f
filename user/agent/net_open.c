/* SPDX-License-Identifier: GPL-2.0 */
/* Namespaces are opened by whoever comes to them first, whose turn passes on while the kernel loads programs. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/inside.h"
#include "agent/net.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "datapath/remains.h"
#include "sys/netns.h"
#include "sys/pins.h"

int net_open(struct agent *agent, const struct server *server, int *fd, __u64 *cookie, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	CLEANUP_CLOSE int opened = netns_open(server->netns, err);
	int ret = opened < 0 ? opened : netns_cookie(opened, cookie, err);

	if (!ret)
		*fd = cleanup_take(&opened);
	return ret;
}

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

static int open_datapath(const struct agent *agent, int fd, __u64 cookie, struct datapath **out, struct error *err)
{
	const struct datapath_options options = {
		.pin_dir = agent->options->pin_dir,
		.netns_fd = fd,
		.netns_cookie = cookie,
		.conns_max = agent->options->conns_max,
	};
	struct datapath *dp = NULL;
	int ret = datapath_open(&dp, &options, err) ?: inside_open(agent, dp, err);

	if (ret) {
		datapath_close(dp);
		return ret;
	}
	*out = dp;
	return 0;
}

/* Loading programs takes seconds: it is the turn of others meanwhile. */
static int open_unlocked(struct agent *agent, int fd, __u64 cookie, struct datapath **dp, struct error *err)
{
	struct opening opening = { agent->openings, cookie }, **link = &agent->openings;
	int ret;

	agent->openings = &opening;
	agent_work_end(agent);
	ret = open_datapath(agent, fd, cookie, dp, err);
	agent_work_begin(agent);
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
		agent_wait(agent);
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

void net_pins(const struct agent *agent, __u64 cookie, char path[static PATH_MAX])
{
	pins_path(path, agent->options->pin_dir, "net-%llu", cookie);
}

/* The pins are all that holds links and maps of a namespace that cannot be entered any more. */
void net_unpin(struct agent *agent, __u64 cookie)
{
	char path[PATH_MAX];
	struct error err;

	if (net_first_server(agent, cookie) >= 0)
		return;
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	net_pins(agent, cookie, path);
	if (remains_remove(path, -1, &err))
		log_warning("%s", err.text);
}

/* Connections that need their translator would wait for answers without end. */
static int end_leftovers(struct datapath *dp, const char *dir, struct error *err)
{
	struct error why;
	int ret = datapath_drain_all(dp, err), reset;

	if (ret)
		return ret;
	reset = datapath_reset_translated(dp, DATAPATH_EVERY_SLOT, &why);
	if (reset < 0) {
		log_warning("%s: %s", dir, why.text);
		reset = 0;
	}
	ret = datapath_remove(dp, err);
	if (!ret)
		log_warning(
			"%s belonged to servers that are not in the state: removed, %d translated connection%s reset",
			dir, reset, reset == 1 ? "" : "s");
	return ret;
}

int net_clear_leftovers(struct agent *agent, int fd, __u64 cookie, struct error *err)
{
	struct datapath *dp;
	char dir[PATH_MAX];
	int ret;

	net_pins(agent, cookie, dir);
	if (net_first_server(agent, cookie) >= 0 || net_find(agent, cookie) || access(dir, F_OK))
		return 0;
	ret = open_unlocked(agent, fd, cookie, &dp, err);
	if (ret)
		return ret;
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	ret = end_leftovers(dp, dir, err);
	datapath_close(dp);
	return ret;
}
