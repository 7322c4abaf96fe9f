/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the agent's parts share. Four kinds of threads use it:
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
 * The state's file never knows less than the kernel: what a command adds is saved before it is applied, what it takes away is
 * saved afterwards. So an agent that was killed anywhere finds all it has made.
 */
#ifndef WEIR_USER_AGENT_PRIVATE_H
#define WEIR_USER_AGENT_PRIVATE_H

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
#include "probe/probe.h"
#include "state/state.h"

struct agent;
struct followed_paths;
struct history;
struct inside_server;
struct jobs;
struct reader;
struct reconcile;
struct sweeper;

/* A network namespace in use. */
struct net {
	struct agent *agent;
	struct net *next;
	__u64 cookie;
	int fd;
	struct datapath *dp;
	struct datapath_written written; /* as it was when the lock was taken last */
	bool devices_changed;		 /* since they were last read */
	bool leaving;			 /* its last server is gone, and so is it soon */
	__u64 swept;			 /* round of the sweeper (sweep.c) */
	bool loopback_tracked;		 /* by conntrack, so translated connections would be invalid to it */
	bool loopback_known;		 /* it was found out once */
	struct error links_err;		 /* the last failure to follow the devices, so that it is logged once */
	struct error hold_err;		 /* the same, to reach the sockets of connections that cannot be read */
	bool paced;	       /* what cannot be read waits on a device of its own, for the servers that want that */
	struct probe probe;    /* what it was found to be able to */
	struct error pace_err; /* why it does not, if one of them does */
	struct {
		__u64 *seats;	/* as limit_counts.c has read them last, if that took long */
		__u64 until_ns; /* so long they are not read again; 0: at once */
	} taken;
};

/* The tokens and addresses of a server that were read last, which its files may no longer say. */
struct identity_read {
	bool done;
	struct datapath_token *tokens;
	struct datapath_address *addresses;
	int n_tokens, n_addresses;
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
		struct error problem;	   /* why it is not, or what could not be repaired */
		struct error identity_err; /* the last failure to read its files of tokens and addresses */
		struct error warning;	   /* what is unwise about them */
		struct identity_read read;
		struct inside_server *inside;  /* whom it is looked into (inside.c); NULL: nobody yet */
		bool traced;		       /* its requests are, for some reader */
		struct rates rates;	       /* as it was asked lately (rates.h) */
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
	json_t *events;			    /* the latest refusals, the oldest first (events.c) */
	struct timespec started;	    /* CLOCK_REALTIME */
	struct error unsaved;		    /* why what is off is not in the file (unsaved.h) */
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

/* net.c: namespaces */

/* The namespace in use with this cookie, or NULL. */
struct net *net_find(const struct agent *agent, __u64 cookie);
/* The first slot with a server of the namespace, or -ENOENT. */
int net_first_server(const struct agent *agent, __u64 cookie);
/* Takes over fd and dp; NULL without memory, and they are still the caller's. */
struct net *net_add(struct agent *agent, int fd, __u64 cookie, struct datapath *dp);
/* Follows what the servers now want of a namespace: its interfaces, or its end when no server is left. */
int net_settle(struct net *net, struct error *err);
/* What a subject is called, as far as it is known; the caller frees it. NULL without memory. */
char *net_name(struct net *net, __u64 subject);
/* Leaves everything in force. */
void nets_close(struct agent *agent);
/* Are these the names of devices of the namespace? */
int net_check_interfaces(int fd, const struct server *server, struct error *err);

/* net_open.c */

/* The namespace that a server was attached by: its descriptor, which the caller closes, and cookie. */
int net_open(struct agent *agent, const struct server *server, int *fd, __u64 *cookie, struct error *err);

/*
 * Opens it if need be, within a change or a repair, whose turn passes on meanwhile; fd stays the caller's. A namespace that no server uses
 * is let go by net_settle().
 */
int net_get(struct agent *agent, int fd, __u64 cookie, struct net **out, struct error *err);
/* Removes what is pinned for a namespace of which the state knows no server: an agent's whose state was lost. */
int net_clear_leftovers(struct agent *agent, int fd, __u64 cookie, struct error *err);
/* Removes the pins of a namespace that is not open and that no server uses any more. */
void net_unpin(struct agent *agent, __u64 cookie);

/* net_watch.c: what namespaces tell the event loop */
void net_watch(struct net *net);
void net_unwatch(struct net *net);
/* For the event loop, when devices_fd or rings_fd is readable. */
void nets_devices_changed(struct agent *agent);
void nets_traced(struct agent *agent);

/* upkeep.c: looks after the devices, cgroups, conntrack and connections of all namespaces. A job. */
void nets_look_after(struct agent *agent);

/* net_links.c */
int net_sync_links(struct net *net, struct error *err);
/* The same; a failure is logged once and kept as the namespace's links_err. */
void net_follow(struct net *net);
/* Has what cannot be read held on the servers' cgroups; a failure is logged once and kept as the namespace's hold_err. */
void net_hold(struct net *net);

/*
 * Says on which interfaces another weir's programs are besides, so that requests are decided twice; the caller frees it. NULL: on
 * none.
 */
char *net_other_weir(struct net *net);

/* net_pace.c */

/* Has what is held wait, if a server wants that and the kernel can; tells the servers when that changed. */
void net_pace(struct net *net);
/* Looks whether conntrack tracks loopback; tells the servers when that changed. */
void net_probe(struct net *net);

/* probe.c: finds out, once, what can be done in the namespace, and tells what cannot. Its datapath is open. */
void net_probe_all(struct net *net);

/* servers.c: servers in the kernel */

/* The namespace of a server whose datapath is open, or NULL. */
struct net *server_net(const struct agent *agent, const struct server *server);
__u32 server_flags(const struct server *server, const struct net *net);
/* A server that is not in force has none to change: 0. */
int server_apply_flags(struct agent *agent, int slot, struct error *err);
/* Puts a server and its limits in force, or takes it over unchanged. A failure is also kept as its problem. */
int server_bring_up(struct agent *agent, int slot, struct error *err);
/* -ESTALE: what it was attached by names another network namespace now. The agent holds the old one, which is still limited. */
int server_check_netns(struct agent *agent, const struct server *server, struct error *err);
/* Brings what the kernel has of a server, and its namespace, in line with the state: what is right is left alone. */
int server_sync(struct net *net, int slot, struct error *err);
/* Takes a server out of the kernel and the state. Its connections must not need translating any more. */
int server_end(struct agent *agent, int slot, struct error *err);
/* The slot that a command names, or the only one there is. -ENOENT; -EBUSY when it is draining. */
int server_named(const struct agent *agent, const char *name, struct error *err);

/* attach.c, detach.c, pause.c */
int agent_attach(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
/*
 * Takes over the server, on failure too. netns_inode: where the command was given (may be NULL). *unheard: as server_unheard()
 * says it. Returns its slot.
 */
int server_attach(struct agent *agent, struct server *server, json_t *netns_inode, char **unheard, struct error *err);
/* Are its interfaces and its cgroup there? Without a cgroup it gets the root. fd: of its namespace. */
int server_check_hooks(struct agent *agent, int fd, struct server *server, struct error *err);
/* -EOPNOTSUPP: it wants what is held to be paced, and that cannot be. */
int server_check_pace(const struct server *server, const struct net *net, struct error *err);
/* Says on which of its ports nobody listens (unheard.c); the caller frees it. NULL: there is none, or it is not known. */
char *server_unheard(struct agent *agent, const struct server *server);
int agent_detach(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_dry_run(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_pause(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_resume(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
/* How many connections of a server in force are translated. */
int server_count_translated(struct agent *agent, int slot, __u64 *translated, struct error *err);
bool servers_draining(const struct agent *agent);
/* Ends the servers that were detached and have no translated connection left. A job. */
void servers_drain(struct agent *agent);

/* identity.c */
/* Reads the files of a server that is in force. A failure is also kept as its identity_err, and changes nothing else. */
struct identity_count {
	int tokens, addresses;
};
int identity_load(struct agent *agent, int slot, struct identity_count *count, struct error *err);
/* What was read last, once more. */
int identity_sync(struct net *net, int slot, struct error *err);
void identity_forget(struct agent *agent, int slot);
/* The same for every server in force; what was read is added to the list. The first failure is returned. */
int servers_reload(struct agent *agent, json_t *list, struct error *err);
int agent_reload(struct agent *agent, json_t *arguments, json_t **result, struct error *err);

/* limits.c, limit_set.c, limit_delete.c, limit_list.c, max_in_flight.c */
int limits_apply(struct net *net, int slot, const struct server *server, struct error *err);
int agent_limit_set(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_limit_delete(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_limit_list(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_max_in_flight(struct agent *agent, json_t *arguments, json_t **result, struct error *err);

/* limit_counts.c */

/*
 * Seats that are taken, by namespace: the table of each is read once for all of its servers, and a large one not every time that
 * somebody asks. All zero to begin with.
 */
struct limits_taken {
	struct {
		const struct net *net; /* NULL: of those that are not in force */
		__u64 *seats;	       /* by weir_limit_index() */
	} of[WEIR_MAX_SERVERS + 1];
	size_t n;
};
void limits_taken_clear(struct limits_taken *taken);
#define CLEANUP_LIMITS_TAKEN __attribute__((cleanup(limits_taken_clear)))
/* Slots of the namespace's limits may be others' now: what was read of them does not stand any longer. */
void limits_taken_forget(struct net *net);

/*
 * What the limits and priority levels of a server have counted; taken NULL: but for the seats that are taken. The caller frees
 * *out (limits_measured_free). Returns how many.
 */
int limits_measure(const struct agent *agent, int slot, struct limits_taken *taken, struct metrics_limit **out,
		   struct error *err);
void limits_measured_free(struct metrics_limit *limits, size_t n);
/*
 * Why nothing is known of the requests of a server's traffic so far but its size: it is encrypted. The caller frees it. NULL:
 * requests were read, or nothing has come.
 */
char *server_unread(const struct agent *agent, int slot);
/* Why a limit for this subject sees nothing of the server's traffic so far; the caller frees it. NULL: it may. */
char *limit_unseen(const struct agent *agent, int slot, const struct limit *limit, const char *subject);

/* explain.c */
int agent_explain(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
/* policy.c: objects of policy files */

struct plan;
/* Carries out a plan (plan.h): all of it, or what was begun is taken back. */
int plan_do(struct agent *agent, struct plan *plan, struct error *err);
int agent_apply(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
/* What apply would do, without doing it. */
int agent_diff(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_delete(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_export(struct agent *agent, json_t *arguments, json_t **result, struct error *err);

/* status.c, metrics.c */
/* One of metrics_modes. */
const char *server_mode(const struct agent *agent, int slot);
int agent_status(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
int agent_metrics(struct agent *agent, json_t *arguments, json_t **result, struct error *err);

/* top.c: who makes the load */
int agent_top(struct agent *agent, json_t *arguments, json_t **result, struct error *err);

/* trace.c: requests told as they are decided */

int agent_trace(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
/* The latest refusals, and those that come. */
int agent_events(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
/* Reads what the programs of a namespace have written, for the readers: any thread may. */
void trace_read(struct net *net);
/* Sends readers what there is for them: the event loop alone may. */
void trace_flush(struct agent *agent);
/* Has the kernel trace what readers want, for a while: to be called again each second. Tells them what was lost. */
void trace_refresh(struct agent *agent);
/* A server has come into force: who reads of all servers reads of it, too. */
void trace_server_begins(struct agent *agent);
/* A server is about to end: who reads of it alone is told. */
void trace_server_ends(struct agent *agent, int slot);

/* request.c: a command by its name (control_handler); context: the agent. What changes something is a job, if there are jobs. */
int agent_request(void *context, struct control_client *client, const char *name, json_t *arguments, json_t **result,
		  struct error *err);

#endif
