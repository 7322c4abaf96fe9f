/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/inside.h"
#include "agent/net.h"
#include "agent/servers.h"
#include "agent/unsaved.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "state/room.h"
#include "sys/cgroup.h"
#include "sys/netns.h"

static int free_slot(const struct state *state, struct error *err)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (!state->servers[slot])
			return slot;
	return error_set(err, -ENOSPC, "%d servers are attached: there is no room for more", WEIR_MAX_SERVERS);
}

int server_check_home(json_t *inode, struct error *err)
{
	struct stat self;

	if (!json_is_integer(inode) || stat("/proc/self/ns/net", &self) ||
	    json_integer_value(inode) == (json_int_t)self.st_ino)
		return 0;
	return error_set(err, -EXDEV, "the command and the agent run in different network namespaces: use --netns");
}

int server_check_hooks(struct agent *agent, int fd, struct server *server, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);
	int ret = net_check_interfaces(fd, server, err);

	if (!ret && server->cgroup)
		ret = cgroup_check(server->cgroup, err);
	if (!ret && !server->cgroup)
		server->cgroup = cgroup_root();
	return ret;
}

/* What only the machine can tell of a new server. */
static int check_new(struct agent *agent, struct server *server, struct error *err)
{
	CLEANUP_CLOSE int fd = -1;
	int ret = net_open(agent, server, &fd, &server->netns_cookie, err);

	if (!ret)
		ret = state_check(&agent->state, server, err) ?: state_check_room(&agent->state, server, err);
	if (!ret)
		ret = server_check_hooks(agent, fd, server, err) ?: identity_check(agent, server, err);
	return ret ?: net_clear_leftovers(agent, fd, server->netns_cookie, err);
}

/* Numbers go on from the time, so that they are others than those of a server that had the slot before. */
static int name_new(struct server *server, struct error *err)
{
	int ret;

	server->last_number = time(NULL);
	ret = server_give_numbers(server, err) ?: server_name_groups(server, err);
	return ret < 0 ? ret : 0;
}

int server_check_pace(const struct server *server, const struct net *net, struct error *err)
{
	if (server->hold != HOLD_PACE || net->paced)
		return 0;
	return error_set(err, -EOPNOTSUPP, "held traffic cannot be paced here: %s", net->pace_err.text);
}

/* Gives back a slot whose server could not be put in force. */
static void give_up(struct agent *agent, int slot)
{
	struct error err;

	if (server_end(agent, slot, &err))
		log_error("undoing an attach: %s", err.text);
}

static int bring_in(struct agent *agent, int slot, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	int ret = agent_save(agent, err) ?: server_bring_up(agent, slot, err);

	if (!ret && agent->servers[slot].identity_err.text[0])
		ret = error_set(err, -EINVAL, "%s", agent->servers[slot].identity_err.text);
	ret = ret						 ?:
		      net_settle(server_net(agent, server), err) ?:
		      server_check_pace(server, server_net(agent, server), err);
	return ret ?: inside_attach(agent, slot, err);
}

int server_attach(struct agent *agent, struct server *server, json_t *netns_inode, struct error *err)
{
	CLEANUP_SERVER struct server *owned = server;
	const struct server_listening *listening;
	int slot, ret = 0;

	if (!server->netns)
		ret = server_check_home(netns_inode, err);
	if (!ret)
		ret = check_new(agent, server, err);
	slot = ret ? ret : free_slot(&agent->state, err);
	if (slot < 0)
		return slot;
	server->draining = false;
	ret = name_new(server, err);
	if (ret)
		return ret;
	agent->state.servers[slot] = server;
	agent->servers[slot].incomplete = true;
	owned = NULL;
	ret = bring_in(agent, slot, err);
	if (ret) {
		give_up(agent, slot);
		return ret;
	}
	log_info("server \"%s\" is attached", server->name);
	server_listen(agent, slot);
	listening = &agent->servers[slot].listening;
	if (listening->nobody)
		log_warning("server \"%s\": %s", server->name, listening->nobody);
	if (listening->udp)
		log_warning("server \"%s\": %s", server->name, listening->udp);
	return slot;
}
