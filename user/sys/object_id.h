/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_SYS_OBJECT_ID_H
#define WEIR_USER_SYS_OBJECT_ID_H

#include "weir/base/types.h"

/* The kernel's number of a BPF map or program; 0: it cannot be told. */
__u32 object_id(int fd);

#endif
