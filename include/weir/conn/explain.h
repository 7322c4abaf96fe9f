/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What would become of a request or a connection now, or of each request that is replayed (docs/howto/try-a-policy.md): input
 * and output of the program weir_explain, which the agent runs (BPF_PROG_TEST_RUN) on a made-up frame. Behind the Ethernet header stand a
 * struct weir_explain and the bytes of the request; when the program has returned 0, a struct weir_explained stands in their place.
 */
#ifndef WEIR_CONN_EXPLAIN_H
#define WEIR_CONN_EXPLAIN_H

#include "weir/abi/abi.h"
#include "weir/conn/trace.h"
#include "weir/http/attributes.h"

#define WEIR_EXPLAIN_BYTES 3072 /* of a request; a frame of the agent's cannot be longer than about a page */

/* Where the request is decided; 0: where its packets are read. */
enum weir_explain_inside {
	WEIR_EXPLAIN_INSIDE =
		1 << 0, /* inside its server, where nobody reads paths, bodies, tokens and addresses' users */
	WEIR_EXPLAIN_BARE = 1 << 1, /* nor what it asks for: it is no Kubernetes API server */
	WEIR_EXPLAIN_SEE = 1 << 2,  /* nothing is refused there */
	WEIR_EXPLAIN_TOO_MANY =
		1 << 3, /* by memory: nothing that is long-running is, and all others are answered 429 */
};

struct weir_explain {
	__u32 server;
	__u32 length;	 /* bytes of the request; 0: it is about a new connection, whose handshake is complete */
	__u32 believed;	 /* the headers that name a user count, whoever the peer is */
	__u8 source[16]; /* the peer: network order, IPv4 as ::ffff:a.b.c.d */
	__u32 inside;	 /* enum weir_explain_inside */
	__u64 now_ns; /* 0: it is only looked at; else it is decided as if it came then: what it takes is gone, and counted */
};
WEIR_ASSERT_SIZE(struct weir_explain, 40);

enum weir_explained_flags {
	WEIR_EXPLAINED_ASKED = 1 << 0, /* the limit is for the request; nothing below is known otherwise */
	WEIR_EXPLAINED_REFUSED = 1 << 1,
	WEIR_EXPLAINED_DRY_RUN = 1 << 2,   /* it would refuse, but is there to be watched only */
	WEIR_EXPLAINED_PENALISED = 1 << 3, /* REFUSED because of what is left of a penalty; no limit was asked */
	WEIR_EXPLAINED_SEATS = 1 << 5,	   /* it is of requests in flight: seats, taken and wanted are what counts */
	WEIR_EXPLAINED_NEW = 1 << 4,	   /* nothing is kept for the subject yet */
	WEIR_EXPLAINED_DENY = 1 << 6,	   /* its subject may have none, ever */
};

/* A limit whose rules match. */
struct weir_explained_limit {
	__u64 subject;		   /* whom it charges; 0: all, or, where the limit has a key, nobody */
	__u64 wait_ns;		   /* after which it would admit, where it refuses: the penalty that begins included */
	__u64 penalty_ns;	   /* how long its subject is still penalised */
	__u64 per_ns, burst;	   /* the rate in force, as in struct weir_rate */
	struct weir_tokens tokens; /* that there are now */
	__u32 slot;
	__u32 flags; /* enum weir_explained_flags */
	__u32 seats; /* of an in-flight limit: so many there are, are taken, and would be taken */
	__u32 taken;
	__u32 wanted;
	__u32 failures; /* of the subject: refusals, one after the other, of those that had waited */
};

enum weir_explained_exempt {
	WEIR_EXEMPT_NOT,
	WEIR_EXEMPT_HEALTH, /* by the path of a health check */
	WEIR_EXEMPT_GROUP,  /* by a group, or user, that is exempt */
	WEIR_EXEMPT_RULE,   /* by a rule */
};

struct weir_explained {
	struct weir_trace trace; /* the request, its user, the decision, and the details of the decision */
	struct weir_name user_name,
		namespace_name;	    /* of a token's or an address's principal; length 0: another one's */
	struct weir_vector matched; /* rules */
	__u64 source;		    /* subject of the peer's address; 0: no limit asks for it */
	__u32 generation;	    /* of the rules; 0: the server has none */
	__u16 lost;		    /* enum weir_reason: it cannot be read; WEIR_REASON_NONE: it can */
	__u8 whole;		    /* its head has ended; a connection always has */
	__u8 exempt;		    /* enum weir_explained_exempt */
	__u32 event_key; /* enum weir_reason of the group EVENT: how its Event was told apart; WEIR_REASON_NONE: it is none */
	__u32 n_limits;
	struct weir_width_said width; /* of a LIST that was asked for: the seats that it takes of its level */
	struct weir_explained_limit limits[WEIR_MATCHES_MAX]; /* in the order in which they are asked */
};

/* The same of many requests in one run of the program weir_replay: each is in a slot of a map that both sides see. */
#define WEIR_REPLAY_SLOTS 256 /* two batches: one is filled while the other is decided */

enum weir_replay_done {
	WEIR_REPLAY_WAITING,
	WEIR_REPLAY_DECIDED,
	WEIR_REPLAY_FAILED, /* there is no such server */
};

struct weir_replayed {
	struct weir_explain question;
	__u32 done; /* enum weir_replay_done */
	__u32 pad;
	__u8 request[WEIR_EXPLAIN_BYTES];
	struct weir_explained answer;
};
WEIR_ASSERT_SIZE(struct weir_replayed, 40 + 8 + WEIR_EXPLAIN_BYTES + sizeof(struct weir_explained));

#endif
