/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/inside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/log.h"
#include "agent/private.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "inside/binary.h"
#include "inside/process.h"

#define LOOK_AGAIN 10 /* turns after which further processes are looked for */
#define KEPT_NS (60 * WEIR_NS_PER_S)

/* A process that listens, and what it is. why: it is not looked into. */
struct inside_served {
	struct inside_process process;
	struct inside_binary binary;
	int fd; /* of the binary, so that its inode is no other's */
	__u64 bias;
	bool answers; /* its requests can be refused; else no_answer says why not */
	struct error no_answer;
	struct error why;
};

struct inside_server {
	struct inside_listeners listeners;
	struct inside_served served[INSIDE_PROCESSES_MAX];
	size_t n;
	unsigned int turns; /* since processes were looked for */
	bool in_force;	    /* the kernel has them as they are here */
	bool ends;	    /* the ends of their requests are probed, too */
	struct error why;   /* nobody is looked into */
};

static void served_clear(struct inside_server *inside)
{
	for (size_t i = 0; i < inside->n; i++) {
		if (inside->served[i].fd >= 0)
			close(inside->served[i].fd);
	}
	inside->n = 0;
}

/* May this agent look into servers at all? */
static int check_allowed(const struct agent *agent, struct error *err)
{
	if (agent->options->inside_off)
		return error_set(err, -EPERM, "this agent looks into no server (weir agent --inside off)");
	return datapath_inside_check(err);
}

static bool is_followed(const struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];

	return server && !check_allowed(agent, NULL) && server->inside != INSIDE_OFF && !server->draining &&
	       agent->servers[slot].in_force;
}

bool inside_wanted(const struct agent *agent)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (is_followed(agent, slot) || agent->servers[slot].inside)
			return true;
	return false;
}

/* --- finding */

/* Can its requests be refused? */
static void check_answer(struct inside_served *served)
{
	served->no_answer = served->binary.no_answer;
	if (!served->binary.answer.n_probes)
		return;
	served->answers = datapath_inside_answers();
	if (!served->answers)
		error_set(&served->no_answer, -ENOTSUP,
			  "the kernel lets no program write a server's registers: before Linux 6.18, or locked down");
}

static void examine(struct inside_served *served, const struct inside_process *process)
{
	struct error why;
	int ret;

	*served = (struct inside_served){ .process = *process };
	ret = served->fd = inside_process_open(process->id, &why);
	if (ret >= 0)
		ret = inside_binary_read(served->fd, process->command, &served->binary, &why);
	if (!ret && served->binary.pie)
		ret = inside_load_bias(process->id, &served->bias, &why);
	if (ret) /* what was looked for in vain, and can be missed, is in it, too */
		served->why = why;
	else
		check_answer(served);
}

/* What was known of it before stays so; NULL: nothing was. */
static struct inside_served *known(struct inside_server *inside, const struct inside_process *process)
{
	for (size_t i = 0; i < inside->n; i++) {
		const struct inside_process *before = &inside->served[i].process;

		if (before->id == process->id && before->start == process->start && before->device == process->device &&
		    before->inode == process->inode)
			return &inside->served[i];
	}
	return NULL;
}

/* Has everything stayed as it was? */
static bool is_unchanged(struct inside_server *inside, const struct inside_listeners *listeners)
{
	if (!inside_listeners_equal(&inside->listeners, listeners))
		return false;
	for (size_t i = 0; i < inside->n; i++) {
		struct inside_process now = { .id = inside->served[i].process.id };

		if (inside_process_read(&now, NULL) || !known(inside, &now))
			return false;
	}
	return true;
}

/* Finds the processes anew, into *next; what is known is not read again. 1: they are others than before. */
static int find(struct inside_server *inside, struct inside_server *next, struct error *err)
{
	CLEANUP_FREE struct inside_process *found = calloc(INSIDE_PROCESSES_MAX, sizeof(*found));
	size_t same = 0;
	int n;

	if (!found)
		return error_set(err, -ENOMEM, "out of memory");
	n = inside_processes_find(&next->listeners, found, err);
	if (n < 0)
		return n;
	if (n > INSIDE_PROCESSES_MAX)
		return error_set(err, -E2BIG, "%d processes listen there: at most %d can be followed", n,
				 INSIDE_PROCESSES_MAX);
	for (int i = 0; i < n; i++) {
		struct inside_served *place = &next->served[next->n++];
		struct inside_served *before = known(inside, &found[i]);

		if (!before) {
			examine(place, &found[i]);
			continue;
		}
		*place = *before;
		before->fd = -1; /* it is the next one's now */
		same++;
	}
	return same != (size_t)n || inside->n != next->n;
}

/* The same, where there may be a difference. 0: *next is not filled in. */
static int find_changes(struct net *net, const struct server *server, struct inside_server *inside,
			struct inside_server *next, bool *found, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);
	int ret = inside_listeners_read(net->fd, server->listens, server->n_listens, &next->listeners, err);

	*found = false;
	if (ret || (is_unchanged(inside, &next->listeners) && ++inside->turns < LOOK_AGAIN))
		return ret;
	ret = find(inside, next, err);
	*found = ret >= 0;
	return ret;
}

/* --- the kernel */

static bool is_answered(const struct agent *agent, int slot, const struct inside_served *served)
{
	return served->answers && agent->state.servers[slot]->inside != INSIDE_SEE;
}

/* Is somebody to hold places until his request ends? Else nobody's end is probed. */
static bool has_places(const struct server *server)
{
	for (size_t i = 0; i < server->priorities.n_levels; i++)
		if (!server->priorities.levels[i].exempt)
			return true;
	for (size_t i = 0; i < server->n_limits; i++)
		if (server->limits[i].kind == WEIR_LIMIT_IN_FLIGHT)
			return true;
	return false;
}

static size_t processes_of(const struct agent *agent, int slot, struct datapath_process *out)
{
	struct inside_server *inside = agent->servers[slot].inside;
	size_t n = 0;

	for (size_t i = 0; inside && i < inside->n; i++) {
		struct inside_served *served = &inside->served[i];
		struct datapath_binary *binary;

		if (served->why.text[0])
			continue;
		binary = is_answered(agent, slot, served) ? &served->binary.answer : &served->binary.see;
		binary->device = served->process.device;
		binary->inode = served->process.inode;
		binary->fd = served->fd;
		out[n++] = (struct datapath_process){
			.id = served->process.id,
			.process = { .start = served->process.start, .server = slot, .layout = served->binary.layout },
			.binary = binary,
		};
		out[n - 1].process.layout.user_itab += served->bias;
		out[n - 1].process.layout.ends = inside->ends;
	}
	return n;
}

/* Of all servers of the namespace: what was found is in force. */
static void mark_in_force(const struct net *net)
{
	struct agent *agent = net->agent;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		if (agent->servers[slot].inside && server_net(agent, agent->state.servers[slot]) == net)
			agent->servers[slot].inside->in_force = true;
	}
}

static int write_processes(struct net *net, const struct datapath_process *processes, size_t n, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_inside_sync(net->dp, processes, n, err);
}

static int sync_net(struct net *net, struct error *err)
{
	const struct agent *agent = net->agent;
	CLEANUP_FREE struct datapath_process *processes = calloc(WEIR_MAX_SERVERS * INSIDE_PROCESSES_MAX,
								 sizeof(*processes));
	size_t n = 0;
	int ret;

	if (!processes)
		return error_set(err, -ENOMEM, "out of memory");
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		if (is_followed(agent, slot) && server_net(agent, agent->state.servers[slot]) == net)
			n += processes_of(agent, slot, processes + n);
	}
	ret = write_processes(net, processes, n, err);
	if (!ret)
		mark_in_force(net);
	return ret;
}

/* Why it is not looked into as was asked for; NULL: it is. */
static const char *not_served(const struct agent *agent, int slot, const struct inside_served *served)
{
	if (served->why.text[0])
		return served->why.text;
	if (agent->state.servers[slot]->inside == INSIDE_ANSWER && !served->answers)
		return served->no_answer.text;
	return NULL;
}

static bool is_whole(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;

	if (!inside || !inside->in_force || !inside->n)
		return false;
	for (size_t i = 0; i < inside->n; i++)
		if (not_served(agent, slot, &inside->served[i]))
			return false;
	return true;
}

bool inside_decides(const struct agent *agent, const struct server *server)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (agent->state.servers[slot] == server)
			return server->inside != INSIDE_OFF && is_whole(agent, slot);
	return false;
}

/* --- following */

static void note(struct agent *agent, int slot, const struct error *why)
{
	struct inside_server *inside = agent->servers[slot].inside;

	if (why->text[0] && strcmp(why->text, inside->why.text) != 0)
		log_warning("server \"%s\": nothing is seen inside: %s", agent->state.servers[slot]->name, why->text);
	inside->why = *why;
}

static void log_served(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;

	for (size_t i = 0; i < inside->n; i++) {
		const struct inside_served *served = &inside->served[i];

		if (served->why.text[0])
			log_warning("server \"%s\": process %d (%s) is not looked into: %s",
				    agent->state.servers[slot]->name, served->process.id, served->process.command,
				    served->why.text);
		else
			log_info("server \"%s\": requests are seen inside process %d (%s)",
				 agent->state.servers[slot]->name, served->process.id, served->binary.what);
	}
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
	ret = find_changes(server_net(agent, server), server, inside, next, &found, err);
	if (!found)
		return ret;
	next->why = inside->why;
	next->in_force = inside->in_force && !ret;
	next->ends = inside->ends;
	served_clear(inside);
	*inside = *next;
	if (ret)
		log_served(agent, slot);
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
		if (!not_served(agent, slot, &inside->served[i]))
			return 0;
	return error_set(err, -ENOTSUP, "process %d (%s): %s", inside->served[0].process.id,
			 inside->served[0].process.command, not_served(agent, slot, &inside->served[0]));
}

static void drop(struct agent *agent, int slot)
{
	served_clear(agent->servers[slot].inside);
	free(agent->servers[slot].inside);
	agent->servers[slot].inside = NULL;
}

/* Limits on requests in flight have come, or the last one has gone. */
static bool ends_change(struct agent *agent, int slot)
{
	struct inside_server *inside = agent->servers[slot].inside;
	bool wanted = has_places(agent->state.servers[slot]), changes = inside->ends != wanted;

	inside->ends = wanted;
	return changes;
}

/* Are other processes than before to be looked into? */
static bool follow(struct agent *agent, int slot)
{
	struct error why = { 0 };
	int changed;

	if (!is_followed(agent, slot)) {
		drop(agent, slot);
		return true;
	}
	changed = look(agent, slot, &why);
	if (!agent->servers[slot].inside)
		return false;
	if (changed >= 0)
		check_served(agent, slot, &why);
	note(agent, slot, &why);
	return ends_change(agent, slot) || changed > 0;
}

/* A kernel that refuses says so for each of the servers. */
static void sync_all(struct agent *agent, struct net *net)
{
	struct error err = { 0 };

	if (!sync_net(net, &err))
		return;
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (is_followed(agent, slot) && server_net(agent, agent->state.servers[slot]) == net)
			note(agent, slot, &err);
}

static void sweep(struct net *net)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	datapath_inside_sweep(net->dp, clock_ns(CLOCK_MONOTONIC) - KEPT_NS, NULL);
}

/* Is this server one of the namespace, and is it looked into, or was it? */
static bool is_of(const struct net *net, int slot)
{
	const struct agent *agent = net->agent;
	const struct server *server = agent->state.servers[slot];

	return server && server_net(agent, server) == net && (is_followed(agent, slot) || agent->servers[slot].inside);
}

/* Those that are decided inside are not held. */
static void apply_flags(struct net *net)
{
	struct agent *agent = net->agent;
	struct error err;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (is_of(net, slot) && server_apply_flags(agent, slot, &err))
			log_error("%s", err.text);
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
		if (changed)
			apply_flags(net);
		sweep(net);
	}
	agent_work_end(agent);
}

void inside_limits_changed(struct agent *agent)
{
	for (struct net *net = agent->nets; net; net = net->next) {
		bool changed = false;

		for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
			if (is_of(net, slot) && is_followed(agent, slot) && agent->servers[slot].inside)
				changed |= ends_change(agent, slot);
		if (changed)
			sync_all(agent, net);
	}
}

int inside_open(const struct agent *agent, struct datapath *dp, struct error *err)
{
	return check_allowed(agent, NULL) ? datapath_inside_sync(dp, NULL, 0, err) : 0;
}

int inside_attach(struct agent *agent, int slot, struct error *err)
{
	int ret = agent->state.servers[slot]->inside == INSIDE_OFF ? 0 : check_allowed(agent, err);

	if (ret || !is_followed(agent, slot))
		return ret;
	ret = look(agent, slot, err);
	if (ret < 0)
		return ret;
	ret = check_served(agent, slot, err);
	if (ret == -ENOENT) {
		note(agent, slot, err);
		return 0;
	}
	ends_change(agent, slot);
	return ret								    ?:
		       sync_net(server_net(agent, agent->state.servers[slot]), err) ?:
		       server_apply_flags(agent, slot, err);
}

void inside_forget(struct agent *agent, int slot)
{
	struct inside_server *inside = agent->servers[slot].inside;
	struct net *net = server_net(agent, agent->state.servers[slot]);
	struct error err;

	if (!inside)
		return;
	drop(agent, slot);
	if (net && sync_net(net, &err))
		log_error("%s", err.text);
}

/* --- status */

static json_t *list_processes(const struct inside_server *inside)
{
	json_t *list = json_array();

	for (size_t i = 0; inside && i < inside->n; i++) {
		const struct inside_served *served = &inside->served[i];
		bool seen = !served->why.text[0];

		json_array_append_new(list,
				      json_pack("{s:i, s:s, s:s?, s:s?}", "pid", (int)served->process.id, "command",
						served->process.command, "what", seen ? served->binary.what : NULL,
						"why", seen ? NULL : served->why.text));
	}
	return list;
}

static const struct inside_served *first_seen(const struct inside_server *inside)
{
	for (size_t i = 0; inside && i < inside->n; i++)
		if (!inside->served[i].why.text[0])
			return &inside->served[i];
	return NULL;
}

json_t *inside_status(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;
	const struct server *server = agent->state.servers[slot];
	struct error refused = { 0 };
	const struct inside_served *seen = inside && inside->in_force ? first_seen(inside) : NULL;
	const char *why = inside && inside->why.text[0] ? inside->why.text : NULL, *lane = "off";
	CLEANUP_FREE char *text = NULL;
	struct utsname kernel;

	if (server->inside != INSIDE_OFF && check_allowed(agent, &refused))
		why = refused.text;
	uname(&kernel);
	if (seen && !why)
		lane = is_answered(agent, slot, seen) ? "answer" : "see";
	if (seen && !why && asprintf(&text, "%s (%s, Linux %s)", lane, seen->binary.what, kernel.release) < 0)
		text = NULL;
	if (seen && !why && server->inside == INSIDE_AUTO && !seen->answers)
		why = seen->no_answer.text;
	return json_pack("{s:s, s:s, s:s?, s:s?, s:o}", "asked", inside_mode_name(server->inside), "lane", lane, "text",
			 text, "why", why, "processes", list_processes(inside));
}

const char *inside_lane(const struct agent *agent, int slot)
{
	const struct inside_server *inside = agent->servers[slot].inside;
	const struct inside_served *seen = inside && inside->in_force && !inside->why.text[0] ? first_seen(inside) :
												NULL;

	if (!seen)
		return "wire";
	return is_answered(agent, slot, seen) ? "answer" : "see";
}
