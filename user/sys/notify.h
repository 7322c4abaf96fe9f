/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a service of Type=notify tells systemd: datagrams of lines NAME=VALUE to the socket that $NOTIFY_SOCKET names, as
 * sd_notify(3) describes them. Without that variable everything here does nothing.
 */
#ifndef WEIR_USER_SYS_NOTIFY_H
#define WEIR_USER_SYS_NOTIFY_H

#include "weir/base/types.h"

/* lines: "READY=1", "STOPPING=1", "WATCHDOG=1". 0, or a negative errno; nobody needs to know. */
int notify_send(const char *lines);

/* How often the watchdog must hear of this process ($WATCHDOG_USEC, $WATCHDOG_PID), in µs; 0: never. */
__u64 notify_watchdog_us(void);

#endif
