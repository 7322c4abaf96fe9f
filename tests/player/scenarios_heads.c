/* SPDX-License-Identifier: GPL-2.0 */
/* Heads that the client's FIN cuts short: no server may get that FIN (server_check_head()), whatever is lost. */
#include "scenarios.h"

static struct config config_cut(void)
{
	struct config c = config_plain(1);

	c.client.exchanges = 4;
	c.client.filler_most = 2000;
	c.client.write_most = 60;
	c.client.pause_ns = 10 * MS;
	return c;
}

/* Plays with the client's end at every moment. Counts the heads that were cut. */
static bool end_everywhere(struct world *w, struct config *c, struct cues *cues, unsigned int *cut)
{
	for (c->client.shutdown_ns = MS; c->client.shutdown_ns < 400 * MS; c->client.shutdown_ns += MS) {
		c->seed = c->client.shutdown_ns / MS;
		c->tcp[CLIENT].fin_apart = c->seed % 2;
		if (!cues_play(w, c, cues))
			return false;
		if (!w->box.heads_cut)
			continue;
		if (!expect(w, w->box.heads_cut == 1 && w->box.closes == 1, "it is the last of its connection") ||
		    !expect(w, w->tcp[CLIENT].end == TCP_END_CLEAN, "the client's side ends cleanly") ||
		    !expect(w, w->tcp[SERVER].end == TCP_END_RESET, "the server's side is over") ||
		    !expect(w, !w->server.closed, "it is not the server that closes"))
			return false;
		++*cut;
	}
	return true;
}

static bool heads_end_with_the_client(struct world *w)
{
	struct config c = config_cut();
	struct cues none = { 0 };
	unsigned int cut = 0;

	return end_everywhere(w, &c, &none, &cut) && expect(w, cut > 100, "many heads were cut");
}

/* The requests before are still being answered: the FIN waits for its turn. */
static bool behind_others(struct world *w)
{
	struct config c = config_cut();
	struct cues none = { 0 };
	unsigned int cut = 0;

	c.client.depth = 3;
	c.server.delay_ns = 200 * MS;
	return end_everywhere(w, &c, &none, &cut) && expect(w, cut > 100, "many heads were cut");
}

/* What was passed of the head never came to the server, and comes again with the FIN. */
static bool in_pieces_that_are_lost(struct world *w)
{
	struct config c = config_cut();
	struct cues cues = { .n = 1, .cue = { { HOP_WEIR_SERVER, CUE_LOSE, .matches = is_data } } };
	unsigned int cut = 0;

	for (cues.cue[0].skip = 2; cues.cue[0].skip < 20; cues.cue[0].skip += 3) {
		cues.cue[0].times = 2;
		if (!end_everywhere(w, &c, &cues, &cut))
			return false;
	}
	return expect(w, cut > 100, "many heads were cut");
}

const struct scenario scenarios_heads[] = {
	{ "a head ends with the client's FIN", heads_end_with_the_client },
	{ "the same behind requests without an answer", behind_others },
	{ "the same with pieces of it lost", in_pieces_that_are_lost },
	{ 0 },
};
