/* SPDX-License-Identifier: GPL-2.0 */
/* The same schedule over and over, with another packet hurt or other numbers each time. */
#include <stdio.h>

#include "scenarios.h"

/* Hurts each packet of a schedule in turn, in each way, on each hop. All exchanges must be answered every time. */
static bool hurt_each(struct world *w, const struct config *c)
{
	static const enum hop hops[] = { HOP_CLIENT_WEIR, HOP_WEIR_SERVER, HOP_WEIR_CLIENT };
	static const struct cue ways[] = {
		{ .act = CUE_LOSE, .times = 1 },
		{ .act = CUE_LOSE, .times = 2 },
		{ .act = CUE_LOSE, .times = 5 },
		{ .act = CUE_TWICE, .times = 1 },
		{ .act = CUE_LATE, .times = 1, .late_ns = 15 * MS },
		{ .act = CUE_LATE, .times = 3, .late_ns = 300 * MS },
		{ .act = CUE_LATE, .times = 1, .late_ns = 5 * SECOND },
	};
	uint32_t sent[HOPS];

	if (!world_play(w, c) || !expect_answers(w, c, w->box.sheds))
		return false;
	for (int i = 0; i < HOPS; i++)
		sent[i] = w->net.link[i].sent;
	for (unsigned int h = 0; h < 3; h++) {
		for (unsigned int way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
			for (uint32_t i = 0; i < sent[hops[h]]; i++) {
				struct cues cues = { .n = 1, .cue = { ways[way] } };

				cues.cue[0].hop = hops[h];
				cues.cue[0].matches = any_packet;
				cues.cue[0].skip = i;
				if (!cues_play(w, c, &cues) || !expect_answers(w, c, w->box.sheds)) {
					printf("# hop %d, way %u, packet %u\n", hops[h], way, i);
					return false;
				}
			}
		}
	}
	return true;
}

static bool each_packet_of_gets(struct world *w)
{
	struct config c = config_plain(1);

	for (c.box.shed_mask = 0; c.box.shed_mask < 16; c.box.shed_mask++) {
		if (!hurt_each(w, &c))
			return false;
	}
	return true;
}

static bool each_packet_of_bodies(struct world *w)
{
	struct config c = config_plain(3);

	c.client.exchanges = 3;
	c.client.body = 1000;
	c.client.body_most = 9000;
	c.tcp[CLIENT].resegment = 300;
	c.tcp[CLIENT].tail_probe_ns = 20 * MS;
	for (c.box.shed_mask = 1; c.box.shed_mask < 8; c.box.shed_mask++) {
		if (!hurt_each(w, &c))
			return false;
	}
	return true;
}

static bool each_packet_of_pipeline(struct world *w)
{
	struct config c = config_plain(5);

	c.client.exchanges = 6;
	c.client.depth = 3;
	c.client.filler_most = 300;
	c.client.write_most = 200;
	c.server.delay_ns = 3 * MS;
	c.box.shed = 1000;
	return hurt_each(w, &c);
}

static bool each_packet_of_ends(struct world *w)
{
	struct config c = config_plain(7);

	c.client.exchanges = 2;
	c.client.last_with_fin = true;
	for (c.box.shed_mask = 1; c.box.shed_mask < 4; c.box.shed_mask++) {
		c.tcp[CLIENT].fin_apart = c.box.shed_mask & 1;
		if (!hurt_each(w, &c))
			return false;
	}
	return true;
}

/* Both number spaces end at every offset around the cuts and the answers. */
static bool every_number(struct world *w)
{
	struct config c = config_plain(1);
	struct cues cues = { .n = 2,
			     .cue = { { HOP_WEIR_CLIENT, CUE_LOSE, .matches = is_answer, .times = 1 },
				      { HOP_WEIR_CLIENT, CUE_SPLIT, .matches = is_answer, .skip = 2, .times = 1 } } };
	static const uint32_t ends[] = { 0, 0x80000000U };

	c.box.shed_mask = 6;
	c.tcp[CLIENT].keepalive_ns = 300 * MS;
	c.client.farewell = FAREWELL_STAY;
	c.server.idle_ns = 1 * SECOND;
	for (unsigned int end = 0; end < 2; end++) {
		for (uint32_t back = 0; back < 600; back++) {
			for (unsigned int which = 1; which < 4; which++) {
				c.tcp[CLIENT].isn = which & 1 ? ends[end] - back : 5000;
				c.tcp[SERVER].isn = which & 2 ? ends[end] - back : 5000;
				c.tcp[CLIENT].clock = c.tcp[SERVER].clock = ends[end] - back / 4;
				if (!cues_play(w, &c, &cues) || !expect_answers(w, &c, 2))
					return false;
			}
		}
	}
	return true;
}

/* All that was ever sent comes again, long after the cuts that followed it. */
static bool everything_again(struct world *w)
{
	struct config c = config_plain(1);

	for (int i = 0; i < HOPS; i++) {
		if (i == HOP_SERVER_WEIR)
			continue;
		c.link[i].late_duplicate = 1000;
		c.link[i].heals_ns = NEVER;
	}
	c.client.body = 300;
	c.client.body_most = 3000;
	c.client.exchanges = 12;
	c.client.think_ns = 30 * MS;
	c.box.shed = 500;
	c.box.shed_mask = 1;
	for (c.seed = 1; c.seed <= 400; c.seed++) {
		for (int i = 0; i < HOPS; i++)
			c.link[i].late_ns = (1 + c.seed % 40) * 10 * MS;
		if (!world_play(w, &c) || !expect_answers(w, &c, w->box.sheds))
			return false;
	}
	return true;
}

/* The steps of many packets of one connection in every order. */
static bool steps_in_any_order(struct world *w)
{
	struct config c = config_plain(1);

	c.link[HOP_CLIENT_WEIR].duplicate = 400;
	c.link[HOP_CLIENT_WEIR].reorder = 200;
	c.link[HOP_CLIENT_WEIR].jitter_ns = 2 * MS;
	c.link[HOP_CLIENT_WEIR].heals_ns = 5 * SECOND;
	c.client.exchanges = 8;
	c.client.body = 500;
	c.client.body_most = 5000;
	c.client.write_most = 900;
	c.box.shed = 500;
	c.box.race = 900;
	for (c.seed = 1; c.seed <= 600; c.seed++) {
		c.box.race_ns = c.seed % 20 * MS;
		c.client.depth = 1 + c.seed % 3;
		if (!world_play(w, &c) || !expect_answers(w, &c, w->box.sheds))
			return false;
	}
	return true;
}

/* Wherever weir joins a client that asks one thing at a time, it finds its way and begins to shed. */
static bool joins_at_every_moment(struct world *w)
{
	struct config c = config_plain(1);

	c.client.exchanges = 12;
	c.client.body = 500;
	c.client.body_most = 6000;
	c.client.think_ns = 20 * MS;
	c.server.chunked = 300;
	c.server.delay_ns = 3 * MS;
	c.server.body_most = 5000;
	c.box.shed = 1000;
	for (c.box.attach_ns = 1; c.box.attach_ns < 120 * MS; c.box.attach_ns += 100 * US) {
		c.seed = c.box.attach_ns;
		if (!world_play(w, &c) || !expect_answers(w, &c, w->box.sheds) ||
		    !expect(w, w->box.sheds, "something was shed"))
			return false;
	}
	return true;
}

const struct scenario scenarios_sweeps[] = {
	{ "each packet of GETs lost and repeated", each_packet_of_gets },
	{ "each packet of requests with bodies lost and repeated", each_packet_of_bodies },
	{ "each packet of pipelined requests lost and repeated", each_packet_of_pipeline },
	{ "each packet of connections that end with a request lost and repeated", each_packet_of_ends },
	{ "both number spaces end at every offset", every_number },
	{ "old duplicates of everything", everything_again },
	{ "the steps of several packets in any order", steps_in_any_order },
	{ "weir joins at every moment", joins_at_every_moment },
	{ 0 },
};
