/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SYS_PROCESS_NAMESPACE_H
#define WEIR_USER_SYS_PROCESS_NAMESPACE_H

#include <linux/types.h>

#include "base/error.h"

/*
 * *inode: the process namespace whose process IDs /proc has, which must be the caller's own; 0: the host's.
 * -ENOTSUP: /proc is of another one.
 */
int process_namespace(__u32 *inode, struct error *err);

#endif
