/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The memory of decisions inside servers, where programs interrupt each other: who decides claims a piece that is free, and gives
 * it back before it ends.
 */
#ifndef WEIR_BPF_INSIDE_MEMORY_H
#define WEIR_BPF_INSIDE_MEMORY_H

#include "weir/http/path.h"
#include "weir/inside/seats.h"

#include "inside_known.h"

#define INSIDE_PIECES 128 /* a power of two; only programs that are interrupted need more than one for each CPU */

struct inside_piece {
	__u64 claimed;
	struct decision decision;
	struct weir_path path;
	struct weir_subject_key known; /* for look-ups in `groups` */
	struct weir_name name;
	struct inside_request request;	/* that is decided in it, where it is not kept */
	struct weir_inside_seats seats; /* that the request is to have */
	struct inside_known_peer peers[INSIDE_PEERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, INSIDE_PIECES);
	__type(key, __u32);
	__type(value, struct inside_piece);
} inside_pieces SEC(".maps");

static __always_inline struct inside_piece *inside_piece_of(__u32 memory)
{
	return bpf_map_lookup_elem(&inside_pieces, &memory);
}

static __always_inline struct decision *decision_of(__u32 memory)
{
	struct inside_piece *piece = inside_piece_of(memory);

	if (!piece)
		return NULL;
	WEIR_BARRIER(piece); /* before it is known to be there, no compiler adds to it */
	return &piece->decision;
}

/* NULL: somebody has it. */
static __always_inline struct inside_piece *inside_claim_at(__u32 memory)
{
	struct inside_piece *piece = inside_piece_of(memory);

	__u64 was;

	if (WEIR_UNLIKELY(!piece))
		return NULL;
	was = __sync_val_compare_and_swap(&piece->claimed, 0, 1);
	WEIR_BARRIER(was); /* as in weir_owned_swap() */
	if (WEIR_UNLIKELY(was))
		return NULL;
	piece->decision.memory = memory;
	return piece;
}

struct inside_search {
	__u32 from;
	__u32 found;
};

static long inside_claim_step(__u32 i, struct inside_search *search)
{
	__u32 at = (search->from + i) & (INSIDE_PIECES - 1);

	if (!inside_claim_at(at))
		return 0;
	search->found = at;
	return 1;
}

/* NULL: none is free. */
static __always_inline struct inside_piece *inside_claim(void)
{
	struct inside_search search = { .from = bpf_get_smp_processor_id() * 2 & (INSIDE_PIECES - 1),
					.found = INSIDE_PIECES };
	struct inside_piece *piece = inside_claim_at(search.from);

	if (WEIR_LIKELY(piece))
		return piece;
	bpf_loop(INSIDE_PIECES, inside_claim_step, &search, 0);
	return inside_piece_of(search.found);
}

static __always_inline void inside_give_back(struct inside_piece *piece)
{
#ifdef __TARGET_ARCH_x86
	/* Such a CPU's stores come in their order, so nobody finds it free before what was written in it. A locked one would wait for all of them. */
	WEIR_FRESH_ALL();
	*(volatile __u64 *)&piece->claimed = 0;
#else
	__sync_fetch_and_and(&piece->claimed, 0);
#endif
}

#endif
