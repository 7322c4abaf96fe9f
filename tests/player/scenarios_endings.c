/* SPDX-License-Identifier: GPL-2.0 */
/* How connections end: FIN and RST of either side at every moment, and 429s that close. */
#include "scenarios.h"

#define STEP (250 * US)

static struct config config_mixed(unsigned int exchanges)
{
	struct config c = config_plain(1);

	c.client.exchanges = exchanges;
	c.client.body = 300;
	c.client.body_most = 6000;
	c.server.delay_ns = 2 * MS;
	c.box.shed_mask = 0x5a;
	return c;
}

/* Plays with each of some moments put into `when`. */
static bool at_every_moment(struct world *w, struct config *c, uint64_t *when, uint64_t until)
{
	for (*when = STEP; *when < until; *when += STEP) {
		c->seed = *when / STEP;
		if (!world_play(w, c))
			return false;
	}
	return true;
}

static bool client_resets(struct world *w)
{
	struct config c = config_mixed(7);

	return at_every_moment(w, &c, &c.client.abort_ns, 150 * MS);
}

static bool server_resets(struct world *w)
{
	struct config c = config_mixed(7);

	return at_every_moment(w, &c, &c.server.abort_ns, 150 * MS);
}

/* The server's RST never comes to the client, whose next requests wait for one another: it must meet another RST. */
static bool server_reset_is_lost(struct world *w)
{
	struct config c = config_mixed(12);
	struct cues cues = { .n = 1, .cue = { { HOP_WEIR_CLIENT, CUE_LOSE, .matches = is_reset, .times = 1 } } };
	unsigned int lost = 0, waited = 0;

	c.client.depth = 4;
	c.client.filler_most = 2000;
	c.server.delay_ns = 20 * MS;
	c.box.shed_mask = 1;
	c.box.hold = 1000;
	for (c.server.abort_ns = STEP; c.server.abort_ns < 300 * MS; c.server.abort_ns += STEP) {
		c.seed = c.server.abort_ns / STEP;
		if (!cues_play(w, &c, &cues))
			return false;
		lost += cues.cue[0].seen > 0;
		waited += cues.cue[0].seen > 1;
	}
	return expect(w, lost > 100 && waited > 100, "RSTs are lost, and others come");
}

static bool client_half_closes(struct world *w)
{
	struct config c = config_mixed(7);

	return at_every_moment(w, &c, &c.client.shutdown_ns, 150 * MS);
}

static bool server_closes(struct world *w)
{
	struct config c = config_mixed(7);

	c.client.think_ns = 10 * MS;
	if (!at_every_moment(w, &c, &c.server.idle_ns, 30 * MS))
		return false;
	c.server.half_close = true;
	return at_every_moment(w, &c, &c.server.idle_ns, 30 * MS);
}

/* A server that closes while its client is being refused must not make the client see a reset. */
static bool server_fin_crosses(struct world *w)
{
	struct config c = config_plain(1);
	unsigned int crossed = 0;

	c.client.exchanges = 8;
	c.client.body = 300;
	c.client.body_most = 3000;
	c.client.think_ns = 4 * MS;
	c.box.shed_mask = 0xfe;
	for (c.server.idle_ns = 11 * MS; c.server.idle_ns < 120 * MS; c.server.idle_ns += 100 * US) {
		c.seed = c.server.idle_ns / US;
		if (!world_play(w, &c) ||
		    !expect(w, !w->box.sheds || w->tcp[CLIENT].end == TCP_END_CLEAN, "the client reads a clean end"))
			return false;
		crossed += w->box.conn.splice.answer_length == 0 && w->box.sheds;
	}
	return expect(w, crossed > 50, "many requests have crossed the FIN");
}

/* Single bytes cross the server's FIN, and what weir says of them is lost. */
static bool bytes_cross_fin(struct world *w)
{
	struct config c = config_plain(1);
	unsigned int crossed = 0;

	c.client.exchanges = 2;
	c.client.last_with_fin = true;
	c.client.body = 1000;
	c.client.body_most = 10;
	c.box.shed_mask = 1;
	c.server.idle_ns = 100 * MS;
	c.client.think_ns = 200 * MS;
	c.link[HOP_CLIENT_WEIR].delay_ns = 40 * MS;
	c.link[HOP_WEIR_CLIENT].delay_ns = 40 * MS;
	c.link[HOP_WEIR_CLIENT].loss = 300;
	c.link[HOP_WEIR_CLIENT].heals_ns = 3 * SECOND;
	for (c.seed = 1; c.seed <= 3000; c.seed++) {
		c.tcp[CLIENT].resegment = c.seed % 2 ? 500 : 900;
		if (!world_play(w, &c) ||
		    !expect(w, !w->box.sheds || w->tcp[CLIENT].end == TCP_END_CLEAN, "the client reads a clean end"))
			return false;
		crossed += w->box.sheds && w->box.conn.splice.cuts > w->box.sheds;
	}
	return expect(w, crossed > 20, "bytes have crossed the FIN");
}

/* A client that has acknowledged the server's FIN, and has not read it, goes on asking. */
static bool asks_after_fin(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 5;
	c.client.think_ns = 40 * MS;
	c.client.notice_ns = 100 * MS;
	c.box.hold = 1000;
	for (c.seed = 1; c.seed <= 1000; c.seed++) {
		c.server.idle_ns = (5 + c.seed % 60) * MS;
		c.server.half_close = c.seed & 1;
		c.box.shed_mask = c.seed % 32;
		if (!world_play(w, &c) || !expect(w, !w->box.sheds || w->tcp[CLIENT].end != TCP_END_RESET, "no reset"))
			return false;
	}
	return true;
}

/* Steps of several packets at once while the server closes, and packets of weir's own that never arrive. */
static bool steps_cross_fin(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 4;
	c.client.think_ns = 40 * MS;
	c.client.body = 300;
	c.client.body_most = 300;
	c.tcp[CLIENT].resegment = 300;
	c.link[HOP_CLIENT_WEIR] =
		(struct link){ .delay_ns = 20 * MS, .duplicate = 500, .reorder = 200, .jitter_ns = 2 * MS };
	c.link[HOP_CLIENT_WEIR].heals_ns = 3 * SECOND;
	c.link[HOP_SERVER_WEIR] = (struct link){ .loss = 50, .heals_ns = 3 * SECOND };
	c.box.shed = 600;
	c.box.race = 700;
	c.box.race_ns = 10 * MS;
	for (c.seed = 1; c.seed <= 4000; c.seed++) {
		c.server.idle_ns = (25 + c.seed % 100) * MS;
		c.server.half_close = c.seed & 1;
		if (!world_play(w, &c))
			return false;
	}
	return true;
}

/* The server's idle timer runs off while a shed request's body is being swallowed. */
static bool server_fin_in_body(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 1;
	c.client.body = 1000;
	c.client.body_most = 20000;
	c.client.write_most = 500;
	c.client.pause_ns = 10 * MS;
	c.server.idle_ns = 15 * MS;
	c.box.shed_mask = 1;
	for (c.seed = 1; c.seed <= 200; c.seed++) {
		if (!world_play(w, &c))
			return false;
		if (w->box.sheds && !expect_answers(w, &c, 1))
			return false;
	}
	return true;
}

static bool play_last(struct world *w, bool apart, uint64_t shed_mask)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 1, .cue = { { HOP_CLIENT_WEIR, CUE_COUNT, .matches = is_joined_fin } } };

	c.client.exchanges = 3;
	c.client.last_with_fin = true;
	c.client.body = 500;
	c.client.body_most = 4000;
	c.tcp[CLIENT].fin_apart = apart;
	c.box.shed_mask = shed_mask;
	for (c.seed = 1; c.seed <= 100; c.seed++) {
		if (!cues_play(w, &c, &cues) || !expect_answers(w, &c, __builtin_popcountll(shed_mask)) ||
		    !expect(w, apart || cues.cue[0].seen, "the FIN comes with the last bytes") ||
		    !expect(w, w->tcp[CLIENT].end == TCP_END_CLEAN && w->tcp[SERVER].end == TCP_END_CLEAN,
			    "both end cleanly"))
			return false;
	}
	return true;
}

static bool fin_with_request(struct world *w)
{
	return play_last(w, false, 4) && play_last(w, false, 5) && play_last(w, false, 2);
}

static bool fin_after_request(struct world *w)
{
	return play_last(w, true, 4) && play_last(w, true, 5) && play_last(w, true, 2);
}

/* A FIN gets through, the request before it does not: nothing may be stored behind the place of a cut. */
static bool fin_before_lost_request(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 1,
			     .cue = { { HOP_CLIENT_WEIR, CUE_LOSE, .matches = is_request, .skip = 2, .times = 1 } } };

	c.client.exchanges = 3;
	c.client.last_with_fin = true;
	c.tcp[CLIENT].fin_apart = true;
	c.box.shed_mask = 6;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 2) &&
	       expect(w, w->tcp[SERVER].end == TCP_END_CLEAN, "the server reads a clean end");
}

/* Each way to be refused with a close, often after other refusals, with every answer lost some times. */
static bool closes(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 2,
			     .cue = { { HOP_WEIR_CLIENT, CUE_LOSE, .matches = is_answer },
				      { HOP_WEIR_SERVER, CUE_COUNT, .matches = is_reset } } };
	unsigned int later = 0;

	c.client.exchanges = 4;
	c.client.body = 700;
	c.client.body_most = 20000;
	c.box.shed = 1000;
	for (c.seed = 1; c.seed <= 400; c.seed++) {
		c.client.expect = c.seed % 3 == 0 ? 500 : 0;
		c.client.chunked = c.seed % 3 == 1 ? 500 : 0;
		c.box.swallow_max = c.seed % 3 == 2 ? 100 : 65536;
		cues.cue[0].times = 1 + c.seed % 4;
		cues.cue[0].act = c.seed % 4 ? CUE_LOSE : CUE_COUNT;
		if (!cues_play(w, &c, &cues) || !expect(w, w->client.answered == w->box.sheds, "each has its answer"))
			return false;
		if (w->box.closes &&
		    (!expect(w, cues.cue[1].seen == 1, "the server was reset once") ||
		     !expect(w, w->tcp[SERVER].end == TCP_END_RESET, "the server's side is over") ||
		     !expect(w, w->tcp[CLIENT].end == TCP_END_CLEAN, "the client's side ends cleanly")))
			return false;
		later += w->box.closes && w->box.sheds > 1;
	}
	return expect(w, later > 50, "many were closed after other refusals");
}

static bool close_with_fin(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 1;
	c.client.close = 1000;
	c.client.last_with_fin = true;
	c.box.shed_mask = 1;
	return world_play(w, &c) && expect_answers(w, &c, 1) &&
	       expect(w, w->box.closes == 1, "it was refused with a close") &&
	       expect(w, w->tcp[CLIENT].end == TCP_END_CLEAN, "the client's side ends cleanly") &&
	       expect(w, w->tcp[SERVER].end == TCP_END_RESET, "the server's side is over");
}

/* Ambiguous requests among others, in pieces and pipelined: everything before them is answered, nothing waits in vain. */
static bool rejects(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 1, .cue = { { HOP_WEIR_CLIENT, CUE_LOSE, .matches = any_packet } } };
	unsigned int with_text = 0, without = 0, behind = 0;

	c.client.exchanges = 5;
	c.client.body = 700;
	c.client.chunked = 900;
	c.client.body_most = 3000;
	c.client.ambiguous = 300;
	c.client.pause_ns = 20 * MS;
	c.server.delay_ns = 30 * MS;
	for (c.seed = 1; c.seed <= 3000; c.seed++) {
		c.client.depth = c.seed % 3 ? 1 : 3;
		c.client.write_most = c.seed % 4 ? 200 : 0;
		c.server.early = c.seed % 5 ? 0 : 800;
		c.server.chunked = c.seed % 5 ? 0 : 1000; /* so that nobody knows where it ends before it does */
		c.server.write_most = c.seed % 5 < 2 ? 50 : 0;
		c.server.pause_ns = c.seed % 5 < 2 ? 300 * MS : 0;
		cues.cue[0].skip = c.seed % 40;
		cues.cue[0].times = c.seed % 7 == 0;
		cues.cue[0].act = c.seed % 7 ? CUE_COUNT : CUE_LOSE;
		if (!cues_play(w, &c, &cues))
			return false;
		if (!w->box.rejects)
			continue;
		if (!expect(w, w->box.rejects == 1 && w->box.closes == 1, "it is the last of its connection") ||
		    !expect(w, w->tcp[CLIENT].end == TCP_END_CLEAN, "the client's side ends cleanly") ||
		    !expect(w, w->tcp[SERVER].end == TCP_END_RESET, "the server's side is over") ||
		    !expect(w, !w->server.closed, "it is not the server that closes"))
			return false;
		if (w->client.answered && w->exchange[w->client.answered - 1].refusal)
			with_text++;
		else
			without++;
		behind += w->client.answered > 1;
	}
	return expect(w, with_text > 2000 && without > 30 && behind > 1000,
		      "all kinds of rejected requests were there");
}

const struct scenario scenarios_endings[] = {
	{ "the client resets at every moment", client_resets },
	{ "the server resets at every moment", server_resets },
	{ "a server's RST is lost, at every moment", server_reset_is_lost },
	{ "the client half-closes at every moment", client_half_closes },
	{ "the server closes at every moment", server_closes },
	{ "a server's FIN crosses refused requests", server_fin_crosses },
	{ "single bytes cross a server's FIN", bytes_cross_fin },
	{ "a client goes on asking after the server's FIN", asks_after_fin },
	{ "the steps of several packets while a server closes", steps_cross_fin },
	{ "a server's FIN while a body is swallowed", server_fin_in_body },
	{ "a FIN with the last request", fin_with_request },
	{ "a FIN right after the last request", fin_after_request },
	{ "a FIN arrives before the request that is to be shed", fin_before_lost_request },
	{ "refused with a close, the answer lost", closes },
	{ "refused with a close, with the client's FIN", close_with_fin },
	{ "ambiguous requests are rejected in their turn", rejects },
	{ 0 },
};
