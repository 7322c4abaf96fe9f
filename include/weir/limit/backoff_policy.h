/* SPDX-License-Identifier: GPL-2.0 */
/* What a back-off is made of. What comes of it: backoff.h. */
#ifndef WEIR_LIMIT_BACKOFF_POLICY_H
#define WEIR_LIMIT_BACKOFF_POLICY_H

#include "weir/base/types.h"
#include "weir/limit/rate.h"

enum weir_backoff_parts {
	WEIR_BACKOFF_BUCKET = 1 << 0,
	WEIR_BACKOFF_EXPONENTIAL = 1 << 1,
	WEIR_BACKOFF_FAST_SLOW = 1 << 2,
	WEIR_BACKOFF_MAX_WAIT = 1 << 3,
};

/* A policy; all zero: none, no delay ever. What belongs to a part that is not there is not read. */
struct weir_backoff {
	__u32 parts; /* enum weir_backoff_parts */
	__u32 attempts;
	__u64 base_ns, max_ns;
	__u64 fast_ns, slow_ns;
	__u64 max_wait_ns;
	struct weir_rate_history bucket; /* the rates of the bucket that the caller keeps */
};
WEIR_ASSERT_SIZE(struct weir_backoff, 208);
WEIR_ASSERT_OFFSET(struct weir_backoff, max_wait_ns, 40);
WEIR_ASSERT_OFFSET(struct weir_backoff, bucket, 48);

#endif
