/* SPDX-License-Identifier: GPL-2.0 */
#include "config.h"

struct config config_plain(uint64_t seed)
{
	struct config c = { .seed = seed };

	for (int i = 0; i < HOPS; i++)
		c.link[i] = (struct link){ .delay_ns = i == HOP_CLIENT_WEIR || i == HOP_WEIR_CLIENT ? 5 * MS : 0 };
	for (int i = 0; i < SIDES; i++)
		c.tcp[i] = (struct tcp_options){
			.isn = 1000 + 1000000 * i,
			.mss = 1400,
			.room = 65536,
			.flight = 10,
			.clock = 77,
			.rto_ns = 200 * MS,
			.delayed_ack_ns = 40 * MS,
			.keepalive_ns = 20 * SECOND,
			.timestamps = true,
			.sack = true,
		};
	c.client = (struct client_options){
		.exchanges = 4,
		.depth = 1,
		.abort_ns = NEVER,
		.shutdown_ns = NEVER,
	};
	c.server = (struct server_options){ .body_most = 300, .idle_ns = 75 * SECOND, .abort_ns = NEVER };
	c.box.swallow_max = 65536;
	return c;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Bodies of more packets or round trips than this would only show patience. */
static uint64_t patient(uint64_t body, uint64_t write, const struct tcp_options *o, const struct tcp_options *peer)
{
	uint64_t packet = least(least(o->mss, peer->room / 2), write ? write : o->mss);

	return least(body, packet * least(100, 20ULL * o->flight));
}

static uint64_t one_of(struct random *r, const uint64_t *values, unsigned int n)
{
	return values[random_below(r, n)];
}

#define ONE_OF(r, ...) \
	one_of(r, (const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* Often so that the stream's early bytes cross the end of the number space. */
static uint32_t random_isn(struct random *r)
{
	if (random_chance(r, 300))
		return -(uint32_t)random_below(r, 2000);
	return random_chance(r, 100) ? 0x80000000U - random_below(r, 2000) : random_next(r);
}

static struct link random_link(struct random *r, bool network, unsigned int nasty)
{
	struct link l = { 0 };

	if (network) {
		l.delay_ns = random_between(r, 10 * US, 20 * MS);
		l.jitter_ns = ONE_OF(r, 0, 0, 100 * US, 5 * MS);
	} else {
		l.jitter_ns = ONE_OF(r, 0, 0, 50 * US);
	}
	if (!nasty)
		return l;
	l.heals_ns = random_between(r, 1 * SECOND, 20 * SECOND);
	l.late_ns = random_between(r, 100 * MS, 30 * SECOND);
	l.loss = network ? ONE_OF(r, 0, 10, 50, 150, 300) : ONE_OF(r, 0, 0, 20, 100);
	l.duplicate = network ? ONE_OF(r, 0, 0, 20, 150) : 0;
	l.reorder = network ? ONE_OF(r, 0, 0, 50, 300) : ONE_OF(r, 0, 0, 20);
	l.late_duplicate = network ? ONE_OF(r, 0, 0, 20, 100) : 0;
	if (network && random_chance(r, 200)) {
		l.outage_from_ns = random_below(r, 2 * SECOND);
		l.outage_until_ns = l.outage_from_ns + random_below(r, 3 * SECOND);
	}
	return l;
}

static struct tcp_options random_tcp(struct random *r, const struct tcp_options *peer)
{
	struct tcp_options o = {
		.isn = random_isn(r),
		.mss = ONE_OF(r, 100, 536, 1400, 1448, 1448, 8948, 32000),
		.room = ONE_OF(r, 3000, 65535, 65535, 200000, 1 << 20),
		.flight = ONE_OF(r, 1, 3, 10, 40),
		.clock = random_chance(r, 300) ? -(uint32_t)random_below(r, 5000) : random_next(r),
		.rto_ns = ONE_OF(r, 50 * MS, 200 * MS, 1 * SECOND),
		.tail_probe_ns = ONE_OF(r, 0, 10 * MS, 100 * MS),
		.delayed_ack_ns = ONE_OF(r, 0, 1 * MS, 40 * MS, 200 * MS),
		.keepalive_ns = random_chance(r, 200) ? 300 * MS : 20 * SECOND,
		.scale = ONE_OF(r, 5, 7, 9),
		.timestamps = random_chance(r, 700),
		.sack = random_chance(r, 800),
		.keepalive_byte = random_chance(r, 300),
		.window_probe_byte = random_chance(r, 300),
		.fin_apart = random_chance(r, 400),
		.resegment = ONE_OF(r, 0, 0, 100, 500),
	};

	if (peer) {
		o.timestamps = peer->timestamps;
		o.sack = peer->sack;
	}
	return o;
}

static struct client_options random_client(struct random *r)
{
	struct client_options o = {
		.exchanges = random_between(r, 1, random_chance(r, 150) ? 24 : 6),
		.depth = random_chance(r, 700) ? 1 : random_between(r, 2, 8),
		.body = ONE_OF(r, 0, 300, 1000),
		.head = ONE_OF(r, 0, 300),
		.chunked = ONE_OF(r, 0, 300),
		.expect = ONE_OF(r, 0, 0, 300),
		.close = ONE_OF(r, 0, 0, 100),
		.body_most = random_chance(r, 100) ? 200000 : ONE_OF(r, 50, 2000, 10000),
		.filler_most = ONE_OF(r, 0, 100, 2000),
		.write_most = ONE_OF(r, 0, 0, 5000, 60),
		.pause_ns = ONE_OF(r, 0, 1 * MS, 50 * MS),
		.think_ns = ONE_OF(r, 0, 100 * MS, 3 * SECOND),
		.abort_ns = random_chance(r, 50) ? random_below(r, 3 * SECOND) : NEVER,
		.shutdown_ns = random_chance(r, 80) ? random_below(r, 3 * SECOND) : NEVER,
		.notice_ns = ONE_OF(r, 0, 0, 1 * MS, 200 * MS),
		.farewell = random_below(r, 4),
		.last_with_fin = random_chance(r, 100),
		.gives_up_body = random_chance(r, 300),
	};

	return o;
}

static struct server_options random_server(struct random *r)
{
	struct server_options o = {
		.delay_ns = ONE_OF(r, 0, 0, 5 * MS, 500 * MS),
		.body_most = random_chance(r, 100) ? 100000 : ONE_OF(r, 0, 500, 20000),
		.filler_most = ONE_OF(r, 0, 200),
		.write_most = ONE_OF(r, 0, 0, 4000, 80),
		.pause_ns = ONE_OF(r, 0, 1 * MS, 50 * MS),
		.read_most = ONE_OF(r, 0, 0, 0, 3000),
		.read_pause_ns = ONE_OF(r, 1 * MS, 100 * MS),
		.idle_ns = random_chance(r, 300) ? random_between(r, 1 * MS, 2 * SECOND) : 60 * SECOND,
		.abort_ns = random_chance(r, 50) ? random_below(r, 3 * SECOND) : NEVER,
		.early = ONE_OF(r, 0, 0, 200),
		.interim = ONE_OF(r, 0, 0, 100),
		.empty = ONE_OF(r, 0, 200),
		.chunked = ONE_OF(r, 0, 400),
		.close = ONE_OF(r, 0, 0, 50),
		.half_close = random_chance(r, 200),
	};

	return o;
}

struct config config_random(uint64_t seed)
{
	struct random r = { seed };
	unsigned int nasty = random_chance(&r, 800);
	struct config c = { .seed = random_next(&r) };

	for (int i = 0; i < HOPS; i++)
		c.link[i] = random_link(&r, i == HOP_CLIENT_WEIR || i == HOP_WEIR_CLIENT, nasty);
	c.link[HOP_SERVER_WEIR] = (struct link){ .loss = random_chance(&r, 30) ? 20 : 0, .heals_ns = 2 * SECOND };
	c.tcp[CLIENT] = random_tcp(&r, NULL);
	c.tcp[SERVER] = random_tcp(&r, &c.tcp[CLIENT]);
	c.client = random_client(&r);
	c.server = random_server(&r);
	c.client.body_most = patient(c.client.body_most, c.client.write_most, &c.tcp[CLIENT], &c.tcp[SERVER]);
	c.server.body_most = patient(c.server.body_most, c.server.write_most, &c.tcp[SERVER], &c.tcp[CLIENT]);
	c.box = (struct box_options){
		.shed = ONE_OF(&r, 0, 300, 700, 1000),
		.hold = ONE_OF(&r, 0, 0, 200, 400),
		.blunt = ONE_OF(&r, 0, 300),
		.swallow_max = ONE_OF(&r, 0, 2000, 65536, 1 << 20),
		.race = ONE_OF(&r, 0, 0, 300, 800),
		.race_ns = ONE_OF(&r, 10 * US, 1 * MS, 20 * MS),
		.attach_ns = random_chance(&r, 150) ? random_below(&r, 500 * MS) + 1 : 0,
	};
	c.client.ambiguous = ONE_OF(&r, 0, 0, 0, 30, 200);
	/* How many answers are outstanding where weir joins, or joins again, cannot be known: at most one must be, and nothing is rejected. */
	if (c.box.attach_ns || c.link[HOP_SERVER_WEIR].loss) {
		c.client.depth = 1;
		c.client.ambiguous = 0;
	}
	return c;
}
