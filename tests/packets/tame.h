/* SPDX-License-Identifier: GPL-2.0 */
/* Clients that do everything right, among those that do not: they are served as ever. */
#ifndef WEIR_TESTS_PACKETS_TAME_H
#define WEIR_TESTS_PACKETS_TAME_H

#include <stdint.h>

struct tame;

/* One connection after the other, until it is stopped; each of a user of its own, of whom `burst` requests are served. */
struct tame *tame_start(const char *server, uint16_t port, unsigned int burst);

/* How many connections were right; -1: one was not, and it was said which. */
long tame_stop(struct tame *tame);

#endif
