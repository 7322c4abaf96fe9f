/* SPDX-License-Identifier: GPL-2.0 */
/* Looking after namespaces: devices, cgroups, conntrack, and connections whose sockets are gone. */
#include "agent/log.h"
#include "agent/reconcile.h"

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
	net_probe(net);
}

/* A large table takes its time. The namespace stays: only jobs end one. */
static void sweep(struct net *net)
{
	struct error err;
	int n;

	agent_work_end(net->agent);
	n = datapath_sweep(net->dp, DATAPATH_IDLE_NS, &err);
	agent_work_begin(net->agent);
	if (n < 0)
		log_error("sweep: %s", err.text);
	else if (n > 0)
		log_info("swept %d connections without sockets", n);
}

void nets_look_after(struct agent *agent)
{
	agent_work_begin(agent);
	for (struct net *net = agent->nets; net && !agent->ending; net = net->next) {
		look_after(net);
		sweep(net);
	}
	agent_work_end(agent);
}
