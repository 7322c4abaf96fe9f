/* SPDX-License-Identifier: GPL-2.0 */
#include "conn_private.h"

#include <stdio.h>
#include <string.h>

#define OPTION_MSS 2
#define OPTION_SACK_PERMITTED 4
#define OPTION_FAST_OPEN 34
#define OPTION_EXPERIMENT 254
#define FAST_OPEN_MAGIC 0xf9, 0x89
#define STEPS_MIN 6
#define STEPS_MAX 40
#define SYN_WAIT 40 /* turns, until it is sent again */
#define SYN_TRIES 3
#define NAP_NS 130000000ULL /* longer than weir takes a segment to be under way */
#define PORT_FIRST 1024
#define PORTS 64000

static void send_fast_open_option(struct conn *c, struct segment *syn)
{
	uint8_t cookie[10] = { FAST_OPEN_MAGIC, 1, 2, 3, 4, 5, 6, 7, 8 };
	unsigned int bytes = 4 * conn_below(c, 3), times = 1 + conn_below(c, 2);

	for (; times; times--) {
		if (conn_chance(c, 500))
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
	add_option(&syn, OPTION_SACK_PERMITTED, "", 0);
	if (c->habits.stamps)
		conn_stamp(c, &syn);
	if (c->habits.handshake == HANDSHAKE_FAST_OPEN)
		send_fast_open_option(c, &syn);
	if (c->habits.handshake == HANDSHAKE_FAST_OPEN || c->habits.handshake == HANDSHAKE_DATA_IN_SYN) {
		syn.data = c->real.bytes;
		syn.length = c->real.length < MSS ? c->real.length : MSS;
	}
	if (c->habits.handshake == HANDSHAKE_ODD_SYN && c->waited == 0)
		conn_play(c, conn_chance(c, 500) ? c->habits.roads : c->habits.faults, TRICKS_AT_ONCE, &syn, &shape);
	conn_send(c, &syn, &shape);
}

/* What answers the SYN-ACK. */
static void complete(struct conn *c)
{
	struct segment segment = conn_segment(c, TCP_ACK, 0);

	c->state = CONN_OPEN;
	if (c->habits.handshake == HANDSHAKE_SYN_ACK) {
		segment.flags = TCP_SYN | TCP_ACK;
		segment.seq -= 1;
		segment.data = c->real.bytes;
		segment.length = conn_below(c, 200);
	} else if (c->habits.handshake == HANDSHAKE_WITH_DATA) {
		segment = conn_data(c, &c->real, 0, conn_some_length(c, 0));
		conn_note_sent(c, segment.length);
	}
	conn_send_by_road(c, &segment);
}

/* One fault for all of them, or they would not be believed; then perhaps long enough for them not to be under way. */
static void mislead(struct conn *c, uint64_t now_ns)
{
	for (uint32_t at = 0, n = conn_below(c, 6); at < c->real.length && n; at += MSS, n--) {
		struct segment segment = conn_data(c, &c->decoy, at, MSS);
		struct scene scene = { .random = &c->random, .ipv6 = c->ends.ipv6, .segment = &segment };
		struct shape shape = { 0 };

		scene.shape = &shape;
		c->habits.faults[0]->play(&scene);
		conn_send(c, &segment, &shape);
	}
	if (conn_chance(c, 300))
		c->sleeps_until_ns = now_ns + NAP_NS;
}

static void choose_habits(struct conn *c)
{
	struct habits *h = &c->habits;

	h->handshake = conn_chance(c, 500) ? HANDSHAKE_PLAIN : conn_below(c, HANDSHAKES);
	h->stamps = conn_chance(c, 500);
	h->slow = conn_chance(c, 30);
	h->insists = conn_chance(c, 700);
	h->misleads = conn_chance(c, 150);
	for (int i = 0; i < TRICKS_AT_ONCE; i++) {
		h->roads[i] = &roads[conn_below(c, road_count)];
		h->faults[i] = &faults[conn_below(c, fault_count)];
	}
	h->road_chance = conn_chance(c, 300) ? 0 : conn_below(c, 3) * 450 + 100;
	h->fault_chance = 500 + conn_below(c, 501);
	h->decoy = conn_chance(c, 500) ? conn_below(c, 60) : 0;
	h->rewrite = conn_chance(c, 300) ? conn_below(c, 40) : 0;
	h->ahead = conn_chance(c, 300) ? conn_below(c, 40) : 0;
	h->burst = conn_chance(c, 400) ? conn_below(c, 40) : 0;
	h->crumbs = conn_chance(c, 100) ? conn_below(c, 40) : 0;
	h->control = conn_chance(c, 300) ? conn_below(c, 30) : 2;
	h->again = conn_chance(c, 100) ? 3 : 0;
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
	c->clock = conn_chance(c, 900) ? 1 + conn_below(c, 1 << 30) : (uint32_t)random_next(&c->random);
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
	stream_decoy(&c->decoy, &c->real, &c->random, conn_chance(c, 500) ? user : other);
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
	struct segment reset = conn_segment(c, TCP_RST, c->acked);

	conn_send(c, &reset, &plain);
	if (c->sent != c->acked) {
		reset = conn_segment(c, TCP_RST, c->sent);
		conn_send(c, &reset, &plain);
	}
	c->state = CONN_OVER;
}

/* Between the same ends. */
static void live_again(struct conn *c)
{
	if (conn_chance(c, 500))
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
	struct segment segment = conn_segment(c, TCP_ACK, c->sent);
	struct shape plain = { 0 };

	c->heard_data = false;
	conn_send(c, &segment, &plain);
}

static void act(struct conn *c)
{
	const struct {
		unsigned int weight;
		void (*act)(struct conn *c);
	} choices[] = {
		{ 30, conn_send_next },
		{ c->habits.decoy, conn_send_decoy },
		{ c->habits.rewrite, conn_rewrite },
		{ c->habits.ahead, conn_send_ahead },
		{ c->habits.burst, conn_send_burst },
		{ c->habits.crumbs, conn_send_crumbs },
		{ c->habits.control, conn_send_control },
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
	if (c->heard_data && conn_chance(c, 800))
		acknowledge(c);
	act(c);
	if (c->habits.slow && conn_chance(c, 300))
		c->sleeps_until_ns = now_ns + NAP_NS;
}
