/* SPDX-License-Identifier: GPL-2.0 */
/* Included before anything of weir.bpf.c: it counts how often a connection is looked up, awake or at rest. */
#ifndef WEIR_TESTS_BENCH_COUNTED_H
#define WEIR_TESTS_BENCH_COUNTED_H

#include "vmlinux.h"

#include <bpf/bpf_helpers.h>

#define COUNTED_NAMES(name) \
	(!__builtin_strcmp(name, "&conns") || !__builtin_strcmp(name, "&resting") || !__builtin_strcmp(name, "&busy"))

__u32 look_ups;

#define bpf_map_lookup_elem(map, key) (look_ups += COUNTED_NAMES(#map), bpf_map_lookup_elem(map, key))

#endif
