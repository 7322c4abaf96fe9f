/* SPDX-License-Identifier: GPL-2.0 */
/* Calls that may not come back for as long as another process likes, each in a thread of its own that can be given up. */
#ifndef WEIR_USER_SYS_ASIDE_H
#define WEIR_USER_SYS_ASIDE_H

#include "weir/base/types.h"

#define ASIDE_LEFT_MAX 32 /* that were given up, and have not returned: no further call is begun */

/*
 * 0: run(arg) has returned, and arg is the caller's again. After a negative errno arg is not the caller's: release(arg) is called as soon as
 * nobody uses it any more. -ETIMEDOUT: run(arg) has not returned within so many milliseconds, and is given up. -EBUSY: an earlier call with this
 * key, or ASIDE_LEFT_MAX of any, were given up and have not returned. So at most one such thread is left of a key, and few in all. Another
 * negative errno: no thread could be made.
 */
int aside_run(__u64 key, void (*run)(void *arg), void (*release)(void *arg), void *arg, __u32 ms);

#endif
