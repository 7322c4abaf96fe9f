/* SPDX-License-Identifier: GPL-2.0 */
/* The named scenarios. Each returns false when it failed; w->why says how. */
#ifndef PLAYER_SCENARIOS_H
#define PLAYER_SCENARIOS_H

#include "config.h"
#include "cues.h"

struct scenario {
	const char *name;
	bool (*play)(struct world *w);
};

/* Plays all of them, a TAP line for each, and counts them. False: one of them failed. */
bool scenarios_play(struct world *w, unsigned int *tests);

/* False, with the reason in w->why, unless `truth`. */
bool expect(struct world *w, bool truth, const char *what);
/* Every exchange was answered, `sheds` of them by weir. */
bool expect_answers(struct world *w, const struct config *c, unsigned int sheds);

extern const struct scenario scenarios_packets[]; /* chosen packets lost, repeated, joined */
extern const struct scenario scenarios_endings[]; /* FIN, RST and closes */
extern const struct scenario scenarios_heads[];	  /* cut short by the client's FIN */
extern const struct scenario scenarios_sweeps[];  /* every packet, every number, every moment */
extern const struct scenario scenarios_long[];	  /* gigabytes */

#endif
