/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLAYER_CONFIG_H
#define PLAYER_CONFIG_H

#include "world.h"

/* A schedule in which nothing is lost and nothing is rare: GETs one at a time, none of them shed. */
struct config config_plain(uint64_t seed);
/* Whatever the seed brings. */
struct config config_random(uint64_t seed);

#endif
