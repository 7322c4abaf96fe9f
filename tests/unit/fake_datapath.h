/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A kernel side in memory, for tests of the agent: the functions of user/datapath.h and user/netns.h over plain
 * structs that a test reads and writes. "/netns/N" is the namespace with the cookie N; the agent's own has 1.
 */
#ifndef WEIR_TESTS_FAKE_DATAPATH_H
#define WEIR_TESTS_FAKE_DATAPATH_H

#include "datapath.h"

#define FAKE_NETS 4
#define FAKE_OVERRIDES 16
#define FAKE_RECORDS 8

struct fake_limit {
	bool set;
	__u64 per_ns, burst, subject;
	__u32 keys, limit;
};

/* A namespace's maps and links: they outlive the agent that opened them. */
struct datapath {
	bool pinned, open;
	unsigned int writes; /* calls that changed something */
	struct {
		bool set;
		__u32 flags;
		size_t n_listens, n_proxies, n_balancers, n_groups, n_tokens, n_addresses;
		__u64 trace_until_ns;
	} servers[WEIR_MAX_SERVERS];
	struct fake_limit limits[WEIR_MAX_LIMITS];
	struct fake_limit overrides[FAKE_OVERRIDES];
	__u64 counters[WEIR_MAX_SERVERS][WEIR_REASON_COUNT];
	size_t n_wanted; /* interfaces; 0: all */
	size_t n_cgroups;
	bool can_pace, paced;
	int tracked; /* loopback, by conntrack */
	int netlink[2];
	int traced[2]; /* the descriptor of the ring, which is never readable */
	struct weir_trace_record records[FAKE_RECORDS];
	unsigned int n_records;
};

extern struct datapath fake_nets[FAKE_NETS]; /* by cookie */
/* The function of this name fails with -EIO, so often. */
extern const char *fake_failing;
extern int fake_failures;

void fake_reset(void);
/* The override of a slot's limit for a subject's bytes, or NULL. */
struct fake_limit *fake_override(struct datapath *dp, __u32 slot, enum weir_limit_type type, const char *name);

#endif
