/* SPDX-License-Identifier: GPL-2.0 */
#include "scenarios.h"
bool scenarios_play(struct world *w, unsigned int *tests) { (void)w; (void)tests; return true; }
