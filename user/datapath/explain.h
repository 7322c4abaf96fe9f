/* SPDX-License-Identifier: GPL-2.0 */
/* What would become of requests: the programs are asked, one by one or for a recording. */
#ifndef WEIR_USER_DATAPATH_EXPLAIN_H
#define WEIR_USER_DATAPATH_EXPLAIN_H

#include "weir/abi/abi.h"

#include "base/error.h"

struct datapath;
struct weir_explained;

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

/*
 * Maps that nobody else sees, for datapath_replay_open(): of no namespace and without programs on it, nothing is pinned. Gone when it is
 * closed.
 */
int datapath_open_alone(struct datapath **out, struct error *err);

#endif
