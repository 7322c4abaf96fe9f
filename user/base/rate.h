/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rates and bursts as people write them. A rate is a decimal number of requests a second with at most 9 digits after the
 * point, which is exactly what struct weir_rate can hold: 50, 0.5. k and M are a thousand and a million of them; /m and /h
 * make it requests a minute or an hour: 1.5k, 100/m. Those are rounded down to 9 digits; one that would be 0 is none.
 */
#ifndef WEIR_USER_BASE_RATE_H
#define WEIR_USER_BASE_RATE_H

#include <stddef.h>

#include "weir/limit/rate.h"

#define WEIR_QPS_TEXT 24 /* room for any rate as text */
/* What a rate is, for who has written something else. To be printed with WEIR_QPS_MAX. */
#define WEIR_QPS_FORM "a decimal from 0 to %u with at most 9 digits after the point, like 5, 0.5, 100/m or 2k"

/* 0 to WEIR_QPS_MAX. -EINVAL: not such a number, -ERANGE: too large. */
int weir_qps_parse(const char *text, __u64 *per_ns);

/* The shortest text that weir_qps_parse() reads as `per_ns`; cut off like snprintf() where n is below WEIR_QPS_TEXT. */
void weir_qps_format(__u64 per_ns, char *buf, size_t n);

/* A whole number, perhaps with k or M, 0 to WEIR_BURST_MAX. -EINVAL: not such a number, -ERANGE: too large. */
int weir_burst_parse(const char *text, __u64 *burst);

#endif
