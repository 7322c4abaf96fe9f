/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs on uprobes are preemptible, but since Linux 6.13 their functions may have their variables on a stack of the CPU's
 * (`private stack`): another thread that comes to the same probe overwrites them, and the kernel oopses (seen on 7.3). No program that
 * has a tail call gets such a stack: Linux looks for one among all instructions, before it knows which of them are executed.
 */
#ifndef WEIR_BPF_OWN_STACK_H
#define WEIR_BPF_OWN_STACK_H

#include <bpf/bpf_helpers.h>

/*
 * In each program on a uprobe. The call is never made, as the verifier sees: so it takes no time, and no array of programs, which those that
 * may sleep may not have.
 */
static __always_inline void own_stack(void)
{
	asm volatile("r0 = 0\n"
		     "if r0 == 0 goto +1\n"
		     "call %[tail_call]\n"
		     :
		     : [tail_call] "i"(BPF_FUNC_tail_call)
		     : "r0", "r1", "r2", "r3", "r4", "r5");
}

#endif
