/* SPDX-License-Identifier: GPL-2.0 */
/* What carrying out a plan would find first, for who only wants to know what it would change. */
#include "agent/net.h"
#include "agent/servers.h"
#include "apply/plan.h"
#include "base/cleanup.h"
#include "policy/policy.h"

/* Who may only read is not told what else is at a path. So cgroups are not looked for. */
static int find_netns(struct agent *agent, const struct planned *p, json_t *netns_inode, int *fd, struct error *err)
{
	int ret;

	if (!p->made->netns)
		return server_check_home(netns_inode, err) ?: net_open(agent, p->made, fd, &p->made->netns_cookie, err);
	ret = net_open(agent, p->made, fd, &p->made->netns_cookie, NULL);
	return ret ? error_set(err, ret, "server \"%s\": there is no network namespace %s", p->name, p->made->netns) :
		     0;
}

static int check_interfaces(struct agent *agent, int fd, const struct server *server, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return net_check_interfaces(fd, server, err);
}

static int check_fresh(struct agent *agent, struct state *later, struct planned *p, json_t *netns_inode,
		       struct error *err)
{
	CLEANUP_CLOSE int fd = -1;
	int ret = find_netns(agent, p, netns_inode, &fd, err), slot = 0;

	while (later->servers[slot]) /* there is room: plan_target() */
		slot++;
	later->servers[slot] = p->made;
	return ret ?: state_check(later, p->made, err) ?: check_interfaces(agent, fd, p->made, err);
}

static int check_there(struct agent *agent, struct state *later, struct planned *p, struct error *err)
{
	const struct net *net = net_in_force(agent, p->slot);
	int ret;

	later->servers[p->slot] = p->made;
	if (policy_same_settings(agent->state.servers[p->slot], p->made))
		return 0;
	ret = state_check(later, p->made, err);
	return ret || !net ? ret : check_interfaces(agent, net->fd, p->made, err);
}

/* In the order in which plan_do() goes. */
int plan_check(struct agent *agent, struct plan *plan, struct error *err)
{
	struct state later = agent->state;
	int ret = 0;

	for (size_t i = 0; i < plan->n && !ret; i++)
		if (plan->servers[i].slot < 0)
			ret = check_fresh(agent, &later, &plan->servers[i], plan->netns_inode, err);
	for (size_t i = 0; i < plan->n && !ret; i++)
		if (plan->servers[i].slot >= 0)
			ret = check_there(agent, &later, &plan->servers[i], err);
	return ret;
}
