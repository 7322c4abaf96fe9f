/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Durations as people write them: "5ms", "90s", "1h30m": whole numbers, each with its unit (h, m, s, ms, us, ns), the
 * larger units first and each once. What Go prints and Kubernetes accepts, without fractions and signs.
 */
#ifndef WEIR_USER_BASE_DURATION_H
#define WEIR_USER_BASE_DURATION_H

#include <stddef.h>

#include "weir/base/types.h"

#include "base/error.h"

#define DURATION_TEXT 24	     /* room for any duration as text */
#define DURATION_MAX_NS (~0ULL >> 1) /* 292 years, which is Go's longest too */

/* "0" needs no unit. -EINVAL with err filled in: not a duration, or longer than DURATION_MAX_NS. */
int duration_parse(const char *text, __u64 *ns, struct error *err);

/* As that; plain digits are seconds. */
int duration_parse_seconds(const char *text, __u64 *ns, struct error *err);

/* One number in the largest unit that has it whole: 90 s is "90s", an hour "1h", 0 "0s". */
void duration_format(__u64 ns, char text[static DURATION_TEXT]);

#endif
