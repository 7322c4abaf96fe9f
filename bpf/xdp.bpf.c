// SPDX-License-Identifier: GPL-2.0
/* The BPF object of the program at XDP: loaded when a device is to have it, on the maps of weir.bpf.c. */
#define WEIR_XDP

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "xdp.h"

char LICENSE[] SEC("license") = "GPL";
