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
	struct weir_segment reply; /* to be written over the packet */
	struct weir_view view;
	__u64 seed[2];
	__u64 netns_cookie;
	__u64 now_ns;
	__u32 hook; /* enum hook: whose memory this is */
	__u32 server;
	__u32 server_flags;
	__u32 swallow_max;
	__u32 window_at; /* payload offset of window[0] */
	__u32 window_length;
	enum weir_action action; /* what becomes of the segment, */
	enum weir_reason why;	 /* and why; WEIR_REASON_NONE: there is nothing to say */
	__u32 outcome; /* enum weir_reason: of the request decided last, not yet among these; WEIR_REASON_NONE: none */
	__u32 passed, exempt, dry_run; /* requests of this packet, counted when it is committed */
	__u32 events[WEIR_EVENT_KEYS]; /* by enum weir_reason from EVENT_KEYED on; counted with them */
	__u32 dry_run_rejected;	       /* likewise */
	__u32 pace_ifindex;
	__u32 believed;	      /* what the request says of its user is true, whoever the peer is */
	__u64 sum;	      /* of a checksum */
	__u32 unanswered_why; /* a request was refused but cannot be answered; else WEIR_REASON_NONE */
	__u32 identified[WEIR_IDENTIFIED_WAYS]; /* the same, by what says whose they are */
	__u32 notes[WEIR_NOTES];		/* and by what was noted */
	struct weir_proxy_key peer;    /* for look-ups of addresses; in the end that of the client (identify.h) */
	struct weir_subject_key known; /* for those of names: `tokens`, `groups` */
	struct weir_seats given[WEIR_SEAT_SLOTS]; /* back, by the connection */
	struct weir_asked_list
		list_asked; /* the first of the packet's requests that does; the connection's at egress */
	__u32 n_decided;    /* requests of this packet before the latest (undo.h) */
	__u32 tracing;	    /* someone wants to know what becomes of requests */
	__u32 noted;	    /* of this packet, for them (trace.h) */
	__u32 n_noted;	    /* requests of this packet, for who makes the load (top.h) */
	struct weir_request_reader request;
	struct weir_event event;
	__u32 event_at;	     /* payload offset of its body */
	__u32 event_outcome; /* enum weir_event_outcome, of the byte of it read latest */
	__u32 frame_event;   /* enum weir_frame_event, of the byte read latest */
	struct weir_response_reader response;
	struct weir_hold_reader hold;
	struct weir_socket socket;
	struct weir_listen_queue queue;
	struct weir_conn fresh;
	struct weir_admitted admitted;
	__u64 conn_id; /* of the packet's entry in the table, as it was found */
	struct weir_name name;
	struct weir_trace_record record;
	struct weir_explain explain;
	struct weir_explained explained;
	__u8 window[WEIR_WINDOW] __attribute__((aligned(8)));
	__u8 head[WEIR_HEAD_BYTES] __attribute__((aligned(8)));
	char text[WEIR_TEXT_ROOM] __attribute__((aligned(8)));
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
