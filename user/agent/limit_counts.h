/* SPDX-License-Identifier: GPL-2.0 */
/* What limits have counted, and what the counters of a server's traffic say. */
#ifndef WEIR_USER_AGENT_LIMIT_COUNTS_H
#define WEIR_USER_AGENT_LIMIT_COUNTS_H

#include "agent/net.h"

/*
 * Seats that are taken, by namespace: the table of each is read once for all of its servers, and a large one not every time that
 * somebody asks. All zero to begin with.
 */
struct limits_taken {
	struct {
		const struct net *net; /* NULL: of those that are not in force */
		__u64 *seats;	       /* by weir_limit_index() */
	} of[WEIR_MAX_SERVERS + 1];
	size_t n;
};
void limits_taken_clear(struct limits_taken *taken);
#define CLEANUP_LIMITS_TAKEN __attribute__((cleanup(limits_taken_clear)))
/* Slots of the namespace's limits may be others' now: what was read of them does not stand any longer. */
void limits_taken_forget(struct net *net);

/*
 * What the limits and priority levels of a server have counted; taken NULL: but for the seats that are taken. The caller frees
 * *out (limits_measured_free). Returns how many.
 */
int limits_measure(const struct agent *agent, int slot, struct limits_taken *taken, struct metrics_limit **out,
		   struct error *err);
void limits_measured_free(struct metrics_limit *limits, size_t n);
/* By the counters of a server: TLS has come, and nothing that could be read. */
bool all_is_unread(const __u64 *counters);
/*
 * Why nothing is known of the requests of a server's traffic so far but its size: it is encrypted. The caller frees it. NULL:
 * requests were read, or nothing has come.
 */
char *server_unread(const struct agent *agent, int slot);
/* Why a limit for this subject sees nothing of the server's traffic so far; the caller frees it. NULL: it may. */
char *limit_unseen(const struct agent *agent, int slot, const struct limit *limit, const char *subject);

#endif
