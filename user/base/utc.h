/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_BASE_UTC_H
#define WEIR_USER_BASE_UTC_H

#include "weir/base/types.h"

/* 2026-11-20T13:14:15.123456Z, as ns since 1970. 0, or -EINVAL. */
int utc_parse(const char *text, __u64 *ns);

#endif
