// SPDX-License-Identifier: GPL-2.0
/* The BPF object: everything that runs in the kernel for one network namespace. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#define TC_ACT_UNSPEC (-1) /* the next program, or the kernel, goes on with the packet */
#define TC_ACT_SHOT 2
#define PACKET_HOST 0
#define PACKET_OTHERHOST 3

#include "collect.h"
#include "control.h"
#include "egress.h"
#include "explain.h"
#include "hold.h"
#include "ingress.h"
#include "replay.h"
#include "sockops.h"

/* Which build these programs are of: the next agent need not load them again (user/datapath/programs.c). */
const volatile __u64 weir_build = 0;

char LICENSE[] SEC("license") = "GPL";
