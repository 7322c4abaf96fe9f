/* SPDX-License-Identifier: GPL-2.0 */
/* Single packets, chosen and lost, repeated, split or joined. */
#include "scenarios.h"

static bool nothing_shed(struct world *w)
{
	struct config c = config_plain(1);

	return world_play(w, &c) && expect_answers(w, &c, 0) && expect(w, !w->box.conn.splice.cuts, "nothing was cut");
}

static bool everything_shed(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 20;
	c.box.shed = 1000;
	return world_play(w, &c) && expect_answers(w, &c, 20) &&
	       expect(w, !w->tcp[SERVER].written, "the server answered nothing") &&
	       expect(w, w->tcp[SERVER].received == 2, "the server received the FIN alone");
}

static bool lost_answer(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 1, .cue = { { HOP_WEIR_CLIENT, CUE_LOSE, .matches = is_answer, .times = 1 } } };

	c.box.shed_mask = 2;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 1) &&
	       expect(w, cues.cue[0].seen == 2, "the answer was made twice");
}

/* The server acknowledges all the time, and nothing of it may stand for the lost answer. */
static bool lost_answer_under_acks(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 2,
			     .cue = { { HOP_WEIR_CLIENT, CUE_LOSE, .matches = is_answer, .times = 3 },
				      { HOP_SERVER_WEIR, CUE_COUNT, .matches = is_bare_ack } } };

	c.tcp[SERVER].keepalive_ns = 20 * MS;
	c.box.shed_mask = 2;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 1) &&
	       expect(w, cues.cue[0].seen == 4, "the answer was made four times") &&
	       expect(w, cues.cue[1].seen > 10, "the server has acknowledged meanwhile");
}

static bool lost_request(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 1,
			     .cue = { { HOP_CLIENT_WEIR, CUE_LOSE, .matches = is_request, .skip = 1, .times = 1 } } };

	c.box.shed_mask = 2;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 1) && expect(w, cues.cue[0].seen == 5, "one was lost");
}

static bool lost_twice_with_follower(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 1, .cue = { { HOP_WEIR_CLIENT, CUE_LOSE, .matches = is_answer, .times = 2 } } };

	c.client.depth = 3;
	c.client.write_most = 100000;
	c.box.shed_mask = 1;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 1) &&
	       expect(w, cues.cue[0].seen >= 3, "the answer was made three times");
}

/* The server has not heard of its answer's arrival, and sends it again after weir's. */
static bool old_server_bytes(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 2,
			     .cue = { { HOP_WEIR_SERVER, CUE_LOSE, .matches = is_bare_ack, .times = 3 },
				      { HOP_SERVER_WEIR, CUE_COUNT, .matches = is_data } } };

	c.client.exchanges = 2;
	c.client.farewell = FAREWELL_STAY;
	c.tcp[CLIENT].delayed_ack_ns = 0;
	c.server.body_most = 3000;
	c.server.idle_ns = 5 * SECOND;
	c.box.shed_mask = 2;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 1) &&
	       expect(w, cues.cue[1].seen > (w->tcp[SERVER].written + 1399) / 1400, "the server has sent bytes again");
}

static bool ack_inside_answer(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 1, .cue = { { HOP_WEIR_CLIENT, CUE_SPLIT, .matches = is_answer } } };

	c.tcp[CLIENT].delayed_ack_ns = 0;
	c.tcp[CLIENT].sack = c.tcp[SERVER].sack = false;
	c.box.shed_mask = 6;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 2);
}

/* The client selectively acknowledges parts of the answer, the server parts of what follows the cut. */
static bool sack_around_cut(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 2,
			     .cue = { { HOP_WEIR_CLIENT, CUE_SPLIT, .matches = is_answer },
				      { HOP_WEIR_SERVER, CUE_LOSE, .matches = is_data, .skip = 3, .times = 2 } } };

	c.tcp[CLIENT].delayed_ack_ns = 0;
	c.client.body = 1000;
	c.client.body_most = 40000;
	c.box.shed_mask = 5;
	for (c.seed = 1; c.seed <= 50; c.seed++) {
		if (!cues_play(w, &c, &cues) || !expect_answers(w, &c, 2))
			return false;
	}
	return true;
}

/* The server's FIN goes out again with the bytes before the answer, while the answer is still missing. */
static bool joined_over_answer(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 4,
			     .cue = { { HOP_WEIR_CLIENT, CUE_LOSE, .matches = is_answer, .times = 3 },
				      { HOP_WEIR_SERVER, CUE_LOSE, .matches = is_bare_ack, .times = 6 },
				      { HOP_SERVER_WEIR, CUE_COUNT, .matches = is_joined_fin },
				      { HOP_WEIR_CLIENT, CUE_COUNT, .matches = is_joined } } };

	c.client.exchanges = 2;
	c.tcp[CLIENT].rto_ns = 500 * MS;
	c.server.idle_ns = 100 * MS;
	c.box.shed_mask = 2;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 1) &&
	       expect(w, cues.cue[0].seen == 4, "the answer was lost three times") &&
	       expect(w, cues.cue[2].seen, "the server has joined its FIN to older bytes");
}

/* The same once the answer has arrived, of which the server does not hear. */
static bool joined_after_answer(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 3,
			     .cue = { { HOP_WEIR_CLIENT, CUE_LOSE, .matches = is_fin, .times = 1 },
				      { HOP_WEIR_SERVER, CUE_LOSE, .matches = any_packet, .skip = 2, .times = 8 },
				      { HOP_WEIR_CLIENT, CUE_COUNT, .matches = is_joined } } };

	c.client.exchanges = 2;
	c.client.farewell = FAREWELL_STAY;
	c.server.idle_ns = 100 * MS;
	c.box.shed_mask = 2;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 1) &&
	       expect(w, cues.cue[2].seen, "joined bytes were laid over the answer");
}

static bool play_probes(struct world *w, bool byte)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 1, .cue = { { HOP_WEIR_SERVER, CUE_COUNT, .matches = is_old_probe } } };

	c.client.farewell = FAREWELL_STAY;
	c.tcp[CLIENT].keepalive_ns = 300 * MS;
	c.tcp[CLIENT].keepalive_byte = byte;
	c.server.idle_ns = 10 * SECOND;
	c.box.shed_mask = 8;
	return cues_play(w, &c, &cues) && expect_answers(w, &c, 1) &&
	       expect(w, cues.cue[0].seen > 20, "the probes have reached the server as such") &&
	       expect(w, w->tcp[CLIENT].end == TCP_END_CLEAN, "the connection has ended cleanly");
}

static bool empty_probe(struct world *w)
{
	return play_probes(w, false);
}

static bool byte_probe(struct world *w)
{
	return play_probes(w, true);
}

/* The first request is shed before the server has seen the handshake's end, and the server must see it all the same. */
static bool handshake_with_request(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 2,
			     .cue = { { HOP_CLIENT_WEIR, CUE_LOSE, .matches = is_bare_ack, .times = 1 },
				      { HOP_SERVER_WEIR, CUE_COUNT, .matches = is_handshake } } };

	for (c.seed = 1; c.seed <= 20; c.seed++) {
		c.client.exchanges = 1;
		c.client.farewell = FAREWELL_STAY;
		c.server.idle_ns = 1 * SECOND;
		c.box.shed_mask = 1;
		if (!cues_play(w, &c, &cues) || !expect_answers(w, &c, 1) ||
		    !expect(w, cues.cue[1].seen == 1, "the server did not wait") ||
		    !expect(w, w->tcp[SERVER].end == TCP_END_CLEAN, "the server was connected"))
			return false;
	}
	return true;
}

/* The window in weir's packets is the server's: a client that is refused meets a server that reads slowly. */
static bool small_windows(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 10;
	c.client.body = 1000;
	c.client.body_most = 30000;
	c.tcp[SERVER].room = 3000;
	c.server.read_most = 700;
	c.server.read_pause_ns = 5 * MS;
	c.box.shed_mask = 0x155;
	c.box.swallow_max = 1 << 20;
	return world_play(w, &c) && expect_answers(w, &c, 5);
}

/* A server short of memory shuts its window while a body is swallowed: the client must hear when it opens again. */
static bool shut_window(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 2,
			     .cue = { { HOP_SERVER_WEIR, CUE_SHUT, .matches = is_bare_ack, .times = 2 },
				      { HOP_WEIR_CLIENT, CUE_COUNT, .matches = is_shut } } };
	unsigned int shut = 0;

	c.client.exchanges = 1;
	c.client.body = 1000;
	c.client.body_most = 20000;
	c.client.write_most = 1000;
	c.client.pause_ns = 100 * MS;
	c.tcp[CLIENT].keepalive_ns = 300 * SECOND;
	c.tcp[SERVER].keepalive_ns = 100 * MS;
	c.box.shed_mask = 1;
	for (c.seed = 1; c.seed <= 50; c.seed++) {
		if (!cues_play(w, &c, &cues) || !expect_answers(w, &c, w->box.sheds))
			return false;
		shut += cues.cue[1].seen;
	}
	return expect(w, shut, "weir has said that the window is shut");
}

/* Whatever kinds of exchange there were, their ends are known: the next request is shed at once. */
static bool after_each_kind(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 8;
	c.client.body_most = 3000;
	c.server.body_most = 3000;
	c.box.shed_mask = 0x88;
	for (c.seed = 1; c.seed <= 300; c.seed++) {
		c.client.body = c.seed % 2 * 400;
		c.client.head = c.seed % 3 * 300;
		c.client.chunked = c.seed % 5 * 200;
		c.server.chunked = c.seed % 3 * 400;
		c.server.empty = c.seed % 7 * 100;
		c.server.interim = c.seed % 5 * 200;
		if (!world_play(w, &c) || (!w->box.closes && !expect_answers(w, &c, 2)))
			return false;
	}
	return true;
}

/* Requests that are refused and cannot be answered yet wait, and are answered one after the other. */
static bool pipelined_wait(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 12;
	c.client.depth = 6;
	c.box.hold = 1000;
	c.box.shed = 1000;
	if (!world_play(w, &c) || !expect_answers(w, &c, 12))
		return false;
	/* Segments in which one passes and the next must wait. */
	c.box.shed = 0;
	c.box.shed_mask = 0x554;
	c.tcp[CLIENT].flight = 1;
	c.client.last_with_fin = true;
	c.server.delay_ns = 30 * MS;
	return world_play(w, &c) && expect_answers(w, &c, 5) && expect(w, w->box.cut_short, "some were cut off");
}

/* A part of a body reaches the server by a way that weir does not see: the connection is lost, and found again. */
static bool bypassed(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 1, .cue = { { HOP_CLIENT_WEIR, CUE_BYPASS, is_body, .skip = 1, .times = 1 } } };
	unsigned int sheds = 0;

	c.client.exchanges = 6;
	c.client.body = c.client.chunked = 1000;
	c.client.body_most = 6000;
	c.tcp[CLIENT].delayed_ack_ns = 0;
	c.box.shed_mask = 0x38;
	for (c.seed = 1; c.seed <= 100; c.seed++) {
		if (!cues_play(w, &c, &cues) || (!w->box.closes && !expect_answers(w, &c, w->box.sheds)))
			return false;
		sheds += w->box.sheds;
	}
	return expect(w, sheds > 20, "requests were shed again");
}

static bool swallowed_bodies(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 6;
	c.client.body = 1000;
	c.client.body_most = 60000;
	c.box.shed_mask = 0x2a;
	for (c.seed = 1; c.seed <= 50; c.seed++) {
		if (!world_play(w, &c) || !expect_answers(w, &c, 3))
			return false;
	}
	return true;
}

const struct scenario scenarios_packets[] = {
	{ "a connection on which nothing is shed is left as it is", nothing_shed },
	{ "every request shed, the server reads none", everything_shed },
	{ "a lost 429", lost_answer },
	{ "a lost 429 among the server's acknowledgements", lost_answer_under_acks },
	{ "a lost request that is to be shed", lost_request },
	{ "a 429 lost twice, with pipelined followers", lost_twice_with_follower },
	{ "server bytes from before the 429 again after it", old_server_bytes },
	{ "acknowledgements inside the 429", ack_inside_answer },
	{ "SACK blocks around the cut and inside the 429", sack_around_cut },
	{ "a retransmission joined over the 429's place", joined_over_answer },
	{ "a retransmission joined over a 429 that has arrived", joined_after_answer },
	{ "keep-alive probes after a cut", empty_probe },
	{ "keep-alive probes with a byte after a cut", byte_probe },
	{ "the handshake's end comes with the first shed request", handshake_with_request },
	{ "small and zero windows", small_windows },
	{ "a body swallowed while the server's window is shut", shut_window },
	{ "a 429 after each kind of exchange", after_each_kind },
	{ "pipelined requests that are refused wait for their turn", pipelined_wait },
	{ "a part of a request that weir does not see", bypassed },
	{ "swallowed bodies", swallowed_bodies },
	{ 0 },
};
