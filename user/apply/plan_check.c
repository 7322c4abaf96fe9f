/* SPDX-License-Identifier: GPL-2.0 */
/* What carrying out a plan would find first, for who only wants to know what it would change. */
#include <string.h>

#include "agent/net.h"
#include "agent/servers.h"
#include "apply/plan.h"
#include "base/cleanup.h"
#include "policy/policy.h"

/* Who may only read is not told what else is at a path. */
static int find_netns(struct agent *agent, const struct planned *p, json_t *netns_inode, struct error *err)
{
	CLEANUP_CLOSE int fd = -1;
	int ret;

	if (!p->made->netns)
		return server_check_home(netns_inode, err) ?:
							     net_open(agent, p->made, &fd, &p->made->netns_cookie, err);
	ret = net_open(agent, p->made, &fd, &p->made->netns_cookie, NULL);
	return ret ? error_set(err, ret, "server \"%s\": there is no network namespace %s", p->name, p->made->netns) :
		     0;
}

static int check_fresh(struct agent *agent, struct state *later, struct planned *p, json_t *netns_inode,
		       struct error *err)
{
	int ret = find_netns(agent, p, netns_inode, err), slot = 0;

	while (later->servers[slot]) /* there is room: plan_target() */
		slot++;
	later->servers[slot] = p->made;
	return ret ?: state_check(later, p->made, err);
}

static int check_there(const struct agent *agent, struct state *later, struct planned *p, struct error *err)
{
	later->servers[p->slot] = p->made;
	return policy_same_settings(agent->state.servers[p->slot], p->made) ? 0 : state_check(later, p->made, err);
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
