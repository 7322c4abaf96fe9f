/* SPDX-License-Identifier: GPL-2.0 */
#include "conn.h"

#include <stdio.h>
#include <string.h>

#define OPTION_MSS 2
#define OPTION_SACK_PERMITTED 4
#define OPTION_TS 8
#define OPTION_FAST_OPEN 34
#define OPTION_EXPERIMENT 254
#define FAST_OPEN_MAGIC 0xf9, 0x89
#define MSS 1460
#define WINDOW 60000
#define STEPS_MIN 6
#define STEPS_MAX 40
#define CRUMB 13 /* bytes */
#define CRUMBS 30
#define SYN_WAIT 40 /* turns, until it is sent again */
#define SYN_TRIES 3
#define NAP_NS 130000000ULL /* longer than weir takes a segment to be under way */
#define PORT_FIRST 1024
#define PORTS 64000

static bool chance(struct conn *c, unsigned int per_mille)
{
	return random_chance(&c->random, per_mille);
}

static uint32_t conn_below(struct conn *c, uint32_t n)
{
	return random_below(&c->random, n);
}

static void play(struct conn *c, const struct trick *const *tricks, size_t n, struct segment *segment,
		 struct shape *shape)
{
	struct scene scene = { .random = &c->random, .ipv6 = c->ends.ipv6, .segment = segment, .shape = shape };

	tricks[conn_below(c, n)]->play(&scene);
}

static void send(struct conn *c, const struct segment *segment, const struct shape *shape)
{
	frame_send(&c->ends, segment, shape, wire_send, c->wire);
}

static void stamp(struct conn *c, struct segment *segment)
{
	uint32_t clock = c->clock++;
	uint8_t data[8] = { clock >> 24, clock >> 16, clock >> 8, clock };

	add_option(segment, OPTION_TS, data, sizeof(data));
}

static struct segment make_segment(struct conn *c, uint8_t flags, uint32_t offset)
{
	struct segment segment = { .seq = c->first + offset, .ack = c->peer, .flags = flags, .window = WINDOW };

	if (c->habits.stamps)
		stamp(c, &segment);
	return segment;
}

static struct segment make_data(struct conn *c, const struct stream *stream, uint32_t offset, uint32_t length)
{
	struct segment segment = make_segment(c, TCP_ACK | TCP_PSH, offset);

	if (offset > stream->length)
		offset = stream->length;
	segment.data = stream->bytes + offset;
	segment.length = length < stream->length - offset ? length : stream->length - offset;
	return segment;
}

/* By the way that this connection's real bytes take. */
static void send_by_road(struct conn *c, struct segment *segment)
{
	struct shape shape = { 0 };

	if (chance(c, c->habits.road_chance))
		play(c, c->habits.roads, TRICKS_AT_ONCE, segment, &shape);
	send(c, segment, &shape);
}

static void send_faulty(struct conn *c, struct segment *segment)
{
	struct shape shape = { 0 };

	if (chance(c, c->habits.road_chance / 4))
		play(c, c->habits.roads, TRICKS_AT_ONCE, segment, &shape);
	if (chance(c, c->habits.fault_chance))
		play(c, c->habits.faults, TRICKS_AT_ONCE, segment, &shape);
	send(c, segment, &shape);
}

static uint32_t some_length(struct conn *c, uint32_t offset)
{
	uint32_t one = stream_request_end(&c->real, offset) - offset;

	switch (conn_below(c, 8)) {
	case 0:
		return 1 + conn_below(c, 16);
	case 1:
		return 1 + conn_below(c, one ? one : 1);
	case 2:
		return 1 + conn_below(c, MSS);
	case 3:
		return MSS;
	case 4:
		return one + stream_request_end(&c->real, offset + one) - (offset + one);
	default:
		return one;
	}
}

/* Where it goes on: what is not acknowledged is sent again, by most. */
static uint32_t position(struct conn *c)
{
	return c->habits.insists || chance(c, 300) ? c->acked : c->sent;
}

static void note_sent(struct conn *c, uint32_t end)
{
	if (end > c->sent)
		c->sent = end;
}

static void send_next(struct conn *c)
{
	uint32_t at = position(c);
	struct segment segment = make_data(c, &c->real, at, some_length(c, at));

	note_sent(c, at + segment.length);
	send_by_road(c, &segment);
}

static void send_decoy(struct conn *c)
{
	uint32_t at = position(c);
	struct segment segment = make_data(c, &c->decoy, at, chance(c, 500) ? MSS : some_length(c, at));

	send_faulty(c, &segment);
}

/* Other bytes for what was sent already. */
static void rewrite(struct conn *c)
{
	uint32_t back = conn_below(c, 600), at = c->sent > back ? c->sent - back : 0;
	struct segment segment = make_data(c, chance(c, 500) ? &c->decoy : &c->real, at,
					   1 + conn_below(c, 2 * back + 1));

	send_by_road(c, &segment);
}

/* Leaves a hole. */
static void send_ahead(struct conn *c)
{
	uint32_t at = position(c) + 1 + conn_below(c, 1500);
	struct segment segment = make_data(c, chance(c, 400) ? &c->decoy : &c->real, at, some_length(c, at));

	send_by_road(c, &segment);
}

static void send_burst(struct conn *c)
{
	uint32_t at = position(c);

	for (uint32_t n = 2 + conn_below(c, 8); n; n--) {
		uint32_t here = chance(c, 100) ? at + conn_below(c, 500) : at;
		struct segment segment = make_data(c, chance(c, 50) ? &c->decoy : &c->real, here, some_length(c, here));

		send_by_road(c, &segment);
		if (here == at)
			at += segment.length;
	}
	note_sent(c, at < c->real.length ? at : c->real.length);
}

/* A request and more, in pieces as small as what may be had for nothing. */
static void send_crumbs(struct conn *c)
{
	uint32_t at = position(c), end = stream_request_end(&c->real, at);

	for (uint32_t n = 0; at < end && n < CRUMBS; n++) {
		struct segment segment = make_data(c, &c->real, at, 1 + conn_below(c, CRUMB));

		send_by_road(c, &segment);
		at += segment.length;
	}
	note_sent(c, at);
}

static void send_control(struct conn *c)
{
	static const uint8_t flags[] = { TCP_ACK,	    TCP_ACK,	       TCP_FIN | TCP_ACK, TCP_RST,
					 TCP_RST | TCP_ACK, TCP_SYN | TCP_ACK, TCP_SYN,		  0 };
	uint8_t chosen = flags[conn_below(c, sizeof(flags))];
	uint32_t at = chance(c, 500) ? c->sent : c->acked;
	struct segment segment;

	if (chosen & TCP_RST) /* an exact one would be the end */
		at += 1 + conn_below(c, 5000);
	segment = make_segment(c, chosen, at);
	send_faulty(c, &segment);
}

static void send_fast_open_option(struct conn *c, struct segment *syn)
{
	uint8_t cookie[10] = { FAST_OPEN_MAGIC, 1, 2, 3, 4, 5, 6, 7, 8 };
	unsigned int bytes = 4 * conn_below(c, 3), times = 1 + conn_below(c, 2);

	for (; times; times--) {
		if (chance(c, 500))
			add_option(syn, OPTION_EXPERIMENT, cookie, 2 + bytes);
		else
			add_option(syn, OPTION_FAST_OPEN, cookie + 2, bytes);
	}
}

static void send_syn(struct conn *c)
{
	static const uint8_t mss[] = { MSS >> 8, MSS & 0xff };
	struct segment syn = { .seq = c->first - 1, .flags = TCP_SYN, .window = WINDOW };
	struct shape shape = { 0 };

	add_option(&syn, OPTION_MSS, mss, sizeof(mss));
	add_option(&syn, OPTION_SACK_PERMITTED, NULL, 0);
	if (c->habits.stamps)
		stamp(c, &syn);
	if (c->habits.handshake == HANDSHAKE_FAST_OPEN)
		send_fast_open_option(c, &syn);
	if (c->habits.handshake == HANDSHAKE_FAST_OPEN || c->habits.handshake == HANDSHAKE_DATA_IN_SYN) {
		syn.data = c->real.bytes;
		syn.length = c->real.length < MSS ? c->real.length : MSS;
	}
	if (c->habits.handshake == HANDSHAKE_ODD_SYN && c->waited == 0)
		play(c, chance(c, 500) ? c->habits.roads : c->habits.faults, TRICKS_AT_ONCE, &syn, &shape);
	send(c, &syn, &shape);
}

/* What answers the SYN-ACK. */
static void complete(struct conn *c)
{
	struct segment segment = make_segment(c, TCP_ACK, 0);

	c->state = CONN_OPEN;
	if (c->habits.handshake == HANDSHAKE_SYN_ACK) {
		segment.flags = TCP_SYN | TCP_ACK;
		segment.seq -= 1;
		segment.data = c->real.bytes;
		segment.length = conn_below(c, 200);
	} else if (c->habits.handshake == HANDSHAKE_WITH_DATA) {
		segment = make_data(c, &c->real, 0, some_length(c, 0));
		note_sent(c, segment.length);
	}
	send_by_road(c, &segment);
}

/* One fault for all of them, or they would not be believed; then perhaps long enough for them not to be under way. */
static void mislead(struct conn *c, uint64_t now_ns)
{
	for (uint32_t at = 0, n = conn_below(c, 6); at < c->real.length && n; at += MSS, n--) {
		struct segment segment = make_data(c, &c->decoy, at, MSS);
		struct scene scene = { .random = &c->random, .ipv6 = c->ends.ipv6, .segment = &segment };
		struct shape shape = { 0 };

		scene.shape = &shape;
		c->habits.faults[0]->play(&scene);
		send(c, &segment, &shape);
	}
	if (chance(c, 300))
		c->sleeps_until_ns = now_ns + NAP_NS;
}

static void choose_habits(struct conn *c)
{
	struct habits *h = &c->habits;

	h->handshake = chance(c, 500) ? HANDSHAKE_PLAIN : conn_below(c, HANDSHAKES);
	h->stamps = chance(c, 500);
	h->slow = chance(c, 30);
	h->insists = chance(c, 700);
	h->misleads = chance(c, 150);
	for (int i = 0; i < TRICKS_AT_ONCE; i++) {
		h->roads[i] = &roads[conn_below(c, road_count)];
		h->faults[i] = &faults[conn_below(c, fault_count)];
	}
	h->road_chance = chance(c, 300) ? 0 : conn_below(c, 3) * 450 + 100;
	h->fault_chance = 500 + conn_below(c, 501);
	h->decoy = chance(c, 500) ? conn_below(c, 60) : 0;
	h->rewrite = chance(c, 300) ? conn_below(c, 40) : 0;
	h->ahead = chance(c, 300) ? conn_below(c, 40) : 0;
	h->burst = chance(c, 400) ? conn_below(c, 40) : 0;
	h->crumbs = chance(c, 100) ? conn_below(c, 40) : 0;
	h->control = chance(c, 300) ? conn_below(c, 30) : 2;
	h->again = chance(c, 100) ? 3 : 0;
}

void conn_describe(const struct conn *c)
{
	static const char *const handshakes[] = {
		[HANDSHAKE_PLAIN] = "plain",	     [HANDSHAKE_WITH_DATA] = "with_data",
		[HANDSHAKE_SYN_ACK] = "syn_ack",     [HANDSHAKE_DATA_IN_SYN] = "data_in_syn",
		[HANDSHAKE_FAST_OPEN] = "fast_open", [HANDSHAKE_ODD_SYN] = "odd_syn",
	};
	const struct habits *h = &c->habits;

	printf("connection %llu: handshake %s%s%s%s", (unsigned long long)c->number, handshakes[h->handshake],
	       h->stamps ? " stamps" : "", h->slow ? " slow" : "", h->insists ? " insists" : "");
	if (h->misleads)
		printf(" misleads by %s", h->faults[0]->name);
	for (int i = 0; i < TRICKS_AT_ONCE && h->road_chance; i++)
		printf(" %s", h->roads[i]->name);
	for (int i = 0; i < TRICKS_AT_ONCE && h->decoy; i++)
		printf(" %s", h->faults[i]->name);
	printf(" roads %u decoy %u rewrite %u ahead %u burst %u crumbs %u control %u again %u\n", h->road_chance,
	       h->decoy, h->rewrite, h->ahead, h->burst, h->crumbs, h->control, h->again);
}

static void choose_numbers(struct conn *c)
{
	c->first = random_next(&c->random);
	c->clock = chance(c, 900) ? 1 + conn_below(c, 1 << 30) : (uint32_t)random_next(&c->random);
	c->acked = c->sent = c->peer = 0;
	c->heard_syn = c->heard_data = c->heard_reset = false;
	c->waited = 0;
	c->state = CONN_OPENING;
}

/* Each address has PORTS connections, each connection an address and a port of its own for a long time. */
static void choose_ends(struct conn *c, const struct ends *ends)
{
	uint8_t *host = c->ends.source + (ends->ipv6 ? 14 : 2);
	uint64_t address = c->number / PORTS + 1;

	c->ends = *ends;
	host[0] = address >> 8;
	host[1] = address;
	c->ends.source_port = PORT_FIRST + c->number % PORTS;
}

void conn_begin(struct conn *c, struct wire *wire, const struct ends *ends, uint64_t seed, uint64_t number)
{
	struct random mix = { .state = seed ^ number * 0x9e3779b97f4a7c15ULL };
	char user[USER_BYTES], other[USER_BYTES];

	c->number = number;
	c->wire = wire;
	c->random.state = random_next(&mix);
	c->lives = 0;
	c->sleeps_until_ns = 0;
	choose_ends(c, ends);
	choose_habits(c);
	choose_numbers(c);
	snprintf(user, sizeof(user), "fuzz-%llu", (unsigned long long)number);
	snprintf(other, sizeof(other), "decoy-%llu", (unsigned long long)number);
	stream_requests(&c->real, &c->random, user);
	stream_decoy(&c->decoy, &c->real, &c->random, chance(c, 500) ? user : other);
	c->steps = random_between(&c->random, STEPS_MIN, STEPS_MAX);
}

void conn_hear(struct conn *c, const struct heard *heard)
{
	uint32_t acked = heard->ack - c->first;

	if (heard->flags & TCP_RST) {
		c->heard_reset = true;
		return;
	}
	if (heard->flags & TCP_ACK && acked <= c->real.length && acked > c->acked)
		c->acked = acked;
	if (heard->flags & TCP_SYN) {
		c->peer = heard->seq + 1;
		c->heard_syn = true;
	} else if (heard->length || heard->flags & TCP_FIN) {
		c->heard_data = true;
		if (heard->seq == c->peer)
			c->peer += heard->length + !!(heard->flags & TCP_FIN);
	}
	if (c->sent < c->acked)
		c->sent = c->acked;
}

/* So that the server's socket does not stay: at each place where its window may begin. */
static void end(struct conn *c)
{
	struct shape plain = { 0 };
	struct segment reset = make_segment(c, TCP_RST, c->acked);

	send(c, &reset, &plain);
	if (c->sent != c->acked) {
		reset = make_segment(c, TCP_RST, c->sent);
		send(c, &reset, &plain);
	}
	c->state = CONN_OVER;
}

/* Between the same ends. */
static void live_again(struct conn *c)
{
	if (chance(c, 500))
		end(c);
	choose_numbers(c);
	c->lives++;
	send_syn(c);
}

static void wait_for_syn_ack(struct conn *c)
{
	if (c->heard_syn) {
		complete(c);
		return;
	}
	if (c->waited % SYN_WAIT == 0) {
		if (c->waited == SYN_WAIT * SYN_TRIES) {
			c->state = CONN_OVER;
			return;
		}
		send_syn(c);
	}
	c->waited++;
}

static void acknowledge(struct conn *c)
{
	struct segment segment = make_segment(c, TCP_ACK, c->sent);
	struct shape plain = { 0 };

	c->heard_data = false;
	send(c, &segment, &plain);
}

static void act(struct conn *c)
{
	const struct {
		unsigned int weight;
		void (*act)(struct conn *c);
	} choices[] = {
		{ 30, send_next },
		{ c->habits.decoy, send_decoy },
		{ c->habits.rewrite, rewrite },
		{ c->habits.ahead, send_ahead },
		{ c->habits.burst, send_burst },
		{ c->habits.crumbs, send_crumbs },
		{ c->habits.control, send_control },
		{ c->habits.again, live_again },
	};
	unsigned int total = 0, chosen, i = 0;

	for (size_t k = 0; k < sizeof(choices) / sizeof(*choices); k++)
		total += choices[k].weight;
	chosen = conn_below(c, total);
	while (chosen >= choices[i].weight)
		chosen -= choices[i++].weight;
	choices[i].act(c);
}

void conn_step(struct conn *c, uint64_t now_ns)
{
	if (now_ns < c->sleeps_until_ns)
		return;
	if (c->state == CONN_OPENING) {
		wait_for_syn_ack(c);
		if (c->state == CONN_OPEN && c->habits.misleads)
			mislead(c, now_ns);
		return;
	}
	if (c->steps-- <= 0 || (c->heard_reset && c->steps < STEPS_MAX / 2)) {
		end(c);
		return;
	}
	if (c->heard_data && chance(c, 800))
		acknowledge(c);
	act(c);
	if (c->habits.slow && chance(c, 300))
		c->sleeps_until_ns = now_ns + NAP_NS;
}
