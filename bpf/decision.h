/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A decision: what is asked, and what came of it. It knows no packet, so that every kind of program can ask: those in
 * softirqs, and those inside a server's threads.
 *
 *	decision_start(d)		forgets what the one before took; then the caller fills in what is asked
 *	limits_find(d, path)		which limits are for it; true: it is exempt
 *	decide(d)			d->refused, d->overlooked, d->retry_s; what it took is in the other fields
 *	undo_decision(d)		gives all of it back, as if it had not been asked
 *
 * The memory is the caller's, in a map's value that nobody else uses until it is done: one for each CPU where nothing interrupts, else
 * one that it has claimed. Before Linux 6.3 a map's key or value may not be in memory that came as a function's argument: who needs
 * that asks for decision_of() again, which the caller's object defines.
 */
#ifndef WEIR_BPF_DECISION_H
#define WEIR_BPF_DECISION_H

#include "weir/conn/seats.h"
#include "weir/http/attributes.h"
#include "weir/http/identity.h"
#include "weir/limit/penalty.h"
#include "weir/limit/width.h"

#include "maps.h"

/* What an ordinary request needs of terms that were found to be in force, in a line's room: those beside it, or none. */
struct terms_in_force {
	__u64 as_of; /* what `limit_changes` said before; 0: there are none */
	__u32 limit; /* weir_limit_index(): whose they are */
	__u32 key;   /* enum weir_key_part */
	struct weir_rate rate;
	__u64 pad;
};

struct decision {
	__u32 memory; /* what decision_of() finds this by */

	/* The question. A field is 0 where nothing is known of it. */
	__u32 server;
	__u32 server_flags;
	__u32 traits;	     /* enum weir_server_traits */
	__u32 generation;    /* of the server's rules */
	__u32 weight;	     /* tokens that it costs to pass */
	__u32 asked;	     /* requests (or records) that this is about */
	__u32 asked_anew;    /* those that were not refused before */
	__u32 look;	     /* only looked at: nothing is taken, made or counted; asked and asked_anew are 0 */
	__u32 unreadable;    /* it is records that are decided: nothing is known of what they ask for */
	__u32 seatless;	     /* its end will not be seen: it takes no seats */
	__u32 connects;	     /* it is a new connection (admission.h) */
	__u32 unproven;	     /* its source may not be the sender's own: no penalty may come of it */
	__u32 request;	     /* its number among those of its connection, where it is to have seats */
	__u32 event_key;     /* enum weir_reason, WEIR_REASON_NONE: the request is no Event, or they have no limit */
	__u64 event_subject; /* whom an Event is charged to, with WEIR_EVENT_KEYED */
	__u64 now_ns;
	__u64 at_ns, latest_ns;	       /* when tokens are to be taken, and until when it may wait for them */
	struct weir_identity identity; /* whose it is */
	__u64 source;		       /* subject of the client's address, where some limit asks for it */
	__u8 address[16];	       /* the client's */
	struct weir_attributes attributes;
	__u64 list_of; /* weir_list_of(): the list that it asks for, where limits on requests in flight ask; 0: none */

	/* The answer: by bits, one for each limit that applies. Fields that every request sets stand together. */
	__u32 n_limits;
	__u32 refused;			  /* it refused */
	__u32 charged;			  /* it gave a token, or seats */
	__u32 waited;			  /* a token that is there only later */
	__u32 overlooked;		  /* it would have refused, but is in a dry run of its own */
	__u32 nameless;			  /* its subject was not known to it */
	__u32 penalised;		  /* it was not asked: the subject has not waited for as long as it was told */
	__u32 failed;			  /* the refusal has begun a penalty */
	__u32 seats_asked;		  /* limits on requests in flight were asked */
	__u32 denied;			  /* its subject may have none, ever */
	__u32 torn;			  /* what it is could not be read: it was replaced time and again */
	__u32 slowest;			  /* the slot of the limit with the longest wait: the answer names it */
	__u32 retry_s;			  /* for a Retry-After; 0: never */
	__u64 wait_ns;			  /* the longest wait of those that refused */
	__u64 overlooked_ns;		  /* and of those that are there to be watched only */
	struct weir_width_said width;	  /* what it takes of a level's seats */
	struct weir_asked_list list;	  /* that it asks for, if its answer will tell that list's width */
	__u32 limits[WEIR_MATCHES_MAX];	  /* their slots */
	__u64 subjects[WEIR_MATCHES_MAX]; /* whose */
	__u64 waits_ns[WEIR_MATCHES_MAX]; /* after which it would admit, where it has refused */
	__u64 words_before[WEIR_MATCHES_MAX]; /* of its subject's penalty, where the refusal has begun one */
	__u64 words_after[WEIR_MATCHES_MAX];
	struct weir_seats_draft seats[WEIR_SEAT_SLOTS]; /* what its connection (or the request) has */

	/* Used on the way. */
	__u32 tries;					  /* to ask a bucket, this one too */
	struct weir_ask ask;				  /* the bucket that is asked now */
	struct weir_terms terms[WEIR_MATCHES_MAX];	  /* what the limits are to their subjects (terms.h) */
	struct terms_in_force in_force[WEIR_MATCHES_MAX]; /* of these, what limit_ready.h has found out */
	struct weir_backoff penalty;			  /* of the limit whose subject is penalised now */
	struct weir_rate_history newcomers;		  /* how many subjects may be new to a limit */
	struct weir_vector_key vector_key;
	struct weir_source_key source_key;
	struct weir_vector matched; /* rules */
	__u32 match_at;		    /* the number of the rule that is to be looked at next */
	struct weir_vector either;
	struct weir_kept fresh; /* what is kept of a new subject */
};

/* NULL: there is no such memory. */
static __always_inline struct decision *decision_of(__u32 memory);

static __always_inline struct weir_server *server_of(__u32 index)
{
	return bpf_map_lookup_elem(&servers, &index);
}

/* Nothing is decided yet; nor is there anything to undo. */
static __always_inline void decision_start(struct decision *d)
{
	d->charged = 0;
	d->refused = 0;
	d->waited = 0;
	d->overlooked = 0;
	d->penalised = 0;
	d->failed = 0;
	d->denied = 0;
	d->slowest = 0;
	d->seats_asked = 0;
	d->wait_ns = 0;
	d->overlooked_ns = 0;
	d->nameless = 0;
	d->width = (struct weir_width_said){ .seats = 1 };
	d->list.list = 0;
	d->list_of = 0;
	d->seatless = 0;
}

/* Limit n would refuse for so long: the one that does so for longest is named in the answer. */
static __always_inline void wait_for(struct decision *d, __u32 n, __u64 wait_ns)
{
	if (wait_ns <= d->wait_ns)
		return;
	d->wait_ns = wait_ns;
	d->slowest = d->limits[n & (WEIR_MATCHES_MAX - 1)];
}

#endif
