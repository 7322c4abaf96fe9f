// SPDX-License-Identifier: GPL-2.0
/* The BPF object of the programs that run inside servers: loaded when one is attached that way, on the maps of weir.bpf.c. */
#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "inside.h"

/* The object describes a type in full only if something is of it: that of the buckets, which nothing here uses yet. */
const struct weir_kept inside_kept = {};

char LICENSE[] SEC("license") = "GPL";
