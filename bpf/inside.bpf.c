// SPDX-License-Identifier: GPL-2.0
/* The BPF object of the programs that run inside servers: loaded when one is attached that way, on the maps of weir.bpf.c. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "inside_end.h"
#include "inside_write.h"

char LICENSE[] SEC("license") = "GPL";
