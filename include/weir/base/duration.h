/* SPDX-License-Identifier: GPL-2.0 */
/* How long something took, as histograms have it: in which of a few buckets, by upper bounds. */
#ifndef WEIR_BASE_DURATION_H
#define WEIR_BASE_DURATION_H

#include "weir/base/types.h"

#define WEIR_NS_PER_MS (WEIR_NS_PER_S / 1000)

/* X(ms): the last bucket, behind these, has no bound. */
#define WEIR_DURATION_BOUNDS(X) X(1) X(5) X(25) X(100) X(500) X(2500) X(10000)

#define WEIR_DURATION_ONE(ms) +1
#define WEIR_DURATION_BUCKETS (1 WEIR_DURATION_BOUNDS(WEIR_DURATION_ONE))

WEIR_INLINE __u32 weir_duration_bucket(__u64 ns)
{
#define LONGER(ms) +(ns > (ms)*WEIR_NS_PER_MS)
	return 0 WEIR_DURATION_BOUNDS(LONGER);
#undef LONGER
}

#endif
