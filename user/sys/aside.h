/* SPDX-License-Identifier: GPL-2.0 */
/* Calls that may not come back for as long as another process likes, each in a thread of its own that can be given up. */
#ifndef WEIR_USER_SYS_ASIDE_H
#define WEIR_USER_SYS_ASIDE_H

#include "weir/base/types.h"

#define ASIDE_LEFT_MAX 32 /* that were given up, and have not returned: no further call is begun */

/*
 * 0: run(arg) has returned, and arg is the caller's again. Otherwise arg is not: release(arg) is called for it, as soon as nobody uses it any
 * more. -ETIMEDOUT: it was waited for in vain, for so many milliseconds. -EBUSY: an earlier call with this key was given up, and has not
 * returned, or ASIDE_LEFT_MAX calls have not; so there is at most one such thread for a key, and few in all. Another negative errno: there is no thread.
 */
int aside_run(__u64 key, void (*run)(void *arg), void (*release)(void *arg), void *arg, __u32 ms);

#endif
