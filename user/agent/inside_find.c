/* SPDX-License-Identifier: GPL-2.0 */
/* Finds the processes that listen on a server's port, and what they are. */
#include <errno.h>
#include <string.h>

#include "agent/inside_private.h"
#include "agent/net.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define LOOK_AGAIN 10  /* turns after which further processes are looked for */
#define LOOK_SELDOM 60 /* the same, where nobody is looked into */

/* Can its requests be refused by registers? */
static void check_answer(struct inside_served *served)
{
	bool old;

	served->no_answer = served->binary.no_answer;
	if (!served->binary.answer.n_probes)
		return;
	served->answers = datapath_inside_answers();
	if (served->answers)
		return;
	/* Where memory may be written, it is not locked down. */
	old = datapath_inside_writes();
	error_set(&served->no_answer, -ENOTSUP,
		  "the kernel lets no program write a server's registers: %s. Use --inside hold%s",
		  old ? "Linux 6.18 and later do" : "it is locked down",
		  old && served->binary.write.n_probes ? ", or --write-memory" : "");
}

/* Or by memory, where they cannot? */
static void check_write(struct inside_served *served)
{
	const struct inside_binary *binary = &served->binary;

	if (!binary->write.n_probes) {
		error_set(&served->no_write, -ENOTSUP, "by memory it cannot refuse either: %s",
			  binary->no_write.text[0] ? binary->no_write.text :
			  binary->answer.n_probes  ? "it is no Kubernetes API server with API Priority and Fairness" :
						     binary->no_answer.text);
		return;
	}
	served->writes = datapath_inside_writes();
	if (!served->writes)
		error_set(&served->no_write, -EPERM,
			  "the kernel lets no program write a server's registers or memory: it is locked down. %s",
			  "Use --inside hold");
}

static void examine(struct inside_served *served, const struct inside_process *process)
{
	struct error why;
	int ret;

	*served = (struct inside_served){ .process = *process, .found_ns = clock_ns(CLOCK_MONOTONIC) };
	ret = served->fd = inside_process_open(process->id, &why);
	if (ret >= 0)
		ret = inside_binary_read(served->fd, process->command, &served->binary, &why);
	if (!ret)
		ret = inside_load_bias(&served->binary, process->code, &served->bias, &why);
	served->foreign = ret == -ENOEXEC;
	if (ret) { /* what was looked for in vain, and can be missed, is in it, too */
		served->why = why;
		return;
	}
	check_answer(served);
	if (!served->answers)
		check_write(served);
}

/* What was known of it before stays so; NULL: nothing was. */
static struct inside_served *known(struct inside_server *inside, const struct inside_process *process)
{
	for (size_t i = 0; i < inside->n; i++) {
		const struct inside_process *before = &inside->served[i].process;

		if (before->id == process->id && before->start == process->start && before->device == process->device &&
		    before->inode == process->inode && before->code == process->code && before->stack == process->stack)
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

/*
 * Does somebody listen who was not there a second ago, as one who has inherited the socket? Where nobody is looked into nobody is missed: what
 * cannot be read is held.
 */
static bool newcomer_listens(struct inside_server *inside, const struct inside_listeners *listeners)
{
	return inside->lane != INSIDE_OFF && inside_newcomer_listens(&inside->present, listeners) == 1;
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
	next->served = calloc(n + 1, sizeof(*next->served)); /* of nobody, too */
	if (!next->served)
		return error_set(err, -ENOMEM, "out of memory");
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

/* To look through all processes takes long: it is not done again each second. */
static void give_up(struct inside_server *inside, const struct inside_listeners *listeners, const struct error *why)
{
	inside->listeners = *listeners;
	inside->turns = 0;
	inside->unfound = *why;
}

int inside_find_changes(struct net *net, const struct server *server, struct inside_server *inside,
			struct inside_server *next, bool *found, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);
	int ret = inside_listeners_read(net->fd, server->listens, server->n_listens, &next->listeners, err);

	*found = false;
	if (ret)
		return ret;
	if (!newcomer_listens(inside, &next->listeners) && is_unchanged(inside, &next->listeners) &&
	    ++inside->turns < (inside->lane == INSIDE_OFF ? LOOK_SELDOM : LOOK_AGAIN))
		return inside->unfound.text[0] ? error_set(err, -EAGAIN, "%s", inside->unfound.text) : 0;
	ret = find(inside, next, err);
	*found = ret >= 0;
	if (!*found)
		give_up(inside, &next->listeners, err);
	return ret;
}

/* Which other server has had the process for longer? -1: none. */
static int taken_by(const struct agent *agent, int slot, const struct inside_served *served)
{
	for (int other = 0; other < WEIR_MAX_SERVERS; other++) {
		const struct inside_server *inside = agent->servers[other].inside;

		for (size_t i = 0; inside && other != slot && i < inside->n; i++) {
			const struct inside_served *theirs = &inside->served[i];

			if (theirs->process.id == served->process.id &&
			    theirs->process.start == served->process.start && theirs->found_ns < served->found_ns &&
			    !theirs->why.text[0])
				return other;
		}
	}
	return -1;
}

bool inside_taken_change(struct agent *agent, int slot)
{
	struct inside_server *inside = agent->servers[slot].inside;
	bool changes = false;

	for (size_t i = 0; i < inside->n; i++) {
		struct inside_served *served = &inside->served[i];
		int other = taken_by(agent, slot, served);

		changes |= (other >= 0) != !!served->taken.text[0];
		served->taken = (struct error){ 0 };
		if (other >= 0)
			error_set(
				&served->taken, -EBUSY,
				"it serves server \"%s\", too, which has all its requests: name both ports for one server",
				agent->state.servers[other]->name);
	}
	return changes;
}
