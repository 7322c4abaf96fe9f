/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_TESTS_BENCH_BARE_H
#define WEIR_TESTS_BENCH_BARE_H

#include <linux/types.h>

/*
 * Packets that bring nothing to read. Each is run in rounds of BARE_ROUND, in turns with a program that does nothing; of both the least
 * counts. In each run an acknowledgement is of more bytes, and a part of a body is the next one; at the socket they are the same:
 *
 *   {"packet": NAME, "ns": LEAST, "empty_ns": LEAST}
 *
 * only: a part of the name.
 */
#define BARE_ROUND 1000

void measure_bare(__u32 times, const char *only);

#endif
