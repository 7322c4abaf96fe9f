/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Real connections to the attached server, and packets that are put on loopback as they are. No device has the program for it: only the hold
 * sees them, on a cgroup with the listener alone. Clients choose the priority of their packets, and so the badge that they come with.
 */
#ifndef WEIR_TESTS_HELD_H
#define WEIR_TESTS_HELD_H

#include "limited.h"

/* Around all tests of a file, instead of attached_open() and _close(). All of them are on one CPU, whose next packet settles the one before. */
int held_open(void **state);
int held_close(void **state);
/* Around each of them: the server has two limits on connections, one of their rate (SLOT) and one of those that are open (OPEN_SLOT). */
int held_setup(void **state);
int held_teardown(void **state);
#define HELD(name) cmocka_unit_test_setup_teardown(test_##name, held_setup, held_teardown)
/* Each test begins with it: where there is no cgroup2, it is skipped. */
void needs_hold(void);

#define OPEN_SLOT (SLOT + 1)
#define HELD_LIMIT 3 /* so many connections does each of the limits admit */

/* Seats of OPEN_SLOT that are taken. */
__u64 held_taken(void);
/* Entries of connections that were admitted. */
unsigned int held_admitted(void);

/* A client connects: its socket, or -1 if it is refused. */
int held_connect(bool ipv6, __u32 priority);
/* How many of n clients, which come one after the other, the server has got. All go again. */
unsigned int held_visits(bool ipv6, unsigned int n, __u32 priority);
/* The server's end of the next connection. */
int held_accept(void);
/* Ends it by a RST. */
void held_reset(int fd);
/* A packet without a socket of its client. */
void held_send(const struct spec *spec);
/* What the test asks comes to be, after a while. */
void eventually(bool (*is)(void));

#endif
