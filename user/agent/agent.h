/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The agent, and who may work with it when. Four kinds of threads use it:
 *
 *   the event loop, which owns libevent and the clients: it reads, answers, and adds jobs. It waits for nothing else.
 *   the thread of jobs (jobs.h), which carries out changes, one after the other.
 *   workers (reconcile.c), which bring up and repair servers.
 *   the sweeper (sweep.c), which looks through tables of connections.
 *
 * Jobs and workers take turns (agent_work_begin()). Whose turn it is has the lock as well, which is that of all memory, and
 * lets go of it for whatever takes time: files, the maps, plans (agent_release()). So the event loop, which takes the lock
 * alone, never waits for those. The turn itself passes on while the kernel loads programs. So that
 * nothing is freed meanwhile of what its holder has found, changes and repairs keep out of each other's way
 * (agent_change_begin()).
 *
 * What a command says is what is in force, and what is saved: a change is saved before it is applied, and one that cannot be
 * saved is not made. Only what is turned off is off first (unsaved.h). An agent that is started makes the kernel what the file
 * says, wherever the one before it was killed.
 */
#ifndef WEIR_USER_AGENT_AGENT_H
#define WEIR_USER_AGENT_AGENT_H

#include <event2/event.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <time.h>

#include "agent/options.h"
#include "agent/rates.h"
#include "control/control.h"
#include "datapath/datapath.h"
#include "metrics/metrics.h"
#include "metrics/top.h"
#include "state/state.h"

struct agent;
struct followed_paths;
struct history;
struct inside_server;
struct jobs;
struct net;
struct reader;
struct reconcile;
struct sweeper;

/* The tokens and addresses of a server that were read last, which its files may no longer say. */
struct identity_read {
	bool done;
	struct datapath_token *tokens;
	struct datapath_address *addresses;
	int n_tokens, n_addresses;
};

/* What was unwise about a server's ports lately, as warnings (listening.c). NULL: nothing, or it is not known. Owned. */
struct server_listening {
	char *nobody; /* listens on some of them */
	char *udp;    /* is taken on some, too */
};

struct agent {
	const struct agent_options *options;
	pthread_mutex_t turn;	/* to work; taken before the lock */
	pthread_cond_t settled; /* of the turn: a change or a repair has ended, a namespace was opened */
	pthread_mutex_t
		lock; /* of all memory: whoever changes it has the turn, too, but for what the event loop owns */
	pthread_cond_t looked;	/* of the lock: a server was tried or is gone, or the agent ends */
	bool released;		/* whose turn it is has let go of the lock */
	bool changing;		/* somebody changes what is wanted, or is about to */
	unsigned int repairing; /* workers that have a server in hand */
	bool ending;		/* nothing new is begun */
	struct event_base *base;
	struct state state;
	struct {
		bool in_force;
		bool tried;		   /* to be put in force */
		bool incomplete;	   /* what it was attached with is not all in force yet */
		struct error problem;	   /* why it is not, or what could not be repaired */
		struct error identity_err; /* the last failure to read its files of tokens and addresses */
		struct error warning;	   /* what is unwise about them */
		struct server_listening listening;
		char *held_elsewhere; /* owned: why it is not held on the cgroup that was asked for. NULL: it is, or nowhere */
		bool held_in_part; /* on less than all of the machine's cgroups */
		struct identity_read read;
		struct inside_server *inside; /* whom it is looked into (inside.c); NULL: nobody yet */
		unsigned int deserted;	      /* looks in a row at a namespace that only the agent keeps (deserted.c) */
		bool traced;		      /* its requests are, for some reader */
		struct rates rates;	      /* as it was asked lately (rates.h) */
		__u64 drift[DATAPATH_N_PARTS]; /* what others had changed, and was repaired */
	} servers[WEIR_MAX_SERVERS];
	struct net *nets;
	int devices_fd, rings_fd; /* the namespaces' descriptors (net_watch.c) */
	struct access_control access;
	struct followed_paths *followed;	/* NULL: none (follow/follow.h) */
	struct opening *openings;		/* namespaces whose programs are being loaded */
	struct datapath_written written_before; /* in namespaces that are closed */
	struct reconcile *reconcile;		/* NULL: no workers */
	struct jobs *jobs;			/* NULL: who adds one does it */
	struct history *history;		/* the jobs' alone (commands/history.h) */
	/* Called when a server has ended; or NULL. */
	void (*ended)(struct agent *agent, const char *name);
	struct metrics_top top;		    /* as the history has it */
	struct sweeper *sweeper;	    /* NULL: whoever wakes it sweeps */
	struct control_client *client;	    /* who gave the command that the event loop carries out */
	LIST_HEAD(readers, reader) readers; /* who trace */
	json_t *leftovers;		    /* cookies of namespaces (leftovers.h) */
	json_t *events;			    /* the latest refusals, the oldest first (events.c) */
	struct timespec started;	    /* CLOCK_REALTIME */
	struct error unsaved;		    /* why what is in force is not in the file (unsaved.h) */
	atomic_bool ready;		    /* the first job is done: what the state knows was brought up */
	__u64 control_requests;
	__u64 control_errors;
};

/* lock.c */
void agent_init(struct agent *agent, const struct agent_options *options);
void agent_destroy(struct agent *agent);
void agent_lock(struct agent *agent);
void agent_unlock(struct agent *agent);
/* A turn, with the lock. */
void agent_work_begin(struct agent *agent);
void agent_work_end(struct agent *agent);
/* Within a turn: passes it on until a change or a repair has ended, or a namespace was opened. */
void agent_wait(struct agent *agent);
/*
 * Within a turn: lets go of the lock until CLEANUP_RETAKE, for what takes time. Memory that others read must not change
 * meanwhile. Where the lock is not held already, this does nothing.
 */
struct agent *agent_release(struct agent *agent);
void agent_retake(struct agent **released);
#define CLEANUP_RETAKE __attribute__((cleanup(agent_retake), unused))
/*
 * A turn, for one who changes what is wanted, or for workers who bring it about. Either may pass on the turn and take it
 * again: a change still has no worker beside it, and a worker no change, until the end. At most one thread changes.
 */
void agent_change_begin(struct agent *agent);
void agent_change_end(struct agent *agent);
void agent_repair_begin(struct agent *agent);
void agent_repair_end(struct agent *agent);
/* Nothing is begun any more: neither jobs nor servers that are not in force. */
void agent_end(struct agent *agent);

/* load.c: reads the state, tells where it is from, and takes up what an earlier agent could not save. */
int agent_load(struct agent *agent, struct error *err);

#endif
