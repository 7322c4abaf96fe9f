/* SPDX-License-Identifier: GPL-2.0 */
/* A network namespace by its cookie, among those that a name or a process still leads to. */
#ifndef WEIR_USER_SYS_NETNS_FIND_H
#define WEIR_USER_SYS_NETNS_FIND_H

#include <linux/types.h>

/* Returns a descriptor that the caller closes; -ENOENT: nothing that can be seen from here leads there. */
int netns_find(__u64 cookie);

#endif
