/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SYS_CHANGES_H
#define WEIR_USER_SYS_CHANGES_H

#include "weir/base/types.h"

/*
 * Entries that were not as they should be, and are now: they were not there, were other ones, or were there and should not
 * have been. Of links and holds, `changed` are those that were there before and had come off. What is right already is not
 * written again, and not counted.
 */
struct datapath_changes {
	__u64 added, changed, dropped;
};

#endif
