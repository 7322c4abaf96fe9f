/* SPDX-License-Identifier: GPL-2.0 */
/* A program in whose midst requests are decided, on the maps of the attached server: each of its threads asks by calling a function. */
#ifndef WEIR_TESTS_LANES_H
#define WEIR_TESTS_LANES_H

#include "asker.h"
#include "limited.h"

#define RATE_SLOT WEIR_BUILTIN_TOTAL

/* A request of this thread's begins; it has been answered; or, if it is to be undone, has never been. The probes are at their entries. */
void asker_asks(unsigned int thread);
void asker_ends(unsigned int thread, unsigned int undone);

/* What all threads were told so far. */
struct asker_said said(void);

/* Where there is but one CPU, they meet nowhere. */
void on_cpu(int cpu);

/* A limit on all requests in flight. */
void seats_set(__u32 seats);
__u64 seats_taken(void);

int lanes_setup(void **state);
int lanes_teardown(void **state);

#define LANES_TEST(name) cmocka_unit_test_setup_teardown(test_##name, lanes_setup, lanes_teardown)

#endif
