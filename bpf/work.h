/* SPDX-License-Identifier: GPL-2.0 */
/* Each program's working memory. */
#ifndef WEIR_BPF_WORK_H
#define WEIR_BPF_WORK_H

#include "weir/admission/cookie.h"
#include "weir/conn/explain.h"
#include "weir/conn/hold.h"
#include "weir/http/attributes.h"
#include "weir/http/event.h"
#include "weir/http/identity.h"

#include "decision.h"
#include "maps.h"
#include "tcp.h"

#define WEIR_WINDOW 256 /* bytes of payload looked at at a time */
#define WEIR_HEAD_BYTES 96
#define WEIR_TEXT_ROOM 640 /* an answer, and zeros up to a whole word */

enum hook {
	HOOK_INGRESS,
	HOOK_EGRESS,
	HOOK_HOLD,
	HOOK_EXPLAIN,
	HOOK_XDP,
	HOOKS,
};

/*
 * One packet's working memory. A program is not interrupted by itself, and each hook has its own. Before Linux 6.3 a
 * map's key or value may not be in memory that came as a function's argument: who needs that asks for work_of() again.
 * And what a bpf_loop() finds out is kept here, not on its caller's stack: older verifiers take a branch on it for one that
 * is never taken, and cut out what follows.
 */
struct work {
	struct decision decision; /* of the latest request, or of a segment's records */
	struct packet packet;
	struct weir_view view;
	struct weir_seats given[WEIR_SEAT_SLOTS]; /* back, by the connection */
	__u64 now_ns;
	__u64 conn_id; /* of the packet's entry in the table, as it was found */
	__u64 sum;     /* of a checksum */
	__u32 hook;    /* enum hook: whose memory this is */
	__u32 server;
	__u32 server_flags;
	__u32 frame_event;	 /* enum weir_frame_event, of the byte read latest */
	enum weir_action action; /* what becomes of the segment, */
	enum weir_reason why;	 /* and why; WEIR_REASON_NONE: there is nothing to say */

	__u64 seed[2] __attribute__((aligned(8)));
	__u64 netns_cookie;
	__u32 swallow_max;
	__u32 pace_ifindex;
	__u32 tracing; /* someone wants to know what becomes of requests */

	__u32 outcome __attribute__((aligned(8)));
	__u32 passed, exempt, dry_run;
	__u32 dry_run_rejected;
	__u32 unanswered_why;
	__u32 events[WEIR_EVENT_KEYS];
	__u32 identified[WEIR_IDENTIFIED_WAYS];
	__u32 notes[WEIR_NOTES];
	__u32 n_decided;
	__u32 noted;
	__u32 n_noted;
	struct weir_asked_list list_asked;

	struct weir_proxy_key peer __attribute__((aligned(8)));
	struct weir_subject_key known;
	__u32 believed;

	struct weir_request_reader request __attribute__((aligned(8)));
	struct weir_response_reader response;
	struct weir_hold_reader hold;

	struct weir_event event __attribute__((aligned(8)));
	__u32 event_at;
	__u32 event_outcome;

	struct weir_socket socket __attribute__((aligned(8)));
	struct weir_listen_queue queue;

	struct weir_conn fresh __attribute__((aligned(8)));
	struct weir_admitted admitted;
	struct weir_name name;
	struct weir_trace_record record;

	struct weir_explain explain __attribute__((aligned(8)));
	struct weir_explained explained;

	struct weir_segment reply __attribute__((aligned(8)));
	__u8 head[WEIR_HEAD_BYTES] __attribute__((aligned(8)));
	char text[WEIR_TEXT_ROOM] __attribute__((aligned(8)));

	__u8 window[WEIR_WINDOW] __attribute__((aligned(8)));
	__u32 window_at;
	__u32 window_length;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HOOKS);
	__type(key, __u32);
	__type(value, struct work);
} works SEC(".maps");

static __always_inline struct work *work_of(__u32 hook)
{
	return bpf_map_lookup_elem(&works, &hook);
}

static __always_inline struct decision *decision_of(__u32 memory)
{
	struct work *w = work_of(memory);

	return w ? &w->decision : NULL;
}

#endif
