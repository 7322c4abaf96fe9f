/* SPDX-License-Identifier: GPL-2.0 */
/* Where requests inside servers end: their seats go back (inside_seats.h), and they are not in flight any more (inside_open.h). */
#ifndef WEIR_BPF_INSIDE_END_H
#define WEIR_BPF_INSIDE_END_H

#include "inside_request.h"

#include "packet.h"

/* A handler returns. */
SEC("uprobe")
int weir_inside_end(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };

	own_stack();
	if (!inside_process(ctx, &key))
		return 0;
	inside_give_seats(&key, WEIR_REASON_NONE);
	inside_over(&key);
	return 0;
}

/* A goroutine ends: the seats that its request still has, a panic has kept from going back. */
SEC("uprobe")
int weir_inside_goexit(struct pt_regs *ctx)
{
	struct weir_inside_key key = { .goroutine = inside_goroutine(ctx) };

	own_stack();
	if (!inside_has_begun(ctx) || !inside_process(ctx, &key))
		return 0;
	inside_give_seats(&key, WEIR_INSIDE_ABANDONED);
	inside_over(&key);
	return 0;
}

/* --- processes */

struct inside_reclaim {
	__u32 process;
};

/* Functions that are verified by themselves do not take a map's key. */
static long inside_reclaim_step(struct bpf_map *map __attribute__((unused)), const struct weir_inside_key *key,
				struct weir_inside_seats *entry __attribute__((unused)), struct inside_reclaim *reclaim)
{
	struct weir_inside_key of = *key;

	if (of.process == reclaim->process)
		inside_give_seats(&of, WEIR_INSIDE_ABANDONED);
	return 0;
}

/* Of `inside_requests` and `inside_open`. */
static long inside_forget_step(struct bpf_map *map, const struct weir_inside_key *key,
			       void *entry __attribute__((unused)), struct inside_reclaim *reclaim)
{
	if (key->process == reclaim->process)
		bpf_map_delete_elem(map, key);
	return 0;
}

static __always_inline void inside_reclaim(void)
{
	struct weir_inside_key key = {};
	struct inside_reclaim reclaim;

	if (!inside_running(inside_generation, inside_process_namespace, false, &key))
		return;
	reclaim.process = key.process;
	bpf_for_each_map_elem(&inside_seats, inside_reclaim_step, &reclaim, 0);
	bpf_for_each_map_elem(&inside_requests, inside_forget_step, &reclaim, 0);
	bpf_for_each_map_elem(&inside_open, inside_forget_step, &reclaim, 0);
}

/* Of a process' threads, the last has left none alive. */
SEC("tp_btf/sched_process_exit")
int weir_inside_exit(__u64 *ctx)
{
	const struct task_struct *task = (const struct task_struct *)ctx[0];

	if (!task->signal->live.counter)
		inside_reclaim();
	return 0;
}

/* Another program in the same process: its goroutines are gone. */
SEC("tp_btf/sched_process_exec")
int weir_inside_exec(__u64 *ctx)
{
	(void)ctx;
	inside_reclaim();
	return 0;
}

/* --- the agent's sweep */

static long inside_sweep_step(struct bpf_map *map __attribute__((unused)), const struct weir_inside_key *key,
			      struct weir_inside_seats *entry __attribute__((unused)),
			      void *context __attribute__((unused)))
{
	struct weir_inside_key of = *key;
	const struct weir_inside_process *process = bpf_map_lookup_elem(&inside_processes, &of.process);

	if (!process || !process->layout.ends)
		inside_give_seats(&of, WEIR_INSIDE_SWEPT);
	return 0;
}

/*
 * While its process is looked into, an entry is its goroutine's: who deleted it would have the request decided twice. But where nothing is
 * refused any more, nobody sees how it ends what was decided and handed to API Priority and Fairness. Kept until requests are refused
 * again, it would be undone though it had been executed, or its verdict would be another request's.
 */
static long inside_kept_step(struct bpf_map *map, const struct weir_inside_key *key, struct inside_request *r,
			     void *context __attribute__((unused)))
{
	__u32 id = key->process;
	const struct weir_inside_process *process = bpf_map_lookup_elem(&inside_processes, &id);

	if (!process || (r->execute && !process->layout.refuses))
		bpf_map_delete_elem(map, key);
	return 0;
}

/* One whose end is not probed any more may end unseen. */
static long inside_open_step(struct bpf_map *map, const struct weir_inside_key *key, struct weir_inside_open *entry,
			     void *context __attribute__((unused)))
{
	__u32 id = key->process;
	const struct weir_inside_process *process = bpf_map_lookup_elem(&inside_processes, &id);

	if (!process)
		bpf_map_delete_elem(map, key);
	else if (!process->layout.ends)
		entry->end_known = 0;
	return 0;
}

/* Run by BPF_PROG_TEST_RUN, as those of control.h are. */
SEC("tc")
int weir_inside_sweep(struct __sk_buff *skb)
{
	(void)skb;
	bpf_for_each_map_elem(&inside_seats, inside_sweep_step, NULL, 0);
	bpf_for_each_map_elem(&inside_requests, inside_kept_step, NULL, 0);
	bpf_for_each_map_elem(&inside_open, inside_open_step, NULL, 0);
	return 0;
}

/* Likewise. Sets an entry's number, and nothing else of it (include/weir/inside/near.h). */
SEC("tc")
int weir_inside_near_number(struct __sk_buff *skb)
{
	struct weir_inside_numbered numbered;
	struct weir_inside_near *near;

	if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, &numbered, sizeof(numbered)))
		return 0;
	near = bpf_map_lookup_elem(&inside_near, &numbered.at);
	if (near)
		*(volatile __u32 *)&near->id = numbered.id;
	return 0;
}

#endif
