/* SPDX-License-Identifier: GPL-2.0 */
/* Follows the processes of servers that are looked into, and hands them to the kernel. */
#include <errno.h>
#include <string.h>

#include "agent/inside_private.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/log.h"

static void served_clear(struct inside_server *inside)
{
	for (size_t i = 0; i < inside->n; i++) {
		if (inside->served[i].fd >= 0)
			close(inside->served[i].fd);
	}
	free(inside->served);
	inside->served = NULL;
	inside->n = 0;
}

/* May this agent look into servers at all? */
int inside_check_allowed(const struct agent *agent, struct error *err)
{
	if (agent->options->inside_off)
		return error_set(err, -EPERM, "this agent looks into no server (weir agent --inside off)");
	return datapath_inside_check(err);
}

bool inside_is_followed(const struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];

	return server && !inside_check_allowed(agent, NULL) && server->inside != INSIDE_OFF && !server->draining &&
	       agent->servers[slot].in_force;
}

bool inside_wanted(const struct agent *agent)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (inside_is_followed(agent, slot) || agent->servers[slot].inside)
			return true;
	return false;
}

/* --- following */

/* Of requests whose memory was not there when it was to be read: with more of them, none is refused any more. */
#define BLIND_SHARE 10000 /* one in so many */
#define BLIND_FEW 10	  /* no fewer than that: they say nothing */

static __u64 count_of_read(const struct agent *agent, int slot, __u64 *failed)
{
	__u64 counters[WEIR_REASON_COUNT];

	*failed = 0;
	if (datapath_counters(server_net(agent, agent->state.servers[slot])->dp, slot, counters, NULL))
		return 0;
	*failed = counters[WEIR_INSIDE_UNREADABLE];
	return counters[WEIR_INSIDE_SEEN];
}

/* Has it changed whether somebody is looked into? */
static bool note(struct agent *agent, int slot, const struct error *why)
{
	struct inside_server *inside = agent->servers[slot].inside;
	const struct server *server = agent->state.servers[slot];
	bool changes = !why->text[0] != !inside->why.text[0];
	bool is_new = why->text[0] && strcmp(why->text, inside->why.text) != 0;

	if (is_new && server->inside == INSIDE_AUTO)
		log_info("server \"%s\": it is not looked into: %s", server->name, why->text);
	else if (is_new)
		log_warning("server \"%s\": nothing is seen inside: %s", server->name, why->text);
	inside->why = *why;
	return changes;
}

static void log_served(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;

	for (size_t i = 0; i < inside->n; i++) {
		const struct inside_served *served = &inside->served[i];

		if (inside_not_seen(served))
			log_warning("server \"%s\": process %d (%s) is not looked into: %s",
				    agent->state.servers[slot]->name, served->process.id, served->process.command,
				    inside_not_seen(served));
		else if (inside_is_answered(agent, slot, served) && !served->answers)
			log_warning(
				"server \"%s\": requests are refused by memory: process %d (%s) has its memory written",
				agent->state.servers[slot]->name, served->process.id, served->binary.what);
		else
			log_info("server \"%s\": requests are seen inside process %d (%s)",
				 agent->state.servers[slot]->name, served->process.id, served->binary.what);
	}
}

/* What is known of the server, though not of its processes; what is known of those, where they are the same. */
static void carry(const struct inside_server *from, struct inside_server *to, bool same)
{
	to->why = from->why;
	to->failed = from->failed;
	to->pending = from->pending;
	to->ends = from->ends;
	to->lane = from->lane;
	to->unchosen = from->unchosen;
	to->present = from->present; /* the next one's now */
	if (!same)
		return;
	to->in_force = from->in_force;
	to->proven = from->proven;
	to->blind = from->blind;
	to->read_before = from->read_before;
	to->failed_before = from->failed_before;
}

/* 1: other processes than before are to be looked into. */
static int look(struct agent *agent, int slot, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	CLEANUP_FREE struct inside_server *next = calloc(1, sizeof(*next));
	struct inside_server *inside = agent->servers[slot].inside;
	bool found;
	int ret;

	if (!inside)
		inside = agent->servers[slot].inside = calloc(1, sizeof(*inside));
	if (!inside || !next)
		return error_set(err, -ENOMEM, "out of memory");
	ret = inside_find_changes(server_net(agent, server), server, inside, next, &found, err);
	if (!found)
		return ret;
	carry(inside, next, !ret);
	served_clear(inside);
	*inside = *next;
	inside_taken_change(agent, slot);
	if (ret)
		inside->read_before = count_of_read(agent, slot, &inside->failed_before);
	return ret;
}

/* Nobody listens, or nobody whom weir can look into. */
static int check_served(const struct agent *agent, int slot, struct error *err)
{
	const struct inside_server *inside = agent->servers[slot].inside;

	if (!inside->n)
		return error_set(err, -ENOENT,
				 inside->listeners.n ?
					 "the process that listens there is none that this agent sees (hostPID)" :
					 "no process listens there yet");
	for (size_t i = 0; i < inside->n; i++)
		if (!inside_not_served(agent, slot, &inside->served[i]))
			return 0;
	return error_set(err, -ENOTSUP, "process %d (%s): %s", inside->served[0].process.id,
			 inside->served[0].process.command, inside_not_served(agent, slot, &inside->served[0]));
}

static void drop(struct agent *agent, int slot)
{
	served_clear(agent->servers[slot].inside);
	inside_present_clear(&agent->servers[slot].inside->present);
	free(agent->servers[slot].inside);
	agent->servers[slot].inside = NULL;
}

/* Has the server become one whose requests cannot be read well enough to refuse any? Until other processes serve it. */
static bool blind_change(struct agent *agent, int slot)
{
	struct inside_server *inside = agent->servers[slot].inside;
	const struct server *server = agent->state.servers[slot];
	__u64 failed, read = count_of_read(agent, slot, &failed) - inside->read_before;

	failed -= inside->failed_before;
	if (inside->blind.text[0] || server->inside == INSIDE_SEE || failed < BLIND_FEW ||
	    failed * BLIND_SHARE <= read + failed)
		return false;
	error_set(
		&inside->blind, -EIO,
		"%llu of %llu requests could not be read in its memory, more than one in %d: nobody is refused in it until it restarts",
		failed, read + failed, BLIND_SHARE);
	log_warning("server \"%s\": %s", server->name, inside->blind.text);
	return true;
}

/* Is somebody to have seats until his request ends? Else nobody's end is probed. */
static bool has_seats(const struct server *server)
{
	for (size_t i = 0; i < server->priorities.n_levels; i++)
		if (!server->priorities.levels[i].exempt)
			return true;
	for (size_t i = 0; i < server->n_limits; i++)
		if (server->limits[i].kind == WEIR_LIMIT_IN_FLIGHT)
			return true;
	return false;
}

/* Limits on requests in flight have come, or the last one has gone. */
static bool ends_change(struct agent *agent, int slot)
{
	struct inside_server *inside = agent->servers[slot].inside;
	bool wanted = has_seats(agent->state.servers[slot]), changes = inside->ends != wanted;

	inside->ends = wanted;
	return changes;
}

/* anew: its processes are others than before. Has the lane changed, or what is held in it? */
static bool choose(const struct agent *agent, int slot, bool anew)
{
	const struct inside_server *inside = agent->servers[slot].inside;
	const struct server *server = agent->state.servers[slot];
	enum inside_mode before = inside->lane;
	bool changes = inside_choose(agent, slot);

	if (server->inside == INSIDE_AUTO && inside->lane != before)
		log_info("server \"%s\": inside: %s%s%s", server->name, inside_modes.words[inside->lane],
			 inside->unchosen.text[0] ? ": " : "", inside->unchosen.text);
	if (inside->lane != INSIDE_OFF && (anew || inside->lane != before))
		log_served(agent, slot);
	return changes;
}

/*
 * Does the kernel need to be told of other processes, or of something else about the same ones? What it did not take is tried again each
 * time that processes were looked for.
 */
static bool follow(struct agent *agent, int slot)
{
	struct error why = { 0 };
	bool ends, blind, taken, chosen, noted;
	int changed;

	if (!inside_is_followed(agent, slot)) {
		drop(agent, slot);
		return true;
	}
	changed = look(agent, slot, &why);
	if (!agent->servers[slot].inside)
		return false;
	taken = inside_taken_change(agent, slot);
	if (changed >= 0)
		check_served(agent, slot, &why);
	noted = note(agent, slot, &why);
	ends = ends_change(agent, slot);
	blind = blind_change(agent, slot);
	chosen = choose(agent, slot, changed > 0);
	if (!ends && !blind && !taken && !chosen && !noted && changed <= 0)
		return agent->servers[slot].inside->pending && !agent->servers[slot].inside->turns;
	agent->servers[slot].inside->pending = true;
	return true;
}

/* The kernel has not taken it as it is: it has it as it was. */
static void note_failed(struct agent *agent, int slot, const struct error *err)
{
	struct inside_server *inside = agent->servers[slot].inside;

	if (strcmp(err->text, inside->failed.text) != 0)
		log_warning("server \"%s\": a change inside it is not in force: %s", agent->state.servers[slot]->name,
			    err->text);
	inside->failed = *err;
}

/* A kernel that refuses says so for each of the servers that were to be changed. */
static void write_all(struct agent *agent, struct net *net)
{
	struct error err = { 0 };

	if (!inside_sync_net(net, &err))
		return;
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (agent->servers[slot].inside && agent->servers[slot].inside->pending &&
		    server_net(agent, agent->state.servers[slot]) == net)
			note_failed(agent, slot, &err);
}

#define SWEEP_TURNS 10

/*
 * A change of processes sweeps by itself. But a program that runs meanwhile may keep something afterwards: so the turn behind a change does
 * so again, and each tenth one, whatever happens. It goes through large tables, of which a server's CPU should not lose its caches.
 */
static void sweep(struct net *net, bool changed)
{
	CLEANUP_RETAKE struct agent *released = NULL;

	if (changed) {
		net->inside_unswept = SWEEP_TURNS;
	} else if (++net->inside_unswept >= SWEEP_TURNS) {
		net->inside_unswept = 0;
		released = agent_release(net->agent);
		datapath_inside_sweep(net->dp, NULL);
	}
}

/* Is this server one of the namespace, and is it looked into, or was it? */
static bool is_of(const struct net *net, int slot)
{
	const struct agent *agent = net->agent;

	return net_server(net, slot) && (inside_is_followed(agent, slot) || agent->servers[slot].inside);
}

/* Those that are decided inside are not held. Servers that are looked into no more have to be. */
static void apply_flags(struct net *net)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (is_of(net, slot))
			server_refresh_flags(net->agent, slot);
}

/* TLS is held before nobody decides what is in it, and until somebody does. */
static void sync_all(struct agent *agent, struct net *net)
{
	apply_flags(net);
	write_all(agent, net);
	apply_flags(net);
}

void inside_follow(struct agent *agent)
{
	agent_work_begin(agent);
	for (struct net *net = agent->nets; net && !agent->ending; net = net->next) {
		bool changed = false;

		for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
			if (is_of(net, slot))
				changed |= follow(agent, slot);
		if (changed)
			sync_all(agent, net);
		sweep(net, changed);
	}
	agent_work_end(agent);
}

/* Is it not to be seen into any more, now that a limit is enforced? What is to be looked into is so soon. */
static bool leaves(const struct agent *agent, int slot)
{
	return agent->servers[slot].inside->lane == INSIDE_SEE && choose(agent, slot, false);
}

/* Both are asked: each notes what is so now. */
static bool limits_change(struct agent *agent, int slot)
{
	bool ends = ends_change(agent, slot), leaving = leaves(agent, slot);

	return ends || leaving;
}

void inside_limits_changed(struct agent *agent)
{
	for (struct net *net = agent->nets; net; net = net->next) {
		bool changed = false;

		for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
			if (is_of(net, slot) && inside_is_followed(agent, slot) && agent->servers[slot].inside &&
			    limits_change(agent, slot))
				changed = agent->servers[slot].inside->pending = true;
		}
		if (changed)
			sync_all(agent, net);
	}
}

int inside_open(const struct agent *agent, struct datapath *dp, struct error *err)
{
	return inside_check_allowed(agent, NULL) ? datapath_inside_sync(dp, NULL, 0, err) : 0;
}

/* Whatever its processes are, such a server is attached. */
static int follow_now(struct agent *agent, int slot, struct error *err)
{
	struct net *net = server_net(agent, agent->state.servers[slot]);

	if (!inside_is_followed(agent, slot))
		return 0;
	if (follow(agent, slot))
		sync_all(agent, net);
	return server_apply_flags(agent, slot, err);
}

int inside_attach(struct agent *agent, int slot, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	int ret;

	if (server->inside == INSIDE_AUTO)
		return follow_now(agent, slot, err);
	ret = server->inside == INSIDE_OFF ? 0 : inside_check_allowed(agent, err);
	if (ret || !inside_is_followed(agent, slot))
		return ret;
	ret = look(agent, slot, err);
	if (ret < 0)
		return ret;
	choose(agent, slot, ret);
	ret = check_served(agent, slot, err);
	if (ret == -ENOENT) {
		note(agent, slot, err);
		return 0;
	}
	ends_change(agent, slot);
	agent->servers[slot].inside->pending = true;
	return ret ?: inside_sync_net(server_net(agent, server), err) ?: server_apply_flags(agent, slot, err);
}

void inside_forget(struct agent *agent, int slot)
{
	struct inside_server *inside = agent->servers[slot].inside;
	struct net *net = server_net(agent, agent->state.servers[slot]);
	struct error err;

	if (!inside)
		return;
	drop(agent, slot);
	if (net && inside_sync_net(net, &err))
		log_error("server \"%s\": the processes that are looked into stay as they were: %s",
			  agent->state.servers[slot]->name, err.text);
}
