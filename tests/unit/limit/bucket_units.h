/* SPDX-License-Identifier: GPL-2.0 */
/* What tests of the token bucket say rates and tokens by. */
#ifndef TESTS_UNIT_LIMIT_BUCKET_UNITS_H
#define TESTS_UNIT_LIMIT_BUCKET_UNITS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rate.h"
#include "weir/limit/bucket.h"

#define SECOND WEIR_NS_PER_S
#define DAY (86400 * SECOND)

typedef __int128 units;

/* Units, of which the part behind the point is rounded to the nearest: it stands for some that a binary fraction cannot say. */
static inline units exact(struct weir_tokens tokens)
{
	return tokens.high * (units)WEIR_TOKEN +
	       (units)(((unsigned __int128)tokens.low * WEIR_TOKEN + (1ULL << 63)) >> 64);
}

/* The same to a million millionth of a token, as the oracle has it. */
static inline bool same(units a, units b)
{
	units difference = a > b ? a - b : b - a;

	return difference <= (units)(WEIR_TOKEN / 1000000000000);
}

static inline units tokens_at(const struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns)
{
	return exact(weir_bucket_tokens(b, h, now_ns));
}

static inline __u64 qps(const char *text)
{
	__u64 per_ns;

	assert_int_equal(weir_qps_parse(text, &per_ns), 0);
	return per_ns;
}

static inline struct weir_rate_history rate(const char *text, __u64 burst)
{
	return weir_rate_always(qps(text), burst);
}

static inline __u32 takes(struct weir_bucket *b, const struct weir_rate_history *h, __u64 now_ns, __u32 asked)
{
	__u32 passed = 0;

	for (__u32 i = 0; i < asked; i++)
		passed += weir_bucket_take(b, h, now_ns);
	return passed;
}

#endif
