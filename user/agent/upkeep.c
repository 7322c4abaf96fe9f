/* SPDX-License-Identifier: GPL-2.0 */
/* Looking after namespaces: devices, cgroups, conntrack. */
#include "agent/net.h"
#include "agent/reconcile.h"
#include "agent/sweep.h"

/* What is wrong with a namespace is drift of its first server. */
static void look_after(struct net *net)
{
	struct datapath_written before = *datapath_written(net->dp);
	int slot = net_first_server(net->agent, net->cookie);

	net_follow(net);
	net_hold(net);
	/* A kernel that could not pace will not learn it by being asked again. */
	if (net->paced)
		net_pace(net);
	if (slot >= 0)
		drift_found(net->agent, net, slot, &before);
	net_find_tracking(net);
}

void nets_look_after(struct agent *agent)
{
	agent_work_begin(agent);
	for (struct net *net = agent->nets; net && !agent->ending; net = net->next)
		look_after(net);
	agent_work_end(agent);
	sweeper_wake(agent);
}

static void hold(struct net *net)
{
	struct datapath_written before = *datapath_written(net->dp);

	net_hold(net);
	drift_found(net->agent, net, net_first_server(net->agent, net->cookie), &before);
}

bool nets_held_in_part(const struct agent *agent)
{
	for (const struct net *net = agent->nets; net; net = net->next)
		if (net_is_held_in_part(net))
			return true;
	return false;
}

void nets_hold(struct agent *agent)
{
	agent_work_begin(agent);
	for (struct net *net = agent->nets; net && !agent->ending; net = net->next)
		if (net_is_held_in_part(net))
			hold(net);
	agent_work_end(agent);
}
