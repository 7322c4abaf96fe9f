/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is kept of a request inside a server, and whose request it is. The programs can be preempted, so nothing of theirs is per CPU:
 * what a request needs is in its entry of `inside_requests`, which belongs to its goroutine alone. Nobody else
 * deletes it but the agent's sweep, after two minutes.
 */
#ifndef WEIR_BPF_INSIDE_REQUEST_H
#define WEIR_BPF_INSIDE_REQUEST_H

#include "weir/conn/trace.h"
#include "weir/http/identity.h"

#include "heavy.h"
#include "inside_read.h"
#include "inside_seats.h"
#include "maps.h"
#include "own_stack.h"
#include "undo.h"

/* What is kept of a request between its probes. */
struct inside_request {
	__u64 request; /* the *http.Request */
	__u64 now_ns;
	__u64 fields_at; /* the struct that says what it asks for; 0: there is none */
	__u64 execute;	 /* the func value that API Priority and Fairness was handed with it */
	__u32 decision;	 /* enum weir_reason; WEIR_REASON_NONE: it has not been decided */
	__u32 status;	 /* with which it is yet to be refused, at EXECUTE or AUTHORIZE; 0: it is not */
	bool health;	 /* it asks how the server is */
	bool on_wire;	 /* it is its packets' (inside_on_wire()) */
	bool has_user;	 /* in its context: what user_at says, which may be nothing */
	bool has_fields; /* the same of fields_at */
	bool answers;	 /* it can be refused; else it is decided as in a dry run */
	bool some;	 /* its server refuses requests of some connections only (attach --inside-share) */
	bool executed;
	bool ends; /* where it ends will be seen: it may have seats */
	struct weir_inside_key key;
	struct weir_inside_fields fields;
	struct inside_peer peer;
	__u64 address;		       /* its subject */
	struct weir_groups groups;     /* of the user, as `groups` knows them */
	struct weir_subject_key known; /* for look-ups there */
	__u64 groups_at;	       /* the strings of their names */
	__u32 outcome;		       /* of reading one */
	__u64 context[2];	       /* the one of the request's that is looked at */
	__u64 user_at;		       /* a *user.DefaultInfo */
	__u32 generation;	       /* of the rules that it was decided by: they say what slots mean */
	struct decided decided;	       /* by them, if it passed: to be counted or undone where it is certain */
	struct weir_asked asked;
	struct inside_walk walk;
	struct weir_name name;
	struct weir_trace_record record;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_INSIDE_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct weir_inside_process);
} inside_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_INSIDE_REQUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_inside_key);
	__type(value, struct inside_request);
} inside_requests SEC(".maps");

/* Which agent has loaded these programs, and its process namespace (an inode; 0: the host's); set before they are. */
const volatile __u32 inside_generation = 0;
const volatile __u32 inside_process_namespace = 0;
static const struct inside_request inside_nothing = {};

/* --- whose request */

static __always_inline __u64 inside_process_start(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(task, group_leader, start_boottime) / WEIR_INSIDE_TICK_NS;
}

/* Process namespaces that lie in each other, as the kernel bounds them. */
#define INSIDE_NAMESPACE_DEPTH 33

/* The process that runs, as the agent's process namespace counts; 0: it is not in there. */
static __always_inline __u32 inside_process_id(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct upid *number;
	struct pid *pid;
	__u32 level;

	if (!inside_process_namespace)
		return bpf_get_current_pid_tgid() >> 32;
	pid = BPF_CORE_READ(task, group_leader, thread_pid);
	level = BPF_CORE_READ(pid, level);
	number = __builtin_preserve_access_index(&pid->numbers[0]);
	for (__u32 i = 0; i < INSIDE_NAMESPACE_DEPTH && i <= level; i++) {
		if (BPF_CORE_READ(number, ns, ns.inum) == inside_process_namespace)
			return BPF_CORE_READ(number, nr);
		number = (void *)number + bpf_core_type_size(struct upid);
	}
	return 0;
}

/* The server's process that runs; NULL: it is none, as is every other one of the same binary. */
static __always_inline struct weir_inside_process *inside_process(struct weir_inside_key *key)
{
	__u32 process = inside_process_id();
	struct weir_inside_process *found = bpf_map_lookup_elem(&inside_processes, &process);

	if (!found || found->generation != inside_generation || found->start != inside_process_start())
		return NULL;
	key->process = process;
	return found;
}

static __always_inline struct weir_server *inside_server(const struct weir_inside_process *process)
{
	__u32 index = process->server;
	struct weir_server *server = bpf_map_lookup_elem(&servers, &index);

	if (!server || !(server->flags & WEIR_SERVER_ACTIVE) || (server->flags & WEIR_SERVER_DRAINING))
		return NULL;
	return server;
}

/* The server's process that runs, where that is attached; NULL: it is none. Sets all of the key. */
static __always_inline struct weir_inside_process *inside_here(struct pt_regs *ctx, struct weir_inside_key *key)
{
	struct weir_inside_process *process = inside_process(key);

	key->goroutine = inside_goroutine(ctx);
	return process && inside_server(process) && inside_has_begun(ctx) ? process : NULL;
}

/* The entry of this goroutine's request, made anew: what an earlier one has left is over. */
static __always_inline struct inside_request *inside_begin(const struct weir_inside_process *process,
							   const struct weir_inside_key *key, __u64 request)
{
	struct inside_request *r = NULL;

	if (process->layout.ends)
		inside_give_seats(key, WEIR_INSIDE_ABANDONED);
	if (!bpf_map_update_elem(&inside_requests, key, &inside_nothing, BPF_ANY))
		r = bpf_map_lookup_elem(&inside_requests, key);
	if (!r) {
		count(process->server, WEIR_INSIDE_NO_ROOM);
		return NULL;
	}
	r->request = request;
	r->now_ns = bpf_ktime_get_ns();
	r->decision = WEIR_REASON_NONE;
	r->ends = process->layout.ends;
	r->key = *key;
	return r;
}

#endif
