/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What namespaces have to tell: their descriptors are in two sets, of which the event loop has one event each. So namespaces
 * come and go on any thread, while libevent stays the loop's.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "agent/agent.h"
#include "agent/jobs.h"
#include "agent/net.h"
#include "agent/trace.h"
#include "base/log.h"

#define AT_ONCE 16

static int watch(int set, int fd, __u32 what, struct net *net)
{
	struct epoll_event event = { .events = what, .data.ptr = net };

	return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* That devices have changed is told once for each message: a job reads the messages. */
void net_watch(struct net *net)
{
	struct agent *agent = net->agent;
	int ret = watch(agent->devices_fd, datapath_netlink_fd(net->dp), EPOLLIN | EPOLLET, net) ?:
			  watch(agent->rings_fd, datapath_trace_fd(net->dp), EPOLLIN, net);

	if (ret)
		log_error("network namespace %llu: its devices are not followed: %s", net->cookie, strerror(-ret));
}

void net_unwatch(struct net *net)
{
	epoll_ctl(net->agent->devices_fd, EPOLL_CTL_DEL, datapath_netlink_fd(net->dp), NULL);
	epoll_ctl(net->agent->rings_fd, EPOLL_CTL_DEL, datapath_trace_fd(net->dp), NULL);
}

static void follow_changed(struct agent *agent)
{
	agent_work_begin(agent);
	for (struct net *net = agent->nets; net; net = net->next) {
		bool changed = net->devices_changed;

		net->devices_changed = false;
		if (changed)
			net_follow(net);
	}
	agent_work_end(agent);
}

void nets_devices_changed(struct agent *agent)
{
	struct epoll_event events[AT_ONCE];
	int n;

	agent_lock(agent);
	while ((n = epoll_wait(agent->devices_fd, events, AT_ONCE, 0)) > 0)
		for (int i = 0; i < n; i++)
			((struct net *)events[i].data.ptr)->devices_changed = true;
	agent_unlock(agent);
	jobs_add(agent, follow_changed);
}

/* epoll reports again what is not read now. */
void nets_traced(struct agent *agent)
{
	struct epoll_event events[AT_ONCE];
	int n;

	agent_lock(agent);
	n = epoll_wait(agent->rings_fd, events, AT_ONCE, 0);
	for (int i = 0; i < n; i++)
		trace_read(events[i].data.ptr);
	trace_flush(agent);
	agent_unlock(agent);
}
