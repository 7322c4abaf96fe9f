/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_BASE_CLOCK_H
#define WEIR_USER_BASE_CLOCK_H

#include <time.h>

#include "weir/base/types.h"

static inline __u64 clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * WEIR_NS_PER_S + now.tv_nsec;
}

#endif
