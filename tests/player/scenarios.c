/* SPDX-License-Identifier: GPL-2.0 */
#include <stdio.h>

#include "scenarios.h"

bool expect(struct world *w, bool truth, const char *what)
{
	if (!truth)
		world_fail(w, "not so: %s", what);
	return truth;
}

/* Is the latest answer a 429 that ended the connection? What was to come behind it is never answered. */
static bool ended_by_refusal(const struct world *w)
{
	unsigned int n = w->client.answered;

	return n && w->exchange[n - 1].shed && w->exchange[n - 1].shed_closes;
}

bool expect_answers(struct world *w, const struct config *c, unsigned int sheds)
{
	if (w->client.answered == c->client.exchanges && w->box.sheds == sheds)
		return true;
	if (ended_by_refusal(w) && w->box.sheds <= sheds)
		return true;
	world_fail(w, "%u of %u answered, %u of them shed where %u should be", w->client.answered, c->client.exchanges,
		   w->box.sheds, sheds);
	return false;
}

bool scenarios_play(struct world *w, unsigned int *tests)
{
	const struct scenario *const groups[] = { scenarios_packets, scenarios_endings, scenarios_heads,
						  scenarios_sweeps, scenarios_long };
	bool fine = true;

	for (unsigned int i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		for (const struct scenario *s = groups[i]; s->name; s++) {
			bool passed = s->play(w);

			if (!passed)
				printf("# %s\n", w->why);
			printf("%s %u - %s\n", passed ? "ok" : "not ok", ++*tests, s->name);
			fflush(stdout);
			fine &= passed;
		}
	}
	return fine;
}
