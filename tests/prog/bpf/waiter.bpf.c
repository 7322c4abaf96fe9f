// SPDX-License-Identifier: GPL-2.0
/* Asks whether memory of a test may be waited for. */
#include "vmlinux.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "../../../bpf/inside_bring.h"
#include "../../../bpf/own_stack.h"

bool waits;

/* waiter_asks() */
SEC("uprobe.s")
int asked(struct pt_regs *ctx)
{
	own_stack();
	waits = inside_may_wait(PT_REGS_PARM1(ctx));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
