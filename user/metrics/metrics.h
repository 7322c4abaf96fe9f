/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The counters as Prometheus knows them: a pure function of a snapshot. Families are JSON, a list of
 *
 *   {name, type: "counter"|"gauge"|"histogram", help, samples: [{labels: {NAME: TEXT}, value}]}
 *
 * where a histogram's samples also have the suffix ("_bucket", "_sum", "_count") that the family's name gets,
 * and text is the exposition format 0.0.4 of that. Every series of every server is always there, zero too.
 */
#ifndef WEIR_USER_METRICS_METRICS_H
#define WEIR_USER_METRICS_METRICS_H

#include <jansson.h>
#include <stdbool.h>

#include "weir/base/reason.h"
#include "weir/base/types.h"
#include "weir/limit/limit.h"

#include "base/error.h"
#include "control/access.h"
#include "probe/probe.h"

/* The groups of reason.h. */
enum metrics_group {
	METRICS_DECISION,
	METRICS_SHED,
	METRICS_EVENT,
	METRICS_UNREAD,
	METRICS_UNANSWERED,
	METRICS_IDENTIFIED,
	METRICS_IDENTITY,
	METRICS_RECORD,
	METRICS_TIME,
	METRICS_HELD_FOR,
	METRICS_ANSWERED_AFTER,
	METRICS_PACKET,
	METRICS_CONN,
	METRICS_TRACE,
	METRICS_INSIDE,
	METRICS_ADMISSION,
};

struct metrics_reason {
	const char *label;
	enum metrics_group group;
};
extern const struct metrics_reason metrics_reasons[WEIR_REASON_COUNT];

/* What it means; "" where reasons.c does not say. */
const char *metrics_reason_help(enum weir_reason reason);

/* A family whose series are the reasons of a group. */
struct metrics_group_family {
	enum metrics_group group;
	const char *name;
	const char *label;
	const char *help;
};
extern const struct metrics_group_family metrics_group_families[]; /* ends with a NULL name */

/* The reason of group DECISION with this label; -EINVAL, and err lists them. */
int metrics_decision_parse(const char *text, enum weir_reason *out, struct error *err);

/* One of a server's limits. */
struct metrics_limit {
	char *name;
	bool in_flight;			 /* it is of requests in flight: it has seats */
	bool configured;		 /* its default is known: the two below */
	bool dry_run;			 /* its own, or its server's */
	double qps;			 /* tokens a second */
	__u64 burst;			 /* tokens; of one in flight: seats */
	struct weir_limit_counts counts; /* requests it was asked for, and its highest number of seats */
	__u64 taken;			 /* seats, of all subjects together */
};

struct metrics_server {
	const char *name;
	const char *mode; /* one of metrics_modes */
	const char *lane; /* one of metrics_lanes */
	const struct metrics_limit *limits;
	size_t n_limits;
	__u64 counters[WEIR_REASON_COUNT];
	bool paced;	 /* what cannot be read waits for its time */
	__u64 conns;	 /* entries in the table of its namespace, those of other servers included */
	__u64 conns_max; /* and how many there can be */
};

/* What a server can be at: "limiting", "dry-run", "paused", ...; ends with NULL. */
extern const char *const metrics_modes[];
/* Where its requests are read: "wire", or on the wire and inside the server; ends with NULL. */
extern const char *const metrics_lanes[];

struct metrics_net {
	__u64 cookie;
	const struct probe *probe;
};

/* The agent's process. */
struct metrics_process {
	double cpu_s;
	double start_time_s; /* Unix time */
	__u64 resident_bytes, virtual_bytes;
	__u64 open_fds, max_fds;
};
struct metrics_process metrics_process_read(void);

struct metrics_snapshot {
	struct metrics_process process;
	const struct metrics_net *nets; /* with servers in force */
	size_t n_nets;
	const struct metrics_server *servers;
	size_t n_servers;
	size_t n_counted; /* the first of them: those that are in force. Of the others there are no counts: 0 would look like a reset */
	const char *version;
	double start_time_s; /* Unix time */
	__u64 control_requests;
	__u64 control_errors;
	__u64 control_refused[ACCESS_REFUSALS];
};

/* Connections that are tracked, and those of them that are translated. */
__u64 metrics_connections(const __u64 counters[static WEIR_REASON_COUNT]);
__u64 metrics_translated(const __u64 counters[static WEIR_REASON_COUNT]);

/* How long records were withheld until they passed, in seconds. */
double metrics_held_s(const __u64 counters[static WEIR_REASON_COUNT]);

/* A new reference; NULL without memory. */
json_t *metrics_families(const struct metrics_snapshot *snapshot);

/* For those who add families: the samples of a new one, borrowed. */
json_t *metrics_add_family(json_t *families, const char *name, const char *type, const char *help);
/* Both take over labels and value. */
void metrics_add_sample(json_t *samples, json_t *labels, json_t *value);
void metrics_add_part(json_t *samples, const char *suffix, json_t *labels, json_t *value);

/* Counters are read one CPU at a time while they run: a difference can be short of zero for a moment. */
__u64 metrics_difference(__u64 opened, __u64 closed);

/* servers.c, limits.c */
void metrics_add_servers(json_t *families, const struct metrics_snapshot *all);
void metrics_add_limits(json_t *families, const struct metrics_server *servers, size_t n);

/* process.c */
void metrics_add_process(json_t *families, const struct metrics_process *process);

/* probe.c */
void metrics_add_probes(json_t *families, const struct metrics_net *nets, size_t n);

/* The caller frees it; NULL without memory. */
char *metrics_text(json_t *families);

#endif
