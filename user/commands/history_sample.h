/* SPDX-License-Identifier: GPL-2.0 */
/* What was counted since the last sample: rows as the history has them. */
#ifndef WEIR_USER_COMMANDS_HISTORY_SAMPLE_H
#define WEIR_USER_COMMANDS_HISTORY_SAMPLE_H

#include "agent/agent.h"
#include "history/mark.h"

/* Where the counters stood. */
struct history_base {
	time_t time;   /* CLOCK_REALTIME */
	__u64 time_ns; /* CLOCK_MONOTONIC; 0: nothing was read yet */
	struct history_net {
		__u64 cookie;
		struct history_mark mark;
	} * nets;
	size_t n_nets;
	json_t *servers; /* {NAME: {"total": COUNTS, "records": N, "limits": {NAME: COUNTS}}}; COUNTS as a list */
};
void history_base_clear(struct history_base *base);

/* With the boot's id. from_json: false where it is of another boot, or not understood. */
json_t *history_base_to_json(const struct history_base *base);
bool history_base_from_json(struct history_base *base, json_t *json);

struct history_sample {
	struct history_base now; /* the next one's base */
	json_t *rows;		 /* what came since the base */
};
void history_sample_clear(struct history_sample *sample);
#define CLEANUP_HISTORY_SAMPLE __attribute__((cleanup(history_sample_clear)))

/* Within a turn. The lock is let go of while the kernel is asked. */
int history_sample(struct agent *agent, const struct history_base *base, struct history_sample *out, struct error *err);

#endif
