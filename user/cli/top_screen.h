/* SPDX-License-Identifier: GPL-2.0 */
/* `weir top` on a terminal: what it shows, and how it is drawn. */
#ifndef WEIR_USER_CLI_TOP_SCREEN_H
#define WEIR_USER_CLI_TOP_SCREEN_H

#include <stdbool.h>

#include "cli/top.h"

struct screen {
	struct top_look *look;
	struct top top;
	size_t selected;
	bool paused, typing, quits;
	char typed[64];
	const struct top_kind *was_by; /* where one looked into something: where one comes back to */
	struct error problem;
	bool away; /* the agent is, and the problem is that */
};

/* The whole screen anew (top_draw.c). */
void top_draw(struct screen *screen);

#endif
