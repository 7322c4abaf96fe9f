/* SPDX-License-Identifier: GPL-2.0 */
/* How long something took, as histograms have it: in which of a few buckets, by upper bounds. */
#ifndef WEIR_BASE_DURATION_H
#define WEIR_BASE_DURATION_H

#include "weir/base/types.h"

#define WEIR_NS_PER_MS (WEIR_NS_PER_S / 1000)

/* X(ms): the last bucket, behind these, has no bound. */
#define WEIR_DURATION_BOUNDS(X) X(1) X(5) X(25) X(100) X(500) X(2500) X(10000)

enum weir_duration {
#define X(ms) WEIR_DURATION_UP_TO_##ms,
	WEIR_DURATION_BOUNDS(X)
#undef X
	WEIR_DURATION_LONGER,
	WEIR_DURATION_BUCKETS
};

WEIR_INLINE __u32 weir_duration_bucket(__u64 ns)
{
	__u32 bucket = 0;

#define LONGER(ms) bucket += ns > (ms)*WEIR_NS_PER_MS;
	WEIR_DURATION_BOUNDS(LONGER)
#undef LONGER
	return bucket;
}

#endif
