/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_TESTS_BENCH_READING_H
#define WEIR_TESTS_BENCH_READING_H

#include <linux/types.h>
#include <stdbool.h>

/*
 * A packet's head read, and nothing else, in turns with a program that finds what reading needs and reads nothing (which weir's programs find
 * in any case), and with one that does nothing. Each is run once at a time, so many times; of each the least counts:
 *
 *   {"reading": NAME, "ns": LEAST, "unread_ns": LEAST, "empty_ns": LEAST}
 *
 * Each # in the head stands for a digit of which round it is: without any, it is the same head each time, which is in weir's cache.
 */
void measure_reading(const char *name, bool from_server, const char *head, __u32 times);

#endif
