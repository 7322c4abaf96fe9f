/* SPDX-License-Identifier: GPL-2.0 */
/* Each program's working memory. */
#ifndef WEIR_BPF_WORK_H
#define WEIR_BPF_WORK_H

#include "weir/conn/explain.h"
#include "weir/conn/hold.h"
#include "weir/http/attributes.h"
#include "weir/http/event.h"
#include "weir/http/identity.h"

#include "maps.h"
#include "tcp.h"

#define WEIR_WINDOW 256 /* bytes of payload looked at at a time */
#define WEIR_HEAD_BYTES 96
#define WEIR_TEXT_ROOM 512 /* an answer, and zeros up to a whole word */

enum hook {
	HOOK_INGRESS,
	HOOK_EGRESS,
	HOOK_HOLD,
	HOOK_EXPLAIN,
	HOOKS,
};

/*
 * One packet's working memory. A program is not interrupted by itself, and each hook has its own. Before Linux 6.3 a
 * map's key or value may not be in memory that came as a function's argument: who needs that asks for work_of() again.
 * And what a bpf_loop() finds out is kept here, not on its caller's stack: older verifiers take a branch on it for one that
 * is never taken, and cut out what follows.
 */
struct work {
	struct packet packet;
	struct weir_segment reply; /* to be written over the packet */
	struct weir_view view;
	__u64 seed[2];
	__u64 netns_cookie;
	__u64 now_ns;
	__u64 at_ns, latest_ns; /* when tokens are to be taken, and until when it may wait for them */
	__u32 hook;		/* enum hook: whose memory this is */
	__u32 server;
	__u32 server_flags;
	__u32 traits; /* enum weir_server_traits */
	__u32 swallow_max;
	__u32 retry_s;
	__u32 window_at; /* payload offset of window[0] */
	__u32 window_length;
	__u32 decision; /* enum weir_reason: of the request decided last, not yet among these; WEIR_REASON_COUNT: none */
	__u32 passed, exempt, dry_run; /* requests of this packet, counted when it is committed */
	__u32 events[WEIR_EVENT_KEYS]; /* by enum weir_reason from EVENT_KEYED on; counted with them */
	__u32 dry_run_rejected;	       /* likewise */
	__u32 pace_ifindex;
	__u32 n_limits;			  /* that are for the request (or the records) now decided */
	__u32 limits[WEIR_MATCHES_MAX];	  /* their slots; what follows has a bit, or a place, for each of them */
	__u32 refused;			  /* it refused */
	__u32 charged;			  /* it gave a token, or places */
	__u32 waited;			  /* a token that is there only later */
	__u32 overlooked;		  /* it would have refused, but is in a dry run of its own */
	__u32 nameless;			  /* its subject was not known to it */
	__u32 places_asked;		  /* it was asked of limits on requests in flight */
	__u32 penalised;		  /* it was not asked: the subject has not waited for as long as it was told */
	__u32 failed;			  /* the refusal has begun a penalty */
	__u64 subjects[WEIR_MATCHES_MAX]; /* whose */
	__u64 waits_ns[WEIR_MATCHES_MAX]; /* after which it would admit, where it has refused */
	__u64 words_before[WEIR_MATCHES_MAX]; /* of its subject's penalty, where the refusal has begun one */
	__u64 words_after[WEIR_MATCHES_MAX];
	struct weir_ask ask;	     /* the bucket that is asked now */
	__u32 tries;		     /* to ask it, this one too */
	__u32 weight;		     /* tokens that it costs to pass */
	__u32 asked;		     /* requests (or records) that this is about */
	__u32 asked_anew;	     /* those that were not refused before */
	__u32 look;		     /* only looked at: nothing is taken, made or counted; asked and asked_anew are 0 */
	__u32 believed;		     /* what the request says of its user is true, whoever the peer is */
	__u64 sum;		     /* of a checksum */
	__u64 wait_ns;		     /* the longest wait of those that refused */
	__u64 overlooked_ns;	     /* and of those that are there to be watched only */
	__u32 unanswered_why;	     /* a request was refused but cannot be answered; else WEIR_REASON_COUNT */
	__u32 sources[WEIR_SOURCES]; /* requests of this packet by enum weir_source, counted when it is committed */
	__u32 notes[WEIR_NOTES];     /* the same, by what was noted */
	struct weir_proxy_key peer;  /* for look-ups of addresses; in the end that of the client (identify.h) */
	struct weir_subject_key known; /* for those of names: `tokens`, `groups` */
	struct weir_identity identity; /* whose the request is that is being decided */
	__u64 source;		       /* subject of the peer's address, where some limit asks for it */
	__u32 generation;	       /* of the server's rules */
	__u32 unreadable;	       /* it is records that are decided: nothing is known of what they ask for */
	struct weir_vector_key vector_key;
	struct weir_source_key source_key;
	struct weir_vector matched; /* rules */
	struct weir_vector either;
	struct weir_place_draft places[WEIR_PLACES_MAX];
	struct weir_place given[WEIR_PLACES_MAX]; /* back, by the connection */
	struct weir_width_said width;		  /* what the latest request takes of a level's seats */
	struct weir_asked_list list;		  /* that it asks for, if its answer will tell that list's width */
	struct weir_asked_list
		list_asked; /* the first of the packet's requests that does; the connection's at egress */
	__u32 n_decided;    /* requests of this packet before the latest (undo.h) */
	__u32 tracing;	    /* someone wants to know what becomes of requests */
	__u32 noted;	    /* of this packet, for them (trace.h) */
	__u32 n_noted;	    /* requests of this packet, for who makes the load (top.h) */
	struct weir_request_reader request;
	struct weir_attributes attributes; /* of the request whose head has ended last */
	struct weir_event event;
	__u64 event_subject; /* whom an Event is charged to, with WEIR_EVENT_KEYED */
	__u32 event_key;     /* enum weir_reason, WEIR_REASON_COUNT: the request is no Event, or they have no limit */
	__u32 event_at;	     /* payload offset of its body */
	__u32 event_outcome; /* enum weir_event_outcome, of the byte of it read latest */
	__u32 frame_event;   /* enum weir_frame_event, of the byte read latest */
	struct weir_response_reader response;
	struct weir_hold_reader hold;
	struct weir_socket socket;
	struct weir_conn fresh;
	__u64 conn_id;	       /* of the packet's entry in the table, as it was found */
	struct weir_kept full; /* all zero: what is kept of a new subject */
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

/* Nothing is decided yet; nor is there anything to undo. */
static __always_inline void decision_start(struct work *w)
{
	w->charged = 0;
	w->refused = 0;
	w->waited = 0;
	w->overlooked = 0;
	w->penalised = 0;
	w->failed = 0;
	w->places_asked = 0;
	w->wait_ns = 0;
	w->overlooked_ns = 0;
	w->nameless = 0;
	w->width = (struct weir_width_said){ .seats = 1 };
	w->list.list = 0;
}

#endif
