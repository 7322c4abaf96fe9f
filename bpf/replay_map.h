/* SPDX-License-Identifier: GPL-2.0 */
/* The requests of a recording that one run decides, with the answers. */
#ifndef WEIR_BPF_REPLAY_MAP_H
#define WEIR_BPF_REPLAY_MAP_H

#include "weir/conn/explain.h"

/* Made for `weir replay` alone (user/datapath/replay.c). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WEIR_REPLAY_SLOTS);
	__type(key, __u32);
	__type(value, struct weir_replayed);
} replayed SEC(".maps");

#endif
