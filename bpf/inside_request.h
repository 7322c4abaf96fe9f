/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where a request inside a server is kept, and whose process it is in. The programs can be preempted, so nothing of theirs is per CPU:
 * what several probes need of a request is in its entry of `inside_requests`, which belongs to its goroutine alone: while its process is
 * looked into nobody else deletes it, however long the request takes. The goroutine's next request has the same entry. A request that is
 * decided where it is seen first has a piece of memory (inside_memory.h) for as long as the program runs.
 */
#ifndef WEIR_BPF_INSIDE_REQUEST_H
#define WEIR_BPF_INSIDE_REQUEST_H

#include "weir/inside/near.h"

#include "inside_open.h"
#include "inside_seats.h"
#include "own_stack.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_INSIDE_PROCESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct weir_inside_process);
} inside_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_INSIDE_NEAR);
	__type(key, __u32);
	__type(value, struct weir_inside_near);
} inside_near SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_INSIDE_REQUESTS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_inside_key);
	__type(value, struct inside_request);
} inside_requests SEC(".maps");

/*
 * Which agent has loaded these programs, and its process namespace (an inode; 0: the host's); set before they are. A probe's cookie says
 * both to those that run in requests, except for a namespace's number.
 */
const volatile __u32 inside_generation = 0;
const volatile __u32 inside_process_namespace = 0;
static const struct inside_request inside_nothing = {};

/* --- whose request */

/* Each call of a helper costs some ten nanoseconds where returns are guarded: so the task is asked for once, and the cookie. */

static __always_inline bool inside_began_then(const struct task_struct *task, __u64 start)
{
	return task->group_leader->start_boottime - start * WEIR_INSIDE_TICK_NS < WEIR_INSIDE_TICK_NS;
}

/*
 * Is the entry still that of the process that runs? The kernel gives the memory of an entry that was written anew to the next one that is
 * written, which may be of another binary. So who writes into the server, or into the entry, asks this after it has read what it
 * writes, and where. `start` is the first thing that changes. Two processes that began in the same tick are not told apart.
 */
static __always_inline bool inside_is_its(const struct weir_inside_process *process)
{
	return inside_began_then(bpf_get_current_task_btf(), WEIR_FRESH(process->start));
}

/* Process namespaces that lie in each other, as the kernel bounds them. */
#define INSIDE_NAMESPACE_DEPTH 33

/* The task's process, as the agent's process namespace counts, which is not the host's; 0: it is not in there. */
WEIR_SELDOM __u32 inside_nested_process_id(struct task_struct *task)
{
	struct upid *number;
	struct pid *pid;
	__u32 level;

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

WEIR_SELDOM struct weir_inside_process *inside_far(__u32 id)
{
	return bpf_map_lookup_elem(&inside_processes, &id);
}

/* Not for a program that may sleep: while it does, the agent may write another one there. */
static __always_inline struct weir_inside_process *inside_near_or_far(__u32 id)
{
	__u32 at = weir_inside_near_of(id);
	struct weir_inside_near *near = bpf_map_lookup_elem(&inside_near, &at);

	return WEIR_LIKELY(near) && WEIR_LIKELY(WEIR_FRESH(near->id) == id) ? &near->process : inside_far(id);
}

/*
 * The server's process that runs, which these programs serve; NULL: it is none, as is every other one of the same binary. near: it is most
 * likely served, and the program does not sleep.
 */
static __always_inline struct weir_inside_process *inside_running(__u32 generation, bool nested, bool near,
								  struct weir_inside_key *key)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 process = WEIR_UNLIKELY(nested) ? inside_nested_process_id(task) : task->tgid;
	struct weir_inside_process *found;

	if (WEIR_UNLIKELY(!process)) /* a place of nobody's has this number */
		return NULL;
	found = near ? inside_near_or_far(process) : bpf_map_lookup_elem(&inside_processes, &process);
	if (WEIR_UNLIKELY(!found || found->generation != generation))
		return NULL;
	if (WEIR_UNLIKELY(!inside_began_then(task, found->start)))
		return NULL;
	key->process = process;
	return found;
}

/* The same where a probe was hit, which may be another process' probe. */
static __always_inline struct weir_inside_process *inside_process_by(const struct weir_inside_cookie *cookie, bool near,
								     struct weir_inside_key *key)
{
	struct weir_inside_process *found = inside_running(cookie->generation, cookie->nested, near, key);

	if (WEIR_UNLIKELY(!found) || WEIR_UNLIKELY(found->layout.set != cookie->set))
		return NULL;
	return found;
}

static __always_inline struct weir_inside_process *inside_process(struct pt_regs *ctx, struct weir_inside_key *key)
{
	struct weir_inside_cookie cookie = weir_inside_cookie_of(bpf_get_attach_cookie(ctx));

	return inside_process_by(&cookie, false, key);
}

static __always_inline struct weir_server *inside_server(const struct weir_inside_process *process)
{
	__u32 index = process->server;
	struct weir_server *server = bpf_map_lookup_elem(&servers, &index);

	if (WEIR_UNLIKELY(!server) || WEIR_UNLIKELY(!(server->flags & WEIR_SERVER_ACTIVE)) ||
	    WEIR_UNLIKELY(server->flags & WEIR_SERVER_DRAINING))
		return NULL;
	return server;
}

/* Where a call has come to a probe. */
struct inside_hit {
	struct weir_inside_process *process;
	const struct weir_server *server;
	struct weir_inside_key key;
};

static __always_inline bool inside_hits_by(struct pt_regs *ctx, bool near, struct inside_hit *hit)
{
	struct weir_inside_cookie cookie = weir_inside_cookie_of(bpf_get_attach_cookie(ctx));

	hit->process = inside_process_by(&cookie, near, &hit->key);
	if (WEIR_UNLIKELY(!hit->process))
		return false;
	hit->server = inside_server(hit->process);
	hit->key.goroutine = inside_goroutine(ctx);
	return WEIR_LIKELY(hit->server) && WEIR_LIKELY(inside_has_begun_by(ctx, cookie.again));
}

/* Is it a call in a process of a server that is attached? */
static __always_inline bool inside_hits(struct pt_regs *ctx, struct inside_hit *hit)
{
	return inside_hits_by(ctx, true, hit);
}

/* The same in a program that may sleep. */
static __always_inline bool inside_hits_asleep(struct pt_regs *ctx, struct inside_hit *hit)
{
	return inside_hits_by(ctx, false, hit);
}

/* A request of this goroutine begins in this memory; what an earlier one has left is over. */
static __always_inline void inside_begin(struct inside_request *r, const struct weir_inside_process *process,
					 const struct weir_inside_key *key, __u64 request)
{
	if (WEIR_UNLIKELY(process->layout.ends))
		inside_give_seats(key, WEIR_INSIDE_ABANDONED);
	inside_clear(r);
	r->request = request;
	r->now_ns = bpf_ktime_get_ns();
	r->decision = WEIR_REASON_NONE;
	r->ends = process->layout.ends;
	r->http1 = true;
	r->key = *key;
}

/* This goroutine's entry: that of its earlier request, or a new one. */
static __always_inline struct inside_request *inside_kept(const struct weir_inside_key *key)
{
	struct inside_request *r = bpf_map_lookup_elem(&inside_requests, key);

	if (r || bpf_map_update_elem(&inside_requests, key, &inside_nothing, BPF_NOEXIST))
		return r;
	return bpf_map_lookup_elem(&inside_requests, key);
}

/* A request of this goroutine begins in the goroutine's entry: it is kept. */
static __always_inline struct inside_request *inside_keep(const struct weir_inside_process *process,
							  const struct weir_inside_key *key, __u64 request)
{
	struct inside_request *r = inside_kept(key);

	if (!r) {
		count(process->server, WEIR_INSIDE_NO_ROOM);
		return NULL;
	}
	inside_begin(r, process, key, request);
	return r;
}

/* What was kept of the goroutine's request is not needed: all of it is read anew. */
static __always_inline void inside_forget(const struct weir_inside_key *key, const struct inside_request *r)
{
	if (r)
		bpf_map_delete_elem(&inside_requests, key);
}

/* Memory for a request that is decided in this program, or NULL; inside_give_back() gives it back. */
static __always_inline struct inside_piece *inside_take(const struct inside_hit *hit, __u64 request)
{
	struct inside_piece *piece = inside_claim();

	if (WEIR_UNLIKELY(!piece))
		count(hit->process->server, WEIR_INSIDE_NO_ROOM);
	else
		inside_begin(&piece->request, hit->process, &hit->key, request);
	return piece;
}

#endif
