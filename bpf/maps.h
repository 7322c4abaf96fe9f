/* SPDX-License-Identifier: GPL-2.0 */
/* The maps; their contents: include/weir/abi/abi.h. */
#ifndef WEIR_BPF_MAPS_H
#define WEIR_BPF_MAPS_H

#include "weir/abi/abi.h"
#include "weir/abi/answer.h"
#include "weir/admission/admission.h"
#include "weir/admission/box.h"
#include "weir/base/duration.h"
#include "weir/conn/conn.h"
#include "weir/conn/rest.h"
#include "weir/conn/trace.h"
#include "weir/inside/turn.h"
#include "weir/limit/penalty.h"

#define E2BIG 7
#define EEXIST 17

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct weir_settings);
} settings SEC(".maps");

/*
 * One for each port there is: every packet of the interface looks here, and an array's look-up is no call. The agent looks for those
 * that are used: in its own memory, as 65,536 copies of 8 bytes each take as long as a thousand requests.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WEIR_PORTS);
	__type(key, __u32);
	__type(value, struct weir_port);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_LISTENERS);
	__type(key, struct weir_listener);
	__type(value, __u32);
} listeners SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_MAX_SERVERS);
	__type(key, __u32);
	__type(value, struct weir_server);
} servers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, WEIR_MAX_PROXIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_proxy_key);
	__type(value, __u8);
} proxies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, WEIR_MAX_PROXIES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_proxy_key);
	__type(value, __u8);
} balancers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_GROUP_KEYS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_subject_key);
	__type(value, __u32);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_TOKENS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_subject_key);
	__type(value, struct weir_principal);
} tokens SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, WEIR_MAX_ADDRESSES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_proxy_key);
	__type(value, struct weir_principal);
} addresses SEC(".maps");

/*
 * Moves after each change of `limits`: as long as it stands, nobody needs to look there whether what was copied is still in force. 0: it
 * was never set, and tells nothing.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} limit_changes SEC(".maps");

/* A hash, not an array: an update replaces the whole value at once, so no program reads half of a new limit. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_LIMITS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct weir_limit);
} limits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_OVERRIDES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_override_key);
	__type(value, struct weir_amount);
} overrides SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * WEIR_MAX_SERVERS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_rules_key);
	__type(value, struct weir_rules);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_VECTORS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_vector_key);
	__type(value, struct weir_vector);
} vectors SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, WEIR_MAX_SOURCES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_source_key);
	__type(value, struct weir_vector);
} sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_MAX_LIMITS);
	__type(key, __u32);
	__type(value, struct weir_limit_counts);
} limit_counts SEC(".maps");

/* No LRU: what is taken is given back. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_IN_FLIGHT);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_in_flight_key);
	__type(value, struct weir_in_flight);
} in_flight SEC(".maps");

/* No LRU either. Only complete handshakes have entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_ADMITTED);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_flow);
	__type(value, struct weir_admitted);
} admitted SEC(".maps");

/* Addresses that ask of servers with penalties. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WEIR_MAX_BOXES);
	__type(key, struct weir_box_key);
	__type(value, struct weir_box);
} boxes SEC(".maps");

/* Of lists that are wide, or were: the others need no entry. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WEIR_MAX_WIDTHS);
	__type(key, struct weir_width_key);
	__type(value, struct weir_width);
} widths SEC(".maps");

struct bucket_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WEIR_DEFAULT_KEYS);
	__type(key, __u64);
	__type(value, struct weir_kept);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, WEIR_MAX_LIMITS);
	__type(key, __u32);
	__array(values, struct bucket_map);
} buckets SEC(".maps");

/* Of each limit, how many subjects that are new may have a bucket of their own. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_MAX_LIMITS);
	__type(key, __u32);
	__type(value, struct weir_bucket);
} newcomers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WEIR_MAX_NAMES);
	__type(key, __u64);
	__type(value, struct weir_name);
} names SEC(".maps");

/* No locks in it: programs inside servers write it. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WEIR_MAX_TURNS);
	__type(key, struct weir_turn_key);
	__type(value, struct weir_turns);
} hold_turns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_DEFAULT_CONNS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_flow);
	__type(value, struct weir_conn);
} conns SEC(".maps");

/* Connections on which nothing is under way (include/weir/conn/rest.h). What is here is in `conns` only for a moment. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_DEFAULT_CONNS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_flow);
	__type(value, struct weir_resting);
} resting SEC(".maps");

/* Servers that have taken a body for requests (body_served.h): 1. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_MAX_SERVERS);
	__type(key, __u32);
	__type(value, __u32);
} body_servers SEC(".maps");

/* Devices that `attach --interface` names (named.h), also those on which no program can be. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_NAMED_DEVICES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} named_devices SEC(".maps");

/* Connections that this host has opened from a server's port (outgoing.h): the number of the SYN. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WEIR_MAX_OUTGOING);
	__type(key, struct weir_flow);
	__type(value, __u32);
} outgoing SEC(".maps");

/*
 * What connections have only while something is under way, by the number in the connection's `busy`. As many as there may be
 * connections, so that none fills it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_DEFAULT_CONNS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct weir_busy);
} busy SEC(".maps");

/* Timers of connections that go after a silence. What finds no room here goes by the agent's sweep, some seconds later. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_DEFAULT_CONNS / WEIR_LINGERING_SHARE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct weir_flow);
	__type(value, struct weir_lingering);
} lingering SEC(".maps");

/* Entries of `conns` whose connections have ended, in that order. Some may be gone. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, WEIR_DEFAULT_CONNS);
	__type(value, struct weir_finished);
} finished SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct weir_table);
} table SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_HOLDERS);
	__type(key, __u32);
	__type(value, __u32);
} holders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WEIR_MAX_SERVERS *WEIR_COUNTER_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WEIR_ANSWERS);
	__type(key, __u32);
	__type(value, struct weir_answer);
} answers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WEIR_MAX_LIMITS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct weir_refusal);
} refusals SEC(".maps");

#define TRACE_RING_BYTES (4U << 20)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TRACE_RING_BYTES);
} trace SEC(".maps");

/* Counts are added to in softirqs, and in programs that these interrupt. */
static __always_inline void add(__u64 *counter, __u64 n)
{
	__sync_fetch_and_add(counter, n);
}

/* counter: enum weir_reason, or enum weir_counter. For what every request counts. */
static __always_inline void count_in_place(__u32 server, __u32 counter_of, __u64 n)
{
	__u32 index = server * WEIR_COUNTER_COUNT + counter_of;
	__u64 *counter = bpf_map_lookup_elem(&counters, &index);

	if (counter)
		add(counter, n);
}

/*
 * A function of its own: over a hundred places count, and every few look-ups that the kernel writes out while it loads a program, it
 * copies all it knows of the program.
 */
__noinline int count_many(__u32 server, __u32 counter_of, __u64 n)
{
	count_in_place(server, counter_of, n);
	return 0;
}

static __always_inline void count(__u32 server, __u32 reason)
{
	count_many(server, reason, 1);
}

/* sum: of the nanoseconds; first: the first bucket's. */
static __always_inline void count_duration(__u32 server, __u32 sum, __u32 first, __u64 ns)
{
	count_in_place(server, sum, ns);
	count_in_place(server, first + weir_duration_bucket(ns), 1);
}

#endif
