/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs on uprobes are preemptible, but since Linux 6.13 their functions may have their variables on a stack of the CPU's
 * (`private stack`): another thread that comes to the same probe overwrites them, and the kernel oopses (seen on 7.3). No program that
 * has a tail call gets such a stack: this one leads nowhere.
 */
#ifndef WEIR_BPF_OWN_STACK_H
#define WEIR_BPF_OWN_STACK_H

#include <bpf/bpf_helpers.h>

/* Stays empty. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} no_programs SEC(".maps");

/* In each SEC("uprobe") program, but for those that may sleep. */
static __always_inline void own_stack(void *ctx)
{
	bpf_tail_call(ctx, &no_programs, 0);
}

/* In each SEC("uprobe.s") program: those may have no array of programs. A call that is never made, as the verifier sees, will do. */
static __always_inline void own_stack_asleep(void)
{
	asm volatile("r0 = 0\n"
		     "if r0 == 0 goto +1\n"
		     "call %[tail_call]\n"
		     :
		     : [tail_call] "i"(BPF_FUNC_tail_call)
		     : "r0", "r1", "r2", "r3", "r4", "r5");
}

#endif
