/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel side of one network namespace: its maps and programs, pinned in one directory, and the links of its
 * interfaces. All functions return 0 or a negative errno with err filled in. Nothing here prints.
 *
 * One thread at a time works with a datapath. Another one may meanwhile use what only reads the kernel's counts and names
 * (datapath_counters(), _limit_counts(), _in_flight(), _top(), _name(), _subject(), _conns_max(), _links()), and the
 * functions of the trace; a third one may sweep.
 *
 * Pins: PIN_DIR/net-COOKIE/{map name}, .../prog-{ingress,egress}, .../link-IFINDEX-{ingress,egress} (tcx only),
 * .../link-{cgroup,sockops}-ID, .../link-IFINDEX-xdp.
 * Everything survives the process: datapath_close() leaves it in force, datapath_open() takes over what is there,
 * replaces the programs on the links it finds and never resets a map.
 */
#ifndef WEIR_USER_DATAPATH_DATAPATH_H
#define WEIR_USER_DATAPATH_DATAPATH_H

#include <string.h>

#include "weir/abi/abi.h"
#include "weir/top/heavy.h"

#include "base/error.h"
#include "datapath/heavy_rows.h"
#include "datapath/open_requests.h"
#include "sys/changes.h"
#include "sys/xdp.h"

struct datapath;
struct weir_explained;
struct weir_trace_record;

/* The maps that the agent alone writes, but for the contents of buckets. */
#define DATAPATH_OWN_MAPS(X) \
	X(settings)          \
	X(ports)             \
	X(listeners)         \
	X(servers)           \
	X(proxies)           \
	X(balancers)         \
	X(groups)            \
	X(tokens)            \
	X(addresses)         \
	X(rules)             \
	X(vectors)           \
	X(sources)           \
	X(limits)            \
	X(overrides)         \
	X(buckets)           \
	X(answers)           \
	X(refusals)          \
	X(named_devices)

/*
 * What the agent keeps as it should be: its maps, and besides
 * pins      the files of maps and programs
 * links     the programs on devices
 * holds     and on cgroups
 */
#define DATAPATH_PARTS(X)    \
	DATAPATH_OWN_MAPS(X) \
	X(pins)              \
	X(links)             \
	X(holds)

enum datapath_part {
#define X(name) DATAPATH_##name,
	DATAPATH_PARTS(X)
#undef X
	DATAPATH_N_PARTS,
};

const char *datapath_part_name(enum datapath_part part);

struct datapath_written {
	struct datapath_changes of[DATAPATH_N_PARTS];
};

struct datapath_options {
	const char *pin_dir; /* on a bpffs */
	int netns_fd;	     /* owned by the caller; must stay open as long as the datapath */
	__u64 netns_cookie;
	__u32 conns_max; /* 0: WEIR_DEFAULT_CONNS */
};

#define DATAPATH_KERNEL_BTF "/sys/kernel/btf/vmlinux"

/* -EOPNOTSUPP: this kernel is too old, or does not describe its types. */
int datapath_kernel_check(struct error *err);
/* -EPERM: this process may not load programs; the error says what it lacks, and what to do. */
int datapath_permission_check(struct error *err);
/* Can anything be pinned there? Mounts the usual bpffs if it is not there. */
int datapath_pins_check(const char *pin_dir, struct error *err);

/*
 * Loads the programs, and lets them go. no_hold: why the kernel refuses the one that holds what cannot be read; "": it takes it.
 * -EPERM: whoever asks may not load programs.
 */
int datapath_try(struct error *no_hold, struct error *err);
/* Does the kernel make SYN cookies for XDP? 1: it does. A negative errno: it cannot be told. */
int datapath_try_cookies(void);

/*
 * Where the kernel refuses the program that holds what cannot be read, it goes without it: datapath_hold_sync() fails then.
 * Any other program that is refused is an error.
 */
int datapath_open(struct datapath **out, const struct datapath_options *options, struct error *err);
/* dir: PIN_DIR/net-COOKIE. 0: this version can take over what is pinned there, if anything is. -EPROTO: another version has made it. */
int datapath_version_check(const char *dir, struct error *err);
/* Why; "": it does not go without it. */
const char *datapath_no_hold(const struct datapath *dp);
void datapath_close(struct datapath *dp);

/*
 * Maps that nobody else sees, for datapath_replay_open(): of no namespace and without programs on it, nothing is pinned. Gone when it is
 * closed.
 */
int datapath_open_alone(struct datapath **out, struct error *err);

/*
 * What all servers of the namespace share: settings, answers, pins; and entries of servers that are not among these are
 * dropped.
 */
struct datapath_servers {
	bool has[WEIR_MAX_SERVERS];
};
int datapath_shared_sync(struct datapath *dp, const struct datapath_servers *servers, struct error *err);

/* Since it was opened. */
const struct datapath_written *datapath_written(const struct datapath *dp);

/* Takes programs off every interface and removes every pin of this namespace. The datapath must then be closed. */
int datapath_remove(struct datapath *dp, struct error *err);

/* A server's kernel side, for which the seed is filled in. Slots 0..WEIR_MAX_SERVERS-1 are given out by the caller. */
struct datapath_listen {
	bool any;	  /* every address */
	__u8 address[16]; /* network order, IPv4 as ::ffff:a.b.c.d; all zero with any */
	__u16 port;	  /* host order */
};

/* Does a socket that listens on this address (all zero: on any) and port take what comes there? */
static inline bool datapath_listen_hears(const struct datapath_listen *listen, const __u8 address[16], __u16 port)
{
	static const __u8 any[16];

	return listen->port == port &&
	       (listen->any || !memcmp(address, any, sizeof(any)) || !memcmp(address, listen->address, sizeof(any)));
}

struct datapath_cidr {
	__u8 address[16]; /* as above */
	__u8 bits;	  /* of 128: 96 + n for IPv4 */
};

int datapath_server_set(struct datapath *dp, __u32 slot, const struct weir_server *server,
			const struct datapath_listen *listens, size_t n_listens, const struct datapath_cidr *proxies,
			size_t n_proxies, struct error *err);
/* Has it been found out that the server takes bodies for requests (bpf/body_served.h)? */
int datapath_serves_bodies(struct datapath *dp, __u32 slot, bool *found, struct error *err);
/* Whose PROXY protocol preambles are believed: these networks and no others. */
int datapath_balancers_set(struct datapath *dp, __u32 slot, const struct datapath_cidr *balancers, size_t n,
			   struct error *err);
/* Returns when no program runs that has seen the old flags: whatever it did to a connection is counted by then. */
int datapath_server_flags(struct datapath *dp, __u32 slot, __u32 flags, struct error *err);
/* Nothing is limited any more: new connections are left alone, translated ones go on. */
int datapath_drain_all(struct datapath *dp, struct error *err);
/* The groups that follow from how a request is identified. */
int datapath_known_groups_set(struct datapath *dp, __u32 slot, const struct weir_known_groups *groups,
			      struct error *err);
/* What a LIST takes of a level's seats, as struct weir_server has it. */
int datapath_lists_set(struct datapath *dp, __u32 slot, __u32 width, __u32 object_bytes, struct error *err);
/* Forgets listeners, proxies, limits, overrides, buckets and how wide lists are; the counters of the slot start at 0 for its next owner. */
int datapath_server_clear(struct datapath *dp, __u32 slot, struct error *err);

/* Groups, and users, that a server's settings name: these and no others. bit: which of struct weir_groups */
struct datapath_group {
	__u64 subject;
	__u32 bit;
};
int datapath_groups_set(struct datapath *dp, __u32 slot, const struct datapath_group *groups, size_t n,
			struct error *err);

/* The users of tokens and of networks: these and no others. Of equal tokens or networks the last counts. */
struct datapath_token {
	__u64 subject; /* of kind WEIR_NAME_TOKEN */
	struct weir_principal principal;
};
int datapath_tokens_set(struct datapath *dp, __u32 slot, const struct datapath_token *tokens, size_t n,
			struct error *err);

struct datapath_address {
	struct datapath_cidr cidr;
	struct weir_principal principal;
};
int datapath_addresses_set(struct datapath *dp, __u32 slot, const struct datapath_address *addresses, size_t n,
			   struct error *err);

/* How much of a limit: of a rate, or of seats. set false: nothing, only subjects with an override are limited. */
struct datapath_amount {
	bool set;
	bool deny; /* none, ever */
	__u64 per_ns, burst;
	__u32 seats;
};

#define DATAPATH_LIMIT_NAME 64 /* a longer one is cut */

struct datapath_limit {
	enum weir_limit_kind kind;
	enum weir_reason reason; /* of the group SHED: what is counted when it refuses */
	__u8 key;		 /* enum weir_key_part */
	__u32 flags;		 /* enum weir_limit_flags */
	__u32 epoch;		 /* differs from that of the limit that had the slot before */
	__u32 keys;		 /* size of its bucket map, used when that is made; 0: WEIR_DEFAULT_KEYS */
	struct weir_groups groups;
	struct datapath_amount amount;	/* of subjects without an override */
	struct weir_backoff penalty;	/* without parts: none */
	char name[DATAPATH_LIMIT_NAME]; /* as its answers name it; "": they name none */
};

/* A change keeps the buckets of those who are still limited. An override needs its limit. */
int datapath_limit_set(struct datapath *dp, __u32 server, __u32 slot, const struct datapath_limit *limit,
		       struct error *err);
/* All of a server's limits, by their slots (a bit for each), and their overrides: these and no others. */
struct datapath_slots {
	__u64 words[WEIR_SERVER_LIMITS / 64];
};
static inline void datapath_slots_add(struct datapath_slots *slots, __u32 slot)
{
	slots->words[slot / 64] |= 1ULL << (slot % 64);
}
static inline bool datapath_slots_have(const struct datapath_slots *slots, __u32 slot)
{
	return slots->words[slot / 64] >> (slot % 64) & 1;
}
struct datapath_override {
	__u32 slot;
	__u64 subject;
	struct datapath_amount amount;
};
int datapath_limits_keep(struct datapath *dp, __u32 server, const struct datapath_slots *slots, struct error *err);
/* Of the limits in these slots, which are there. */
int datapath_overrides_set(struct datapath *dp, __u32 server, const struct datapath_slots *slots,
			   const struct datapath_override *overrides, size_t n, struct error *err);
/* With its overrides and its buckets. */
int datapath_limit_delete(struct datapath *dp, __u32 server, __u32 slot, struct error *err);
int datapath_override_set(struct datapath *dp, __u32 server, __u32 slot, __u64 subject,
			  const struct datapath_amount *amount, struct error *err);
int datapath_overrides_delete(struct datapath *dp, __u32 server, __u32 slot, const __u64 *subjects, size_t n,
			      struct error *err);

/* Sums over CPUs, and the highest of all. */
int datapath_limit_counts(struct datapath *dp, __u32 server, __u32 slot, struct weir_limit_counts *counts,
			  struct error *err);

/*
 * Of n servers from this one on, WEIR_SERVER_LIMITS of each, by slot: seats that are taken, of all subjects together. Adds to what is
 * there. The whole table is read, however many servers are asked for.
 */
int datapath_in_flight(struct datapath *dp, __u32 server, __u32 n, __u64 *taken, struct error *err);
/* Those of one subject of a limit. */
__u32 datapath_in_flight_of(struct datapath *dp, __u32 server, __u32 slot, __u32 epoch, __u64 subject);

/* Which requests the limits behind the built-in ones are for (weir/limit/match.h): these rules and no others, at once. */
struct datapath_vector {
	enum weir_dimension dimension;
	__u64 value;
	struct weir_vector vector;
};

struct datapath_source {
	struct datapath_cidr cidr;
	struct weir_vector vector;
};

/* rules NULL: none. */
int datapath_rules_set(struct datapath *dp, __u32 server, const struct weir_rules *rules,
		       const struct datapath_vector *vectors, size_t n_vectors, const struct datapath_source *sources,
		       size_t n_sources, struct error *err);

/*
 * Connections of the table that stand at an address' place; the subject is that of its address. Another address may have the same place.
 */
__u32 datapath_connections_of(struct datapath *dp, __u64 subject);

/* What would become of a request now: nothing is charged, counted or changed by it, unless it says when it came. */
struct datapath_question {
	const char *request; /* its head and, as far as it matters, its body: WEIR_EXPLAIN_BYTES at most */
	size_t length;
	__u8 source[16]; /* its peer: network order, IPv4 as ::ffff:a.b.c.d */
	bool believed;	 /* the peer may say who the user is */
	__u32 inside;	 /* enum weir_explain_inside */
	__u64 now_ns;	 /* 0: it is only looked at; else it is decided as if it came then, and what it takes is gone */
};
int datapath_explain(struct datapath *dp, __u32 server, const struct datapath_question *question,
		     struct weir_explained *out, struct error *err);
/*
 * The same of many requests in one call: each is put into a slot, of WEIR_REPLAY_SLOTS, and slots in a row are decided in their order.
 * One thread may fill slots while another one has others decided.
 */
int datapath_replay_open(struct datapath *dp, struct error *err);
int datapath_replay_put(struct datapath *dp, __u32 at, __u32 server, const struct datapath_question *question,
			struct error *err);
int datapath_replay_run(struct datapath *dp, __u32 from, __u32 n, struct error *err);
const struct weir_explained *datapath_replay_answer(const struct datapath *dp, __u32 at);
/* A name for people; whatever is not a plain character is escaped. */
void datapath_name_text(const struct weir_name *name, char *text, size_t size);

/* The subject of a name, hashed with this namespace's seed. An address is 16 bytes, already cut to what is limited. */
__u64 datapath_subject(const struct datapath *dp, enum weir_name_kind kind, const void *bytes, size_t length);
/* Text for a subject ("alice", "10.0.0.1", "2001:db8::/64"); -ENOENT when the name is no longer known. */
int datapath_name(struct datapath *dp, __u64 subject, char *text, size_t size);

/* Sums over CPUs; `counters` has WEIR_REASON_COUNT places. */
int datapath_counters(struct datapath *dp, __u32 slot, __u64 *counters, struct error *err);

struct datapath_subject_use {
	__u32 slot; /* of the limit */
	__u64 subject;
	__u64 passed, shed;
	__u64 dry_run_shed; /* would have been refused, were it not for a dry run */
};
/* The n subjects that were refused most, most first; returns how many (>= 0). */
int datapath_top(struct datapath *dp, __u32 server, struct datapath_subject_use *top, size_t n, struct error *err);

/* Who makes a server's load (weir/top/heavy.h): the rows of these kinds, of all CPUs together, the heaviest first. */
struct datapath_heavy_query {
	__u32 slot;
	__u32 by; /* a bit (1 << enum weir_heavy_by) for each kind */
};
/* The caller frees *out. Returns how many (>= 0). */
int datapath_heavy(struct datapath *dp, const struct datapath_heavy_query *query, struct weir_heavy_row **out,
		   struct error *err);
/* The rows of all servers, each CPU's for itself. The caller clears *out. */
int datapath_heavy_places(struct datapath *dp, struct heavy_places *out, struct error *err);

/*
 * Requests in flight, ready to be counted: those that packets show (weir_conn_has_request()), of which verb and resource are not known,
 * and those that are seen inside servers. Reads the whole table of connections. The caller clears *out.
 */
int datapath_open_requests(struct datapath *dp, enum weir_heavy_by by, struct open_requests *out, struct error *err);

/*
 * Interfaces. sync compares the namespace's devices with the links that exist and repairs the difference; call it
 * at start and whenever the netlink descriptor is readable (it drains it).
 */
struct datapath_interfaces {
	const char *const *names; /* NULL: all */
	size_t n;
	enum xdp_asked xdp;
};
int datapath_netlink_fd(const struct datapath *dp);
int datapath_links_sync(struct datapath *dp, const struct datapath_interfaces *wanted, struct error *err);

struct datapath_link {
	char name[16];
	__u32 ifindex;
	const char *how; /* "tcx", "clsact", or why it is left out: "bridge port", "bond slave", ... */
	bool attached;
	__u32 other_weir;	/* a program of another weir that is there, too; 0: none */
	enum xdp_mode xdp;	/* XDP_NONE: its connections are refused at tc */
	char xdp_why[XDP_WHY];	/* and why; "": there is nothing to explain */
	const char *no_cookies; /* why XDP sends no SYN cookies; NULL: it does so for servers that ask for it */
};
/* Caller frees *links. Returns how many (>= 0). */
int datapath_links(struct datapath *dp, struct datapath_link **links, struct error *err);

/*
 * Makes these cgroups (paths) the ones whose sockets are held when they cannot be read. Where it fails, what can be read is
 * limited all the same.
 */
int datapath_hold_sync(struct datapath *dp, const char *const *cgroups, size_t n, struct error *err);
/* Do all of these have the programs, whether or not they could be brought into step? */
bool datapath_hold_runs(const struct datapath *dp, const char *const *cgroups, size_t n);

/*
 * Makes (or takes away) the device on which what cannot be read waits for its time, for the servers with
 * WEIR_SERVER_PACED. Where it fails, no packet may be sent there; -EOPNOTSUPP: this kernel cannot.
 */
int datapath_pace(struct datapath *dp, bool on, struct error *err);

/* Does conntrack track loopback connections of this namespace? 1 yes, 0 no. */
int datapath_loopback_tracked(struct datapath *dp, struct error *err);

/*
 * The ring of requests. until: CLOCK_MONOTONIC, up to which those of a slot are written; 0: no more. read gives what is
 * there to tell(arg, record), to which the bytes behind its line_kept do not belong; returns whether there may be more.
 */
int datapath_trace_until(struct datapath *dp, __u32 slot, __u64 until_ns, struct error *err);
int datapath_trace_fd(const struct datapath *dp);
bool datapath_trace_read(struct datapath *dp, void (*tell)(void *arg, const struct weir_trace_record *record),
			 void *arg);

/*
 * Connections. sweep forgets those whose socket is gone and that have been idle for idle_ns, and returns how many; before,
 * it lets go what is due of dying ones (weir_conn_due()).
 * reset ends, by RST to both sides, the translated connections of a slot; returns how many. max: what the table can hold.
 */
#define DATAPATH_EVERY_SLOT WEIR_MAX_SERVERS
#define DATAPATH_IDLE_NS (120 * WEIR_NS_PER_S) /* an idle_ns after which one looks */
__u32 datapath_conns_max(const struct datapath *dp);
int datapath_sweep(struct datapath *dp, __u64 idle_ns, struct error *err);
/* From another thread: a sweep ends soon, and none begins any more. */
void datapath_sweep_stop(struct datapath *dp);
int datapath_reset_translated(struct datapath *dp, __u32 slot, struct error *err);

#endif
