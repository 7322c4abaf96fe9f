/* SPDX-License-Identifier: GPL-2.0 */
/* Hands the processes of servers that are looked into to the kernel. */
#include <errno.h>
#include <stdlib.h>

#include "agent/servers.h"
#include "weir/inside/share.h"

#include "agent/inside_private.h"
#include "base/cleanup.h"

const char *inside_not_seen(const struct inside_served *served)
{
	if (served->why.text[0])
		return served->why.text;
	return served->taken.text[0] ? served->taken.text : NULL;
}

__u32 inside_share(const struct server *server)
{
	return server->inside_share ?: WEIR_INSIDE_ALL;
}

bool inside_can_answer(const struct server *server, const struct inside_served *served, const char **why)
{
	*why = server->write_memory ? served->no_write.text : served->no_answer.text;
	return served->answers || (server->write_memory && served->writes);
}

bool inside_is_answered(const struct agent *agent, int slot, const struct inside_served *served)
{
	const struct inside_server *inside = agent->servers[slot].inside;
	const char *why;

	return inside->lane == INSIDE_ANSWER && inside_can_answer(agent->state.servers[slot], served, &why) &&
	       !inside->blind.text[0];
}

/* Registers are written where they can be. */
static struct datapath_binary *probes_of(const struct agent *agent, int slot, struct inside_served *served)
{
	if (!inside_is_answered(agent, slot, served))
		return &served->binary.see;
	return served->answers ? &served->binary.answer : &served->binary.write;
}

static size_t processes_of(const struct agent *agent, int slot, struct datapath_process *out)
{
	struct inside_server *inside = agent->servers[slot].inside;
	size_t n = 0;

	for (size_t i = 0; inside && inside->lane != INSIDE_OFF && i < inside->n; i++) {
		struct inside_served *served = &inside->served[i];
		struct datapath_binary *binary;

		if (inside_not_seen(served))
			continue;
		binary = probes_of(agent, slot, served);
		binary->device = served->process.device;
		binary->inode = served->process.inode;
		binary->fd = served->fd;
		out[n++] = (struct datapath_process){
			.id = served->process.id,
			.process = { .start = served->process.start, .server = slot, .layout = served->binary.layout },
			.binary = binary,
		};
		inside_layout_move(&out[n - 1].process.layout, served->bias);
		if (!inside_is_answered(agent, slot, served))
			out[n - 1].process.layout.refuses = WEIR_INSIDE_REFUSES_NOWHERE;
		out[n - 1].process.layout.ends = inside->ends;
		out[n - 1].process.layout.share = inside_share(agent->state.servers[slot]);
	}
	return n;
}

/* Of all servers of the namespace: what was found is in force. */
static void mark_in_force(const struct net *net)
{
	struct agent *agent = net->agent;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		struct inside_server *inside = agent->servers[slot].inside;

		if (!inside || server_net(agent, agent->state.servers[slot]) != net)
			continue;
		inside->in_force = true;
		inside->pending = false;
		inside->failed = (struct error){ 0 };
	}
}

static int write_processes(struct net *net, const struct datapath_process *processes, size_t n, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_inside_sync(net->dp, processes, n, err);
}

_Static_assert(WEIR_MAX_INSIDE_PROCESSES / INSIDE_PROCESSES_MAX >= WEIR_MAX_SERVERS, "each has a place in the kernel");

int inside_sync_net(struct net *net, struct error *err)
{
	const struct agent *agent = net->agent;
	CLEANUP_FREE struct datapath_process *processes = calloc(WEIR_MAX_SERVERS * INSIDE_PROCESSES_MAX,
								 sizeof(*processes));
	size_t n = 0;
	int ret;

	if (!processes)
		return error_set(err, -ENOMEM, "out of memory");
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		if (inside_is_followed(agent, slot) && server_net(agent, agent->state.servers[slot]) == net)
			n += processes_of(agent, slot, processes + n);
	}
	ret = write_processes(net, processes, n, err);
	if (!ret)
		mark_in_force(net);
	return ret;
}

const char *inside_not_served(const struct agent *agent, int slot, const struct inside_served *served)
{
	const struct server *server = agent->state.servers[slot];
	const struct net *net = server_net(agent, server);
	const char *why;

	if (inside_not_seen(served))
		return inside_not_seen(served);
	if (server->inside == INSIDE_ANSWER && !inside_can_answer(server, served, &why))
		return why;
	if (server->inside == INSIDE_HOLD && net && !net->hold_runs && net->hold_err.text[0])
		return net->hold_err.text;
	return NULL;
}

/* Are all listening processes looked into? If looking for them failed, there may be others than those that are known. */
static bool is_whole(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;

	if (!inside || !inside->in_force || !inside->n || inside->why.text[0])
		return false;
	for (size_t i = 0; i < inside->n; i++)
		if (inside_not_served(agent, slot, &inside->served[i]))
			return false;
	return true;
}

static int slot_of(const struct agent *agent, const struct server *server)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (agent->state.servers[slot] == server)
			return slot;
	return -1;
}

bool inside_decides(const struct agent *agent, const struct server *server)
{
	int slot = slot_of(agent, server);

	return slot >= 0 && server->inside != INSIDE_OFF && is_whole(agent, slot) && inside_lets_go(agent, slot);
}

bool inside_holds(const struct agent *agent, const struct server *server)
{
	return server->inside == INSIDE_HOLD && inside_decides(agent, server) &&
	       !agent->servers[slot_of(agent, server)].inside->blind.text[0];
}

bool inside_shows_open(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;

	if (!inside_decides(agent, agent->state.servers[slot]))
		return false;
	for (size_t i = 0; i < inside->n; i++)
		if (!inside->served[i].binary.layout.state)
			return false;
	return true;
}
