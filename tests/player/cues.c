/* SPDX-License-Identifier: GPL-2.0 */
#include "cues.h"

bool any_packet(const struct world *w, const struct packet *p)
{
	(void)w;
	(void)p;
	return true;
}

static bool begins_with(const struct packet *p, const char *text)
{
	return p->g.len >= strlen(text) && !memcmp(p->data, text, strlen(text));
}

bool is_answer(const struct world *w, const struct packet *p)
{
	(void)w;
	return begins_with(p, "HTTP/1.1 429");
}

bool is_request(const struct world *w, const struct packet *p)
{
	(void)w;
	return begins_with(p, "GET /r/") || begins_with(p, "POST /r/") || begins_with(p, "HEAD /r/");
}

bool is_bare_ack(const struct world *w, const struct packet *p)
{
	(void)w;
	return p->g.flags == WEIR_TCP_ACK && !p->g.len;
}

bool is_shut(const struct world *w, const struct packet *p)
{
	const struct weir_splice *s = &w->box.conn.splice;

	return s->owed && p->g.flags == WEIR_TCP_ACK && !p->g.window && p->g.ack == s->cut_end;
}

bool is_data(const struct world *w, const struct packet *p)
{
	(void)w;
	return p->g.len;
}

bool is_body(const struct world *w, const struct packet *p)
{
	return p->g.len && !is_request(w, p);
}

bool is_fin(const struct world *w, const struct packet *p)
{
	(void)w;
	return p->g.flags & WEIR_TCP_FIN;
}

bool is_joined_fin(const struct world *w, const struct packet *p)
{
	(void)w;
	return (p->g.flags & WEIR_TCP_FIN) && p->g.len;
}

bool is_reset(const struct world *w, const struct packet *p)
{
	(void)w;
	return p->g.flags & WEIR_TCP_RST;
}

bool is_handshake(const struct world *w, const struct packet *p)
{
	(void)w;
	return p->g.flags & WEIR_TCP_SYN;
}

bool is_joined(const struct world *w, const struct packet *p)
{
	(void)w;
	return p->joined;
}

bool is_old_probe(const struct world *w, const struct packet *p)
{
	const struct tcp *t = &w->tcp[SERVER];

	return p->g.len <= 1 && !(p->g.flags & (WEIR_TCP_FIN | WEIR_TCP_RST | WEIR_TCP_SYN)) &&
	       p->g.seq + 1 == (uint32_t)(t->irs + t->received);
}

/* A third of a packet. */
static struct packet piece(const struct packet *p, unsigned int which)
{
	struct packet part = *p;
	uint32_t from = p->g.len * which / 3, until = p->g.len * (which + 1) / 3;

	part.g.seq += from;
	part.g.len = until - from;
	part.data += from;
	if (which < 2)
		part.g.flags &= ~WEIR_TCP_FIN;
	return part;
}

static void send_pieces(struct world *w, enum hop hop, const struct packet *p)
{
	uint64_t when = w->net.now + w->net.link[hop].delay_ns;
	static const unsigned int order[] = { 2, 0, 1 };

	for (unsigned int i = 0; i < 3; i++) {
		struct packet part = piece(p, order[i]);

		net_schedule(&w->net, when + i * MS, EVENT_PACKET, hop, &part);
	}
}

static enum fate cue_play(struct world *w, struct cue *c, struct packet *p)
{
	uint64_t when = w->net.now + w->net.link[c->hop].delay_ns;

	switch (c->act) {
	case CUE_LOSE:
		return FATE_LOSE;
	case CUE_TWICE:
		net_schedule(&w->net, when, EVENT_PACKET, c->hop, p);
		return FATE_SEND;
	case CUE_LATE:
		net_schedule(&w->net, when + c->late_ns, EVENT_PACKET, c->hop, p);
		return FATE_SEND;
	case CUE_BYPASS:
		/* Its numbers are the server's only while nothing is cut. */
		if (w->box.conn.splice.cuts)
			return FATE_SEND;
		net_schedule(&w->net, when, EVENT_PACKET, HOP_WEIR_SERVER, p);
		return FATE_DELIVERED;
	case CUE_SHUT:
		p->g.window = 0;
		return FATE_SEND;
	case CUE_SPLIT:
		send_pieces(w, c->hop, p);
		return FATE_DELIVERED;
	default:
		return FATE_SEND;
	}
}

static enum fate cues_see(struct world *w, enum hop hop, struct packet *p)
{
	struct cues *cues = w->filter.data;
	enum fate fate = FATE_SEND;

	for (unsigned int i = 0; i < cues->n && fate == FATE_SEND; i++) {
		struct cue *c = &cues->cue[i];

		if (c->hop != hop || !c->matches(w, p))
			continue;
		c->seen++;
		if (c->seen > c->skip && (!c->times || c->seen <= c->skip + c->times))
			fate = cue_play(w, c, p);
	}
	return fate;
}

bool cues_play(struct world *w, const struct config *config, struct cues *cues)
{
	bool fine;

	for (unsigned int i = 0; i < cues->n; i++)
		cues->cue[i].seen = 0;
	w->filter = (struct filter){ cues_see, cues };
	fine = world_play(w, config);
	w->filter = (struct filter){ 0 };
	return fine;
}
