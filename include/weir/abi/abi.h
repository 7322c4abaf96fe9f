/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the BPF programs and the agent share through maps. Fixed widths, explicit padding, host byte order unless a
 * field says otherwise. One set of these maps exists for each network namespace that has an attached server (the set
 * is pinned in a directory of its own), so ids are local to the namespace.
 *
 *   map         type            key                      value
 *   settings    ARRAY(1)        0                        struct weir_settings
 *   ports       ARRAY           port (host order)        struct weir_port
 *   listeners   HASH            struct weir_listener     __u32 server
 *   servers     ARRAY           server                   struct weir_server
 *   proxies     LPM_TRIE        struct weir_proxy_key    __u8 (1)
 *   balancers   LPM_TRIE        struct weir_proxy_key    __u8 (1)              whose preambles are believed (preamble.h)
 *   groups      HASH            struct weir_subject_key  __u32 bit (groups.h)   that a group has, or a user who is named
 *   tokens      HASH            struct weir_subject_key  struct weir_principal
 *   addresses   LPM_TRIE        struct weir_proxy_key    struct weir_principal
 *   rules       HASH            struct weir_rules_key    struct weir_rules     (match.h)
 *   vectors     HASH            struct weir_vector_key   struct weir_vector
 *   sources     LPM_TRIE        struct weir_source_key   struct weir_vector
 *   limits      HASH            __u32 limit index        struct weir_limit     (limit.h)
 *   limit_changes ARRAY(1)      0                        __u64                 moves after each change of `limits`
 *   overrides   HASH            struct weir_override_key struct weir_amount    for one subject
 *   limit_counts PERCPU_ARRAY   limit index              struct weir_limit_counts
 *   in_flight   HASH            struct weir_in_flight_key struct weir_in_flight
 *   admitted    HASH            struct weir_flow         struct weir_admitted  (admission.h)
 *   boxes       LRU_HASH        struct weir_box_key      struct weir_box       (admission/box.h)
 *   widths      LRU_HASH        struct weir_width_key    struct weir_width     (width.h)
 *   buckets     ARRAY_OF_MAPS   limit index              LRU_HASH: __u64 subject -> struct weir_kept
 *   newcomers   ARRAY           limit index              struct weir_bucket    subjects that may get a bucket
 *   names       LRU_HASH        __u64 subject            struct weir_name      for display only
 *   hold_turns  LRU_HASH        struct weir_turn_key     struct weir_turns     (inside/turn.h) of connections that may be held
 *   conns       HASH            struct weir_flow         struct weir_conn      (conn.h)
 *   resting     HASH            struct weir_flow         struct weir_resting   (conn/rest.h) those of them that are idle
 *   body_servers ARRAY          server                   __u32 1: it has taken a body for requests (bpf/body_served.h)
 *   named_devices HASH          __u32 ifindex            __u8                  those that servers with SOME_INTERFACES name
 *   outgoing    LRU_HASH        struct weir_flow         __u32 number of the SYN   of connections that this host opens from a server's port
 *   finished    QUEUE                                    struct weir_finished  those of them that have ended
 *   table       ARRAY(1)        0                        struct weir_table     how many there are
 *   holders     ARRAY           address, striped         __u32 connections that it has there
 *   counters    PERCPU_ARRAY    server * WEIR_COUNTER_COUNT + enum weir_counter   __u64
 *   heavy       PERCPU_ARRAY                             struct weir_heavy_set (top/heavy.h) who makes the load
 *   trace       RINGBUF                                  struct weir_trace_record (trace.h)
 *   answers     ARRAY           weir_answer_index(), weir_rejection_index()   struct weir_answer   (answer.h)
 *   refusals    HASH            limit index              struct weir_refusal   (answer.h) of limits that are named
 *   devices     HASH            struct weir_device_key   struct weir_device    of XDP alone, and not pinned
 *   own_addresses HASH          struct weir_own_address  __u32 ifindex         the same
 *
 * A subject is the keyed hash of a name (subject.h); 0 is the only subject of `total`. New ones for which there is no
 * allowance are WEIR_SUBJECT_OVERFLOW to a limit.
 */
#ifndef WEIR_ABI_ABI_H
#define WEIR_ABI_ABI_H

#include "weir/base/groups.h"
#include "weir/base/reading.h"
#include "weir/base/reason.h"
#include "weir/base/types.h"
#include "weir/limit/limit.h"
#include "weir/limit/match.h"
#include "weir/limit/width.h"

#ifndef WEIR_ABI_VERSION /* a test has an agent of another version */
#define WEIR_ABI_VERSION 24
#endif

#define WEIR_SUBJECT_OVERFLOW (~0ULL)
#define WEIR_SUBJECT_PENALTY (~1ULL) /* its bucket is that of the limit's penalties */

#define WEIR_MAX_SERVERS 64
#define WEIR_MAX_OVERRIDES 131072
#define WEIR_PORTS 65536
#define WEIR_MAX_LISTENERS 1024
#define WEIR_MAX_PROXIES 4096
#define WEIR_MAX_GROUP_KEYS 65536
#define WEIR_MAX_TOKENS 65536
#define WEIR_MAX_ADDRESSES 131072
#define WEIR_MAX_VECTORS 262144
#define WEIR_MAX_SOURCES 65536
#define WEIR_MAX_IN_FLIGHT 262144
#define WEIR_MAX_ADMITTED 262144
#define WEIR_MAX_BOXES 16384
#define WEIR_MAX_WIDTHS 4096
#define WEIR_MAX_NAMES 65536
#define WEIR_MAX_OUTGOING 4096
#define WEIR_MAX_NAMED_DEVICES 4096
#define WEIR_DEFAULT_CONNS 262144
#define WEIR_LINGERING_SHARE 8 /* of as many connections as there may be, one has room for a timer */
#define WEIR_HOLDERS 65536
#define WEIR_DEFAULT_KEYS 65536

#define WEIR_MAX_LIMITS (WEIR_MAX_SERVERS * WEIR_SERVER_LIMITS)

/* The index of a server's limit in `limits`, `buckets`, `newcomers` and `limit_counts`. */
WEIR_INLINE __u32 weir_limit_index(__u32 server, __u32 slot)
{
	return server * WEIR_SERVER_LIMITS + slot;
}

struct weir_settings {
	__u32 abi_version;  /* WEIR_ABI_VERSION of the maps' maker */
	__u32 pace_ifindex; /* the device on which paced packets wait (pace.h); 0: there is none */
	__u64 seed[2];	    /* key of the subject hash, random, made once with the maps */
	__u64 netns_cookie; /* of the namespace these maps are of */
};
WEIR_ASSERT_SIZE(struct weir_settings, 32);

/* Who listens on a port; all zero: no attached server does. */
struct weir_port {
	__u32 any;	 /* server + 1 that listens on every address of this port, 0: none */
	__u32 addresses; /* entries of this port in `listeners` */
};
WEIR_ASSERT_SIZE(struct weir_port, 8);

struct weir_listener {
	__u8 address[16]; /* network order; IPv4 as ::ffff:a.b.c.d */
	__u16 port;	  /* host order */
	__u8 pad[6];
};
WEIR_ASSERT_SIZE(struct weir_listener, 24);

/*
 * Frames that are for this namespace: what XDP sees of a device, with a frame's VLAN tags, and the address and number of the
 * device that takes them: that device, or one for VLANs on top of it.
 */
#define WEIR_DEVICE_TAGS 2
#define WEIR_MAX_DEVICES 4096
#define WEIR_DEVICE_SERVICE_TAG 0x1000 /* of 802.1ad; others are of 802.1Q */
#define WEIR_DEVICE_TAGGED 0x2000

struct weir_device_key {
	__u32 ifindex;
	__u32 tags; /* weir_device_tags(); 0: none */
};

struct weir_device {
	__u8 address[6];
	__u8 answers; /* what XDP sends back by the device below gets out */
	__u8 pad;
	__u32 ifindex;
};
WEIR_ASSERT_SIZE(struct weir_device, 12);

/* An address of this namespace, and which device has it; 0: several have. */
#define WEIR_MAX_OWN_ADDRESSES 4096

struct weir_own_address {
	__u8 bytes[16]; /* network order; IPv4 as ::ffff:a.b.c.d */
};
WEIR_ASSERT_SIZE(struct weir_own_address, 16);

/* Behind the tags of before comes one more. One without a VLAN is only a priority, and says nothing. */
WEIR_INLINE __u32 weir_device_tags(__u32 tags, __u16 control, bool service)
{
	__u32 id = control & 0xfff;

	if (!id)
		return tags;
	return tags << 16 | WEIR_DEVICE_TAGGED | (service ? WEIR_DEVICE_SERVICE_TAG : 0) | id;
}

enum weir_server_flags {
	WEIR_SERVER_ACTIVE = 1 << 0,
	WEIR_SERVER_PAUSED = 1 << 1,	       /* everything passes at once; connections are still followed */
	WEIR_SERVER_DRY_RUN = 1 << 2,	       /* decided and counted, never shed */
	WEIR_SERVER_DRAINING = 1 << 3,	       /* detached: only translated connections are still served */
	WEIR_SERVER_CLOSING_LOOPBACK = 1 << 5, /* lesser mode: on loopback a 429 also closes its connection */
	WEIR_SERVER_SOME_INTERFACES = 1 << 10, /* packets by others than `named_devices` are not limited */
	WEIR_SERVER_FULL_REFUSES = 1 << 11, /* what finds no room in a table waits, or is refused, instead of passing */
	WEIR_SERVER_PASS_AMBIGUOUS = 1 << 6, /* ambiguous requests go to it, instead of being rejected */
	WEIR_SERVER_PACED = 1 << 7,	     /* what cannot be read waits on a device instead of being dropped */
	WEIR_SERVER_HAS_ADDRESSES = 1 << 8,  /* in `addresses` */
	WEIR_SERVER_KNOWS_USERS = 1 << 9,    /* in `groups`: users who are named, each of whom is a group of one */
	WEIR_SERVER_PREAMBLES = 1 << 12,     /* each of its connections begins with a PROXY protocol preamble */
	WEIR_SERVER_FULL_KNOWN = 1 << 13,    /* with FULL_REFUSES: connections of sources that are known need no room */
	WEIR_SERVER_INSIDE =
		1 << 14,	   /* requests that packets do not show are decided inside the server, and not held */
	WEIR_SERVER_XDP = 1 << 15, /* its connections may be refused at XDP */
	WEIR_SERVER_INSIDE_HOLD = 1 << 16, /* what is decided inside holds back connections (inside/turn.h) */
	WEIR_SERVER_XDP_COOKIES =
		1 << 17, /* XDP answers SYNs with cookies where the kernel would (admission/cookie.h) */
	WEIR_SERVER_BODIES_UNREAD = 1 << 18, /* it may take bodies for requests, whatever `body_servers` says; */
	WEIR_SERVER_BODIES_READ = 1 << 19,   /* it does not, whatever that says */
};

/* What its limits ask for; nothing of it is done for a server without such limits. */
enum weir_server_traits {
	WEIR_SERVER_IN_FLIGHT = 1 << 0,	  /* seats are counted */
	WEIR_SERVER_OBJECTS = 1 << 1,	  /* what an Event is about is a part of some key */
	WEIR_SERVER_SOURCES = 1 << 2,	  /* the peer's address is */
	WEIR_SERVER_PENALTIES = 1 << 3,	  /* subjects that do not back off are penalised */
	WEIR_SERVER_CONNECTIONS = 1 << 4, /* new connections are counted (admission.h) */
	WEIR_SERVER_LIMITED = 1 << 8,	  /* and the bits above it: it has that enum weir_builtin_limit */
};

/* Groups that follow from how a request is identified, and those that no limit is for: as far as they are known. */
struct weir_known_groups {
	struct weir_groups authenticated;    /* system:authenticated */
	struct weir_groups unauthenticated;  /* system:unauthenticated */
	struct weir_groups service_accounts; /* system:serviceaccounts */
	struct weir_groups exempt;
	__u64 lengths; /* weir_length_bit() of the names of all groups that have a bit */
};
WEIR_ASSERT_SIZE(struct weir_known_groups, 72);

/* What every request asks for stands together at its beginning. */
struct weir_server {
	__u32 flags;
	__u32 traits;	      /* enum weir_server_traits */
	__u64 trace_until_ns; /* CLOCK_MONOTONIC; until then its requests are traced: it ends by itself when the agent dies */
	__u64 look_until_ns; /* the same; until then somebody looks at which requests are in flight inside (weir/inside/open.h) */
	__u32 generation; /* of its rules; 0: it has none */
	__u32 swallow_max; /* bytes of a shed request's body that are swallowed to keep its connection; above: 429 and close */
	struct weir_known_groups groups;
	struct weir_reading reading;
	struct weir_rate_history newcomers; /* subjects that may be new to a limit; burst 0: all */
	__u64 newcomers_seal;		    /* weir_newcomers_seal() */
	__u32 list_width;		    /* seats of a LIST; 0: as many as its list is known to be wide (width.h) */
	__u32 object_bytes;		    /* of an answer to a LIST; 0: WEIR_OBJECT_BYTES */
	__u32 retry_max_s;		    /* the longest Retry-After; 0: WEIR_RETRY_MAX_S */
	__u32 hold_max_s;		    /* the longest that a connection is held for; 0: WEIR_TURN_HOLD_MAX_S */
};
WEIR_ASSERT_SIZE(struct weir_server, 544);

WEIR_INLINE __u64 weir_newcomers_seal(const struct weir_rate_history *newcomers, __u32 server)
{
	return weir_seal(newcomers, sizeof(*newcomers), server);
}

struct weir_proxy_key {
	__u32 prefixlen;  /* 32 (server) + bits of the address */
	__u32 server;	  /* compared whole, so its byte order does not matter */
	__u8 address[16]; /* network order; IPv4 as ::ffff:a.b.c.d, so /8 is 96 + 8 bits */
};
WEIR_ASSERT_SIZE(struct weir_proxy_key, 24);

struct weir_override_key {
	__u32 limit;
	__u32 pad;
	__u64 subject;
};
WEIR_ASSERT_SIZE(struct weir_override_key, 16);

enum weir_name_kind {
	WEIR_NAME_NAMESPACE = 'n',
	WEIR_NAME_USER = 'u',
	WEIR_NAME_GROUP = 'g',
	WEIR_NAME_TOKEN = 't',	 /* its text is nowhere */
	WEIR_NAME_OBJECT = 'o',	 /* text holds a struct weir_object_name */
	WEIR_NAME_ADDRESS = 'a', /* text holds 16 bytes: the address, network order; IPv6 cut to its /64 */
	WEIR_NAME_PARTS = 'p',	 /* text holds the subjects of a key's parts, in the order of enum weir_key_part */
};

#define WEIR_NAME_TEXT 120

struct weir_name {
	__u8 kind;   /* enum weir_name_kind */
	__u8 length; /* bytes in text */
	__u16 whole; /* bytes the name had before it was cut for display */
	__u32 pad;
	char text[WEIR_NAME_TEXT];
};
WEIR_ASSERT_SIZE(struct weir_name, 128);

/* What an event is about, for display: texts cut to their places, with zeros behind what is shorter. */
struct weir_object_name {
	char kind[24];
	char namespace[32];
	char name[64];
};
WEIR_ASSERT_SIZE(struct weir_object_name, WEIR_NAME_TEXT);

/* A name of a server's: a token, a group. */
struct weir_subject_key {
	__u32 server;
	__u32 pad;
	__u64 subject;
};
WEIR_ASSERT_SIZE(struct weir_subject_key, 16);

/* The user that a token or an address stands for. */
struct weir_principal {
	__u64 user;	 /* subject */
	__u64 namespace; /* subject, of requests that name none; 0: none */
	struct weir_groups groups;
	struct weir_name user_name, namespace_name;
};
WEIR_ASSERT_SIZE(struct weir_principal, 288);

/* A connection's two ends as the server's host sees them. Addresses and ports in network order, IPv4 as ::ffff:a.b.c.d. */
struct weir_flow {
	__u8 client[16];
	__u8 server[16];
	__u16 client_port;
	__u16 server_port;
};
WEIR_ASSERT_SIZE(struct weir_flow, 36);

/* An entry of `conns`: the flow may be that of another connection by now, the id not. */
struct weir_finished {
	struct weir_flow flow;
	__u32 id; /* the lower half of it */
};
WEIR_ASSERT_SIZE(struct weir_finished, 40);

struct weir_table {
	__s64 used; /* entries of `conns` and `resting` */
	__u32 max;
	__u32 share; /* of one address, where sources that are not known have to wait */
};
WEIR_ASSERT_SIZE(struct weir_table, 16);

/* One of them may not have what leaves no room for others. */
WEIR_INLINE __u32 weir_table_share(__u32 max)
{
	return max < 4 ? 1 : max / 4;
}

/* Input of the program weir_override_end: a subject's override ends, and its bucket goes on at the limit's own rate. */
struct weir_override_end {
	__u32 limit;
	__u32 pad;
	__u64 subject;
	__u64 now_ns; /* CLOCK_MONOTONIC */
};
WEIR_ASSERT_SIZE(struct weir_override_end, 24);

/*
 * Input of the program weir_forget: drop a connection's entry, if it has this id, and count `reason` (enum weir_reason).
 * WEIR_REASON_NONE: drop only what is due of a dying one, as its timer would.
 * Of weir_forget_admitted, too: drop the entry of an admitted connection, if its word is this id. `reason` is not looked at.
 */
struct weir_forget {
	struct weir_flow flow;
	__u32 reason;
	__u64 id;
};
WEIR_ASSERT_SIZE(struct weir_forget, 48);

#endif
