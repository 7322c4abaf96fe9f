/* SPDX-License-Identifier: GPL-2.0 */
/* Each program's working memory. */
#ifndef WEIR_BPF_WORK_H
#define WEIR_BPF_WORK_H

#include "weir/admission/cookie.h"
#include "weir/conn/explain.h"
#include "weir/conn/hold.h"
#include "weir/http/attributes.h"
#include "weir/http/event.h"
#include "weir/http/head_cache.h"
#include "weir/http/identity.h"
#include "weir/http/window.h"

#include "decision.h"
#include "maps.h"
#include "tcp.h"

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

/* What the settings say that are in force. Of each packet that is read, or that begins something, by load_settings(). */
struct in_force {
	__u64 seed[2];
	__u64 netns_cookie;
	__u32 swallow_max;
	__u32 pace_ifindex;
	__u32 tracing; /* someone wants to know what becomes of requests */
	__u32 pad;
};

/* What has become of a packet's requests so far: counted when the packet is committed. One that is dropped comes again. */
struct tally {
	__u32 outcome; /* enum weir_reason: of the request decided last, not yet among these; WEIR_REASON_NONE: none */
	__u32 passed, exempt, dry_run;
	__u32 dry_run_rejected;
	__u32 unanswered_why;	       /* a request was refused but cannot be answered; else WEIR_REASON_NONE */
	__u32 events[WEIR_EVENT_KEYS]; /* by enum weir_reason from EVENT_KEYED on */
	__u32 identified[WEIR_IDENTIFIED_WAYS]; /* by what says whose they are */
	__u32 notes[WEIR_NOTES];		/* and by what was noted */
	__u32 n_decided;			/* requests before the latest that can be undone (undo_packet.h), */
	__u32 n_traced;				/* requests that are told of (trace.h), */
	__u32 n_asked;				/* and those for who makes the load (top.h) */
	struct weir_asked_list list;		/* of the packet's requests the first that asks for one */
};

/* Whose a request is: what is looked up for that. */
struct whose {
	struct weir_proxy_key peer;    /* for addresses; in the end that of the client (identify.h) */
	struct weir_subject_key known; /* for names: `tokens`, `groups` */
	struct weir_preamble preamble; /* the connection's, as far as it was read before the request */
	__u32 believed;		       /* the request's user headers are believed, whatever its peer is */
	__u32 pad;
};

/* The body of the request whose head has just ended, where that is a Kubernetes Event. */
struct event_body {
	struct weir_event fields;
	__u32 at;      /* payload offset of its first byte */
	__u32 outcome; /* enum weir_event_outcome, of the byte read latest */
};

/* Values on their way into a map or a ring. Each is written whole before it is put there, and not used afterwards. */
struct entries {
	struct weir_conn conn;
	struct weir_admitted admitted;
	struct weir_name name;
	struct weir_trace_record record;
};

struct explaining {
	struct weir_explain question;
	struct weir_explained answer;
};

/* The head that the packet's payload begins with, to the cache of heads. */
struct head {
	__u64 key;    /* 0: it has none, or is not looked for */
	__u64 seal;   /* of how a request is read */
	__u64 digest; /* of the request that was found; 0: it is not known */
	struct weir_cache_wait wait;
	__u32 recalled; /* it was found, and its end is next */
	__u32 pad;
	__u8 bytes[WEIR_CACHE_ROOM] __attribute__((aligned(8))); /* of a payload that stands apart; then wiped */
};

/* Of the payload's bytes, for the reading of requests (payload.h). */
struct payload {
	__u32 own;    /* the first so many are in memory of the packet's own */
	__u32 unread; /* some could not be brought there, so they were not read */
};

/* The packet that is written over the one in hand. */
struct reply {
	struct weir_segment segment;
	__u8 head[WEIR_HEAD_BYTES] __attribute__((aligned(8)));
	char text[WEIR_TEXT_ROOM] __attribute__((aligned(8)));
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
	__u32 at_once;		 /* a client's segment is read without the lock, to be begun and committed in one */
	__u32 read;		 /* a client's segment: its requests were decided */
	enum weir_action action; /* what becomes of the segment, */
	enum weir_reason why;	 /* and why; WEIR_REASON_NONE: there is nothing to say */
	__u32 unsettled; /* the hold's: what becomes of the connection of the packet before, if the kernel has made one (admit_hold.h) */
	struct in_force settings;
	struct tally tally;
	struct whose whose;
	struct weir_request_reader request;
	struct weir_response_reader response;
	struct weir_hold_reader hold;
	struct event_body event;
	struct head head;
	struct payload payload;
	struct weir_socket socket;
	struct weir_listen_queue queue;
	struct entries entry;
	/* Not the last: verifiers before Linux 6.2 believe that words are read from beyond its end, and want memory there. */
	struct weir_window window; /* a part of the packet's payload. It is wiped when it has been read. */
	struct explaining explain;
	struct reply reply;
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

/* The packet's connection as it is in the table, with its id noted. */
static __always_inline struct weir_conn *conn_look_up(struct work *w)
{
	struct weir_conn *c = bpf_map_lookup_elem(&conns, &w->packet.flow);

	if (c)
		w->conn_id = WEIR_FRESH(c->id);
	return c;
}

/* Under the lock: is it still the one that was found? It may have been forgotten since, or its memory be another one's by now. */
static __always_inline bool conn_is_found(const struct work *w, const struct weir_conn *c)
{
	return c->id == w->conn_id && !weir_conn_forgotten(c);
}

/* Is its memory another one's by now? Without the lock, for what is to be done of a packet that was dropped, too. */
static __always_inline bool conn_is_anothers(const struct work *w, const struct weir_conn *c)
{
	__u64 id = WEIR_FRESH(c->id);

	return id != w->conn_id && id != WEIR_CONN_FORGOTTEN;
}

static __always_inline struct decision *decision_of(__u32 memory)
{
	struct work *w = work_of(memory);

	return w ? &w->decision : NULL;
}

#endif
