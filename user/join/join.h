/* SPDX-License-Identifier: GPL-2.0 */
/* Gives requests that weir has seen inside an API server the IDs under which its audit log has them. */
#ifndef WEIR_USER_JOIN_JOIN_H
#define WEIR_USER_JOIN_JOIN_H

#include <stdio.h>

#include "weir/base/duration.h"

#include "join/asked.h"

#define JOIN_REQUESTS_MAX 1000000
/* Of an entry: kube-apiserver writes none that is larger than a file of its log, 100 MiB if nothing is said (--audit-log-maxsize). */
#define JOIN_LINE_MAX (100U << 20)
#define JOIN_SLACK_NS (5 * WEIR_NS_PER_MS) /* by which two readings of one clock may differ */

struct join_request {
	struct asked asked;
	size_t number;	/* of the call */
	const char *id; /* of its entry; NULL: none */
	size_t fits;	/* how many entries it may be */
};

/* An entry of the audit log, of all its stages. */
struct join_entry {
	struct asked asked;
	char *id;
	bool taken;
};

struct join {
	struct join_request *requests;
	size_t n_requests;
	struct join_entry *entries;
	size_t n_entries;
	__u64 window_ns; /* a request is decided at most so long after the server has received it */
	__u64 bad_lines; /* of the audit log */
	__u64 first_ns, last_ns;
};
void join_clear(struct join *join);
#define CLEANUP_JOIN __attribute__((cleanup(join_clear)))

/* All requests come before the log is read. number: what join_find() knows it by. 0, also if it was not seen inside; -E2BIG. */
int join_add(struct join *join, json_t *request, size_t number, struct error *err);
/* Reads all of it. Lines that are no events are counted; where there is no other, that is an error. */
int join_read(struct join *join, FILE *log, const char *name, struct error *err);

/*
 * Each request, in the order of their times, takes the free entry that fits it and that will be the first to fit none any more. So as many
 * requests as possible get one.
 */
void join_match(struct join *join);
/* NULL: it was not seen inside. After join_match(). */
const struct join_request *join_find(const struct join *join, size_t number);

#endif
