/* SPDX-License-Identifier: GPL-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

#define PACKETS_MAX 200000
#define TIME_MAX (400 * SECOND)

void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	for (int i = 0; i < SIDES; i++) {
		w->tcp[i].out = calloc(1, STREAM_ROOM);
		w->tcp[i].in = calloc(1, STREAM_ROOM);
		if (!w->tcp[i].out || !w->tcp[i].in)
			abort();
	}
}

void world_free(struct world *w)
{
	for (int i = 0; i < SIDES; i++) {
		free(w->tcp[i].out);
		free(w->tcp[i].in);
	}
	net_free(&w->net);
}

const char *world_side(enum side side)
{
	return side == CLIENT ? "client" : "server";
}

void world_fail(struct world *w, const char *format, ...)
{
	va_list arguments;

	if (w->failed)
		return;
	w->failed = true;
	va_start(arguments, format);
	vsnprintf(w->why, sizeof(w->why), format, arguments);
	va_end(arguments);
	if (w->trace)
		printf("# %10.3f FAILED %s\n", w->net.now / 1e6, w->why);
}

static void world_show(const struct world *w, enum hop hop, const struct packet *p, const char *fate)
{
	static const char *const names[] = { "client > weir", "weir > server", "server > weir", "weir > client" };
	const struct weir_segment *g = &p->g;
	enum side from = hop < HOP_SERVER_WEIR ? CLIENT : SERVER;
	uint32_t mine = w->tcp[from].iss, other = w->tcp[!from].iss;

	printf("# %10.3f %-14s#%-4u %s%s%s%s%s %u +%u", w->net.now / 1e6, names[hop], p->number,
	       g->flags & WEIR_TCP_SYN ? "S" : "", g->flags & WEIR_TCP_FIN ? "F" : "",
	       g->flags & WEIR_TCP_RST ? "R" : "", g->flags & WEIR_TCP_PSH ? "P" : "",
	       g->flags & WEIR_TCP_ACK ? "." : "", g->seq - mine, g->len);
	if (g->flags & WEIR_TCP_ACK)
		printf(" ack %u win %u", g->ack - other, g->window);
	for (int i = 0; i < g->sacks; i++)
		printf(" sack %u-%u", g->sack[i].start - other, g->sack[i].end - other);
	if (g->len)
		printf(" \"%.*s\"", (int)strcspn((const char *)p->data, "\r\n") % 40, (const char *)p->data);
	printf("%s\n", fate);
}

void world_note(struct world *w, const char *step, enum weir_action action, enum weir_reason why)
{
	static const char *const actions[] = { "pass", "hold", "frame", "ask", "answer", "ack", "close", "cut" };
	static const char *const reasons[] = {
#define X(name, label, group) label,
		WEIR_REASONS(X)
#undef X
			"",
	};
	const struct weir_conn *c = &w->box.conn;
	const struct weir_splice *s = &c->splice;
	uint32_t client = w->tcp[CLIENT].iss, server = w->tcp[SERVER].iss;

	if (!w->trace)
		return;
	printf("# %10.3f   %s: %s %s  phase %u cut %u-%u (in %u) answer %u+%u (out %u) owed %u requests %u/%u\n",
	       w->net.now / 1e6, step, actions[action], reasons[why], c->phase, s->cut_start - client,
	       s->cut_end - client, s->in_off, s->answer_start - server, s->answer_length, s->out_off, s->owed,
	       c->requests, c->responses);
}

void world_send(struct world *w, enum hop hop, const struct packet *packet)
{
	struct packet p = *packet;
	enum fate fate = FATE_SEND;

	p.number = w->net.link[hop].sent++;
	if (++w->packets > PACKETS_MAX)
		world_fail(w, "a storm of packets");
	if (w->filter.see)
		fate = w->filter.see(w, hop, &p);
	if (w->trace)
		world_show(w, hop, &p, fate == FATE_LOSE ? "  (lost)" : fate == FATE_DELIVERED ? "  (filtered)" : "");
	if (fate == FATE_SEND)
		net_send(&w->net, hop, &p);
}

void world_transmit(struct world *w, enum side from, const struct packet *p)
{
	world_send(w, from == CLIENT ? HOP_CLIENT_WEIR : HOP_SERVER_WEIR, p);
}

static void world_deliver(struct world *w, const struct event *e)
{
	if (e->kind == EVENT_COMMIT) {
		box_commit(w, e->at);
		return;
	}
	if (w->trace && e->at != HOP_SERVER_WEIR)
		printf("# %10.3f   arrives: hop %u #%u\n", w->net.now / 1e6, e->at, e->packet.number);
	switch (e->at) {
	case HOP_CLIENT_WEIR:
		box_from_client(w, &e->packet);
		break;
	case HOP_WEIR_SERVER:
		tcp_receive(&w->tcp[SERVER], &e->packet);
		break;
	case HOP_SERVER_WEIR:
		box_from_server(w, &e->packet);
		break;
	default:
		tcp_receive(&w->tcp[CLIENT], &e->packet);
		break;
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t world_next_timer(const struct world *w)
{
	const uint64_t fixed[] = { w->config.client.abort_ns, w->config.client.shutdown_ns, w->config.server.abort_ns,
				   w->client.notices_at };
	uint64_t next = earlier(w->client.timer,
				earlier(w->server.timer, earlier(w->server.read_at, w->server.idle_at)));

	for (int i = 0; i < SIDES; i++) {
		for (int k = 0; k < TCP_TIMERS; k++)
			next = earlier(next, w->tcp[i].timer[k]);
	}
	for (int i = 0; i < 4; i++) {
		if (fixed[i] > w->net.now)
			next = earlier(next, fixed[i]);
	}
	return next;
}

static void world_fire_timers(struct world *w)
{
	for (int i = 0; i < SIDES; i++) {
		for (int k = 0; k < TCP_TIMERS; k++) {
			if (w->tcp[i].timer[k] <= w->net.now)
				tcp_timer(&w->tcp[i], k);
		}
	}
}

static bool world_step(struct world *w)
{
	uint64_t packet = net_next(&w->net), timer = world_next_timer(w);
	struct event e;

	if ((packet == NEVER && timer == NEVER) || earlier(packet, timer) > TIME_MAX)
		return false;
	if (packet <= timer) {
		e = net_take(&w->net);
		w->net.now = e.time;
		world_deliver(w, &e);
	} else {
		w->net.now = timer > w->net.now ? timer : w->net.now;
		world_fire_timers(w);
	}
	client_step(w);
	server_step(w);
	return !w->failed;
}

static bool tcp_is_over(const struct tcp *t)
{
	return t->state == TCP_CLOSED || t->state == TCP_TIME_WAIT;
}

static void world_judge(struct world *w)
{
	const struct tcp *client = &w->tcp[CLIENT], *server = &w->tcp[SERVER];
	bool excused = w->server.closed || w->box.closes || w->client.early;
	/* A server may wait in vain where the RST that would have ended it was lost, or its client's with an answer open. */
	bool open = w->box.conn.splice.cuts && !weir_splice_answer_acked(&w->box.conn.splice);
	bool in_vain = !server->una || w->box.closes || (open && client->end == TCP_END_ABORT);

	if (!tcp_is_over(client) || (!tcp_is_over(server) && server->state != TCP_LISTEN))
		world_fail(w, "the connection does not end: client in state %d, server in state %d, %u of %u answered",
			   client->state, server->state, w->client.answered, w->config.client.exchanges);
	if (w->client.answered < w->config.client.exchanges && !excused &&
	    !(w->client.made && w->exchange[w->client.made - 1].closes))
		world_fail(w, "%u of %u requests answered, and nobody closed", w->client.answered,
			   w->config.client.exchanges);
	if (client->end == TCP_END_TIMEOUT || (server->end == TCP_END_TIMEOUT && !in_vain))
		world_fail(w, "the %s gave up", world_side(client->end == TCP_END_TIMEOUT ? CLIENT : SERVER));
	if (client->end == TCP_END_RESET && !w->server.closed)
		world_fail(w, "the client was reset, and not by the server");
	if (server->end == TCP_END_RESET && client->end != TCP_END_ABORT && !w->box.closes)
		world_fail(w, "the server was reset, and not by the client");
	client_check_rest(w);
	server_check_rest(w);
}

bool world_play(struct world *w, const struct config *config)
{
	w->config = *config;
	w->failed = false;
	w->packets = 0;
	net_reset(&w->net, config->seed);
	memcpy(w->net.link, config->link, sizeof(config->link));
	for (int i = 0; i < SIDES; i++)
		tcp_reset(&w->tcp[i], w, i, &config->tcp[i]);
	client_reset(w);
	server_reset(w);
	box_reset(w);
	memset(w->exchange, 0, sizeof(w->exchange));
	tcp_listen(&w->tcp[SERVER]);
	tcp_connect(&w->tcp[CLIENT]);
	while (world_step(w))
		;
	if (!w->failed)
		world_judge(w);
	return !w->failed;
}
