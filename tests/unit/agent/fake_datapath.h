/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel side in memory, for tests of the agent: the functions of user/datapath/datapath.h (fake_datapath.c, fake_servers.c,
 * fake_limits.c, fake_reads.c), of user/datapath/inside.h and of what weir asks the host (fake_host.c), over plain structs that a
 * test reads and writes. "/netns/N" is the namespace with the cookie N; the agent's own has 1.
 */
#ifndef WEIR_TESTS_FAKE_DATAPATH_H
#define WEIR_TESTS_FAKE_DATAPATH_H

#include <stdatomic.h>

#include "datapath/datapath.h"
#include "datapath/inside.h"
#include "sys/socket_diag.h"
#include "weir/conn/explain.h"
#include "weir/conn/trace.h"

#define FAKE_NETS 4
#define FAKE_OVERRIDES 2048
#define FAKE_RECORDS 8
#define FAKE_HEAVY 16

struct fake_limit {
	bool there;
	struct datapath_limit limit;
};

struct fake_override {
	bool there;
	__u32 limit; /* weir_limit_index() */
	__u64 subject;
	struct datapath_amount amount;
};

/* A namespace's maps and links: they outlive the agent that opened them. */
struct datapath {
	struct weir_explained explained; /* what datapath_explain() says */
	int opened;			 /* how often */
	unsigned int writes;		 /* calls that changed something */
	struct datapath_written written;
	struct {
		bool set;
		__u32 flags;
		struct weir_known_groups known;
		size_t n_listens, n_proxies, n_balancers, n_groups, n_tokens, n_addresses;
		__u64 trace_until_ns;
		__u32 list_width, object_bytes;
		bool has_rules;
		struct weir_rules rules;
		size_t n_vectors, n_sources;
		struct weir_limit_counts counts[WEIR_SERVER_LIMITS];
		__u64 taken[WEIR_SERVER_LIMITS]; /* takes `taken_ms` to read */
	} servers[WEIR_MAX_SERVERS];
	struct fake_limit limits[WEIR_MAX_LIMITS];
	struct fake_override overrides[FAKE_OVERRIDES];
	__u64 counters[WEIR_MAX_SERVERS][WEIR_REASON_COUNT];
	size_t n_wanted; /* interfaces; 0: all */
	size_t n_cgroups;
	char cgroups[WEIR_MAX_SERVERS][64]; /* the names of these */
	size_t inside;			    /* processes that are looked into */
	unsigned int inside_swept;	    /* turns in which what is kept of requests was looked through */
	unsigned int taken_ms;
	int tracked; /* loopback, by conntrack */
	int netlink[2];
	int traced[2]; /* the descriptor of the ring, which is never readable */
	struct weir_trace_record records[FAKE_RECORDS];
	struct weir_heavy_row heavy[FAKE_HEAVY];
	unsigned int n_records;
	unsigned int n_heavy;
	bool pinned, open;
	bool can_pace, paced;
	bool drifted; /* an override is missing: the next datapath_shared_sync() finds and counts that */
};

/* May processes be looked into? No, unless a test sets it. */
extern bool fake_inside_allowed;

/* Who listens, in all namespaces. NULL: somebody does, on every port below 10000. */
extern const struct socket_listener *fake_listeners;
extern size_t n_fake_listeners;
extern bool fake_sockmap;   /* the kernel has a program on a map of sockets */
extern __u16 fake_udp_port; /* one that takes UDP; 0: none */

extern struct datapath fake_nets[FAKE_NETS]; /* by cookie */
extern const char *fake_failing;	     /* the function that does, or did, fail */

/* As in the kernel, one thing happens at a time; functions of the fake call each other. */
void *fake_kernel(void);
void *fake_kernel_read(void); /* for what the event loop may wait for */
void fake_kernel_leave(void *kernel);
#define CLEANUP_KERNEL __attribute__((cleanup(fake_kernel_leave), unused))

/* A test's own functions, which are called in the middle of what the kernel side does. */
extern void (*fake_asked)(void);      /* before anything that may take long */
extern void (*fake_failed)(void);     /* when a function is made to fail */
extern void (*fake_opening)(void);    /* while programs load, when it is nobody's turn */
extern void (*fake_sweeping)(void);   /* in datapath_sweep() */
extern void (*fake_explaining)(void); /* in datapath_explain() */
extern void (*fake_syncing)(void);    /* in datapath_shared_sync() */

extern atomic_bool fake_sweep_stopped; /* by datapath_sweep_stop(), of whichever namespace */

void fake_reset(void);
/* The error with which this function is to fail now, or 0. */
int fake_fails(const char *function, struct error *err);
/* From now on the function of this name fails with -EIO, so many times. */
void fake_fail(const char *function, int times);
/* A server's limit in a slot; NULL: there is none. */
struct datapath_limit *fake_limit(struct datapath *dp, __u32 server, __u32 slot);
/* What an override says of a subject of the key, which is in canonical form; NULL: there is none. */
struct datapath_amount *fake_override(struct datapath *dp, __u32 server, __u32 slot, __u8 key, const char *subject);

#endif
