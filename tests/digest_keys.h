/* SPDX-License-Identifier: GPL-2.0 */
/* The keys of the digests of what tests have read (digest.h): the same ones in each run. */
#ifndef TESTS_DIGEST_KEYS_H
#define TESTS_DIGEST_KEYS_H

#include "weir/http/digest.h"

static struct weir_digest_keys digest_keys;

__attribute__((constructor)) static void digest_keys_begin(void)
{
	static const __u64 seed[2] = { 1, 2 };

	weir_digest_keys_make(&digest_keys, seed);
}

#endif
