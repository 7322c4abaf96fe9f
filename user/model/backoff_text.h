/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A back-off policy (weir/limit/backoff.h) as people write it: its parts, joined by '+', in any order and each at most once.
 *
 *   exponential:5ms..1000s     5 ms after the first failure, twice as long after each further one, at most 1000 s
 *   fast-slow:1s,30s,3         1 s after each of the first three failures, 30 s after every later one
 *   bucket:10/100              10 a second among all, 100 at once
 *   max-wait:60s               with others: no delay is longer
 *   off                        no back-off, alone
 */
#ifndef WEIR_USER_MODEL_BACKOFF_TEXT_H
#define WEIR_USER_MODEL_BACKOFF_TEXT_H

#include "weir/limit/backoff.h"

#include "base/error.h"

#define BACKOFF_TEXT 224 /* room for any policy as text */

/* -EINVAL with err filled in, which says of which part it speaks. */
int backoff_parse(const char *text, struct weir_backoff *policy, struct error *err);

/* Canonical: what backoff_parse() reads as this policy, the bucket at the rate in force. */
void backoff_format(const struct weir_backoff *policy, char text[static BACKOFF_TEXT]);

#endif
