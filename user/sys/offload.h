/* SPDX-License-Identifier: GPL-2.0 */
/* What a device's hardware, or the kernel in its place, makes of packets before or after weir sees them. */
#ifndef WEIR_USER_SYS_OFFLOAD_H
#define WEIR_USER_SYS_OFFLOAD_H

#include <stdbool.h>

enum offload {
	OFFLOAD_GRO,
	OFFLOAD_GRO_HW,
	OFFLOAD_LRO,
	OFFLOAD_TSO,
	OFFLOAD_GSO,
	OFFLOAD_TC, /* filters may run in hardware */
	OFFLOAD_COUNT,
};

const char *offload_name(enum offload offload);

/* Which of them are on, of a device of the caller's network namespace. Negative errno: it cannot be asked. */
int offload_read(const char *device, bool on[static OFFLOAD_COUNT]);

#endif
