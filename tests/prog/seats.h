/* SPDX-License-Identifier: GPL-2.0 */
/* A limit on requests in flight, and the seats that they have of it. */
#ifndef WEIR_TESTS_SEATS_H
#define WEIR_TESTS_SEATS_H

#include "limited.h"

struct datapath_limit limit_on_seats(__u8 key, __u32 seats);
/* How wide the server's lists are, and how large their objects; 0: it does not say. */
void lists_set(__u32 list_width, __u32 object_bytes);

/* Seats of the limit that are taken, and those that all connections in the table have. */
__u64 taken(void);
__u64 kept(void);
/* The connection over IPv4, as the agent does it whose sweep finds no socket. */
void forget(void);

/* cmocka's setup, where the limit has one seat, and a test with it. */
int seats_setup(void **state);
#define SEATS(name) cmocka_unit_test_setup_teardown(test_##name, seats_setup, attached_teardown)

#endif
