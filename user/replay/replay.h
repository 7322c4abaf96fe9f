/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a policy would have done with the requests of a recording: they are decided one after the other by the kernel's own programs,
 * on maps of their own, as of the times at which they came.
 */
#ifndef WEIR_USER_REPLAY_REPLAY_H
#define WEIR_USER_REPLAY_REPLAY_H

#include "policy/policy.h"
#include "replay/recording.h"

struct replay;

/* The servers are the policy's Throttles. The caller closes *out. */
int replay_open(struct replay **out, const struct policy *policy, struct error *err);
void replay_close(struct replay *replay);
static inline void cleanup_replay(struct replay **replay)
{
	replay_close(*replay);
}
#define CLEANUP_REPLAY __attribute__((cleanup(cleanup_replay)))

/* What the policy says to one request. */
struct replayed {
	bool decided; /* else it cannot be replayed, and is counted as that */
	enum weir_reason decision;
	__u32 retry_s;
	const char *limit; /* that refuses it; NULL: none. Borrowed from the replay */
};

/* A line of the recording, as it stands, and what became of it. 0, or a negative errno, which ends the replay. */
typedef int replay_each(json_t *line, const struct replayed *replayed);

/* All lines of a file or pipe, in their order. name: what errors call it. each NULL: nobody wants to know of single lines. */
int replay_recording(struct replay *replay, int fd, const char *name, replay_each *each, struct error *err);

/* All that came of it, with `top` subjects of each limit at most. A new reference, NULL without memory. */
json_t *replay_result(struct replay *replay, size_t top);

#endif
