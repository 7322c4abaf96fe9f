/* SPDX-License-Identifier: GPL-2.0 */
/* The sending half, the timers and what the application calls. */
#include "world.h"

#define TRIES_MAX 30
#define KEEPALIVE_TRIES_MAX 200
#define RTO_MAX (4 * SECOND)
#define LINGER (100 * SECOND)

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void tcp_reset(struct tcp *t, struct world *w, enum side side, const struct tcp_options *o)
{
	*t = (struct tcp){ .w = w, .side = side, .o = *o, .iss = o->isn, .out = t->out, .in = t->in, .read = 1 };
	for (int i = 0; i < TCP_TIMERS; i++)
		t->timer[i] = NEVER;
}

uint32_t tcp_clock(const struct tcp *t)
{
	return t->o.clock + t->w->net.now / MS;
}

static uint16_t tcp_offer(struct tcp *t)
{
	uint64_t used = t->received - t->read;
	uint64_t free = used < t->o.room ? t->o.room - used : 0;

	if (free < least(t->o.mss, t->o.room / 2))
		free = 0;
	t->edge = most(t->edge, t->received + (free >> t->o.scale << t->o.scale));
	return least((t->edge - t->received) >> t->o.scale, UINT16_MAX);
}

static void tcp_put_sacks(struct tcp *t, struct weir_segment *g)
{
	uint32_t base = t->irs;
	unsigned int i;

	if (!t->o.sack)
		return;
	if (t->again.end) {
		g->sack[g->sacks].start = base + t->again.start;
		g->sack[g->sacks++].end = base + t->again.end;
		t->again = (struct range){ 0 };
	}
	for (i = 0; i < t->early.n; i++) {
		if (t->early.at[i].start <= t->early_last && t->early_last < t->early.at[i].end)
			break;
	}
	for (unsigned int k = 0; k < t->early.n && g->sacks < 3 + !g->has_ts; k++) {
		const struct range *r = &t->early.at[(i + k) % t->early.n];

		g->sack[g->sacks].start = base + r->start;
		g->sack[g->sacks++].end = base + r->end;
	}
}

void tcp_send(struct tcp *t, uint64_t at, uint64_t length, uint8_t flags)
{
	struct packet p = { .g = { .seq = t->iss + at, .len = length, .flags = flags, .has_ts = t->o.timestamps } };
	struct weir_segment *g = &p.g;

	if (length)
		p.data = t->out + at - 1;
	if (g->has_ts)
		g->tsval = tcp_clock(t);
	if (flags & WEIR_TCP_ACK) {
		g->ack = t->irs + t->received;
		g->window = tcp_offer(t);
		g->tsecr = g->has_ts ? t->ts_recent : 0;
		t->acked = t->received;
		t->unacknowledged = 0;
		t->timer[TCP_DELAYED_ACK] = NEVER;
		if (!(flags & (WEIR_TCP_SYN | WEIR_TCP_RST)))
			tcp_put_sacks(t, g);
	}
	if (flags & WEIR_TCP_SYN) {
		g->window = least(t->o.room, UINT16_MAX);
		t->edge = most(t->edge, t->received + g->window);
	}
	if (!(flags & WEIR_TCP_RST))
		t->next = most(t->next, at + length + !!(flags & (WEIR_TCP_FIN | WEIR_TCP_SYN)));
	world_transmit(t->w, t->side, &p);
}

void tcp_acknowledge(struct tcp *t)
{
	tcp_send(t, t->next, 0, WEIR_TCP_ACK);
}

static void tcp_arm(struct tcp *t)
{
	uint64_t rto = least(t->o.rto_ns << least(t->backoff, 10), RTO_MAX);
	bool pending = t->next < tcp_data_end(t) + t->shut;

	if (t->una == t->next && !pending)
		t->timer[TCP_RETRANSMIT] = NEVER;
	else if (t->timer[TCP_RETRANSMIT] == NEVER)
		t->timer[TCP_RETRANSMIT] = t->w->net.now + rto;
}

/* One segment of the stream from `at` on, at most `room` long: how far it got. */
static uint64_t tcp_send_data(struct tcp *t, uint64_t at, uint64_t room)
{
	struct random *r = &t->w->net.random;
	uint64_t data_end = tcp_data_end(t);
	uint64_t length = at < data_end ? least(least(room, t->o.mss), data_end - at) : 0;
	uint8_t flags = WEIR_TCP_ACK;

	if (length > 1 && random_chance(r, t->o.resegment))
		length = random_between(r, 1, length);
	if (t->shut && at + length == data_end && length < room && !(length && t->o.fin_apart))
		flags |= WEIR_TCP_FIN;
	else if (!length)
		return at;
	if (length && at + length == data_end)
		flags |= WEIR_TCP_PSH;
	tcp_send(t, at, length, flags);
	return at + length + !!(flags & WEIR_TCP_FIN);
}

/* Sends again what neither an acknowledgement nor a SACK covers. */
static void tcp_resend(struct tcp *t, unsigned int segments)
{
	t->resend = most(t->resend, t->una);
	while (segments && t->resend < t->recover) {
		uint64_t limit = t->recover, at = t->resend;

		for (unsigned int i = 0; i < t->sacked.n; i++) {
			if (t->sacked.at[i].start <= at && at < t->sacked.at[i].end)
				at = t->sacked.at[i].end;
			else if (t->sacked.at[i].start > at)
				limit = least(limit, t->sacked.at[i].start);
		}
		t->resend = at;
		if (at >= t->recover)
			return;
		t->resend = tcp_send_data(t, at, limit - at);
		if (t->resend == at)
			return;
		segments--;
	}
}

void tcp_output(struct tcp *t)
{
	uint64_t flight = (uint64_t)t->o.flight * t->o.mss;
	bool sent = false;

	if (t->state != TCP_OPEN)
		return;
	if (t->recovering)
		tcp_resend(t, 2);
	while (t->next < tcp_data_end(t) + t->shut) {
		uint64_t limit = t->una + least(t->window, flight), was = t->next;

		/* A silly window is not filled (RFC 9293, 3.8.6.2.1). */
		if (t->next >= limit ||
		    (t->una < t->next && limit - t->next < least(t->o.mss, tcp_data_end(t) - t->next)))
			break;
		if (tcp_send_data(t, t->next, limit - t->next) == was)
			break;
		sent = true;
	}
	if (sent && t->o.tail_probe_ns && !t->recovering && !t->probed)
		t->timer[TCP_TAIL_PROBE] = t->w->net.now + t->o.tail_probe_ns;
	tcp_arm(t);
}

void tcp_finish(struct tcp *t, enum tcp_end end)
{
	for (int i = 0; i < TCP_TIMERS; i++)
		t->timer[i] = NEVER;
	t->state = TCP_CLOSED;
	if (end == TCP_END_CLEAN && !t->fin_first) {
		t->state = TCP_TIME_WAIT;
		t->timer[TCP_LINGER] = t->w->net.now + LINGER;
	}
	if (t->end == TCP_END_NONE)
		t->end = end;
}

void tcp_listen(struct tcp *t)
{
	t->state = TCP_LISTEN;
}

static void tcp_send_syn(struct tcp *t)
{
	tcp_send(t, 0, 0, t->state == TCP_SYN_SENT ? WEIR_TCP_SYN : WEIR_TCP_SYN | WEIR_TCP_ACK);
}

void tcp_connect(struct tcp *t)
{
	t->state = TCP_SYN_SENT;
	tcp_send_syn(t);
	tcp_arm(t);
}

static void tcp_window_probe(struct tcp *t)
{
	if (t->o.window_probe_byte && t->next < tcp_data_end(t))
		tcp_send(t, t->next, 1, WEIR_TCP_ACK);
	else
		tcp_send(t, t->next - 1, 0, WEIR_TCP_ACK);
}

static void tcp_retransmit(struct tcp *t)
{
	if (++t->tries > TRIES_MAX) {
		tcp_finish(t, TCP_END_TIMEOUT);
		return;
	}
	t->backoff++;
	if (t->state != TCP_OPEN) {
		tcp_send_syn(t);
	} else if (t->una == t->next) {
		tcp_window_probe(t);
	} else {
		t->sacked.n = 0;
		t->recovering = true;
		t->recover = t->next;
		t->resend = t->una;
		tcp_resend(t, 1);
	}
	tcp_arm(t);
}

/* The last segment again, cut anew. */
static void tcp_tail_probe(struct tcp *t)
{
	uint64_t back = random_between(&t->w->net.random, 1, t->o.mss);

	if (t->una == t->next || t->recovering)
		return;
	t->probed = true;
	back = least(back, t->next - t->una);
	tcp_send_data(t, t->next - back, back);
}

static void tcp_keepalive(struct tcp *t)
{
	bool byte = t->o.keepalive_byte && t->written && t->next == tcp_data_end(t);

	t->timer[TCP_KEEPALIVE] = t->w->net.now + t->o.keepalive_ns;
	if (t->una != t->next || t->next < tcp_data_end(t) + t->shut)
		return;
	if (++t->tries > KEEPALIVE_TRIES_MAX) {
		tcp_finish(t, TCP_END_TIMEOUT);
		return;
	}
	tcp_send(t, t->next - 1, byte, WEIR_TCP_ACK);
}

void tcp_timer(struct tcp *t, enum tcp_timer which)
{
	t->timer[which] = NEVER;
	switch (which) {
	case TCP_RETRANSMIT:
		tcp_retransmit(t);
		break;
	case TCP_TAIL_PROBE:
		tcp_tail_probe(t);
		break;
	case TCP_DELAYED_ACK:
		tcp_acknowledge(t);
		break;
	case TCP_KEEPALIVE:
		tcp_keepalive(t);
		break;
	default:
		/* TIME-WAIT is over, or the peer of a closed socket does not close. */
		tcp_finish(t, TCP_END_ABORT);
		break;
	}
}

void tcp_write(struct tcp *t, uint64_t length, bool last)
{
	t->written += length;
	t->shut |= last;
	tcp_output(t);
}

void tcp_shutdown(struct tcp *t)
{
	if (t->shut || t->state == TCP_CLOSED)
		return;
	t->shut = true;
	tcp_output(t);
}

void tcp_close(struct tcp *t)
{
	if (t->state != TCP_OPEN)
		return;
	t->read_shut = true;
	if (t->read < t->received - tcp_fin_received(t)) {
		tcp_abort(t);
		return;
	}
	tcp_shutdown(t);
	if (t->timer[TCP_LINGER] == NEVER)
		t->timer[TCP_LINGER] = t->w->net.now + LINGER;
}

void tcp_abort(struct tcp *t)
{
	if (t->state == TCP_OPEN)
		tcp_send(t, t->next, 0, WEIR_TCP_RST | WEIR_TCP_ACK);
	if (t->state != TCP_CLOSED && t->state != TCP_TIME_WAIT)
		tcp_finish(t, TCP_END_ABORT);
}

void tcp_read(struct tcp *t, uint64_t length)
{
	uint64_t before = t->edge > t->received ? t->edge - t->received : 0, free;

	t->read += least(length, t->received - tcp_fin_received(t) - t->read);
	free = t->o.room - least(t->o.room, t->received - t->read);
	if (t->state == TCP_OPEN && !tcp_fin_received(t) && before < t->o.mss &&
	    free >= before + least(t->o.mss, t->o.room / 2))
		tcp_acknowledge(t);
}

bool tcp_at_eof(const struct tcp *t)
{
	return tcp_fin_received(t) && t->read == t->fin_at;
}
