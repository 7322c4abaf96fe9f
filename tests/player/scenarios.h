/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PLAYER_SCENARIOS_H
#define PLAYER_SCENARIOS_H

#include "world.h"

/* Plays the named scenarios, a TAP line for each, and counts them. False: one of them failed. */
bool scenarios_play(struct world *w, unsigned int *tests);

#endif
