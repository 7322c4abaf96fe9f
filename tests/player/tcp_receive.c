/* SPDX-License-Identifier: GPL-2.0 */
/* The receiving half, and what it does not forgive. */
#include "world.h"

#define CHALLENGE_INTERVAL (500 * MS)

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The offset nearest to `near` that a 32-bit number stands for; below the stream's start it is negative. */
static int64_t unwrap(uint32_t number, uint32_t first, uint64_t near)
{
	return (int64_t)near + (int32_t)(number - (uint32_t)(first + near));
}

static void tcp_refuse(struct tcp *t, const struct weir_segment *g)
{
	struct packet p = { 0 };

	if (g->flags & WEIR_TCP_RST)
		return;
	if (g->flags & WEIR_TCP_ACK) {
		p.g.flags = WEIR_TCP_RST;
		p.g.seq = g->ack;
	} else {
		p.g.flags = WEIR_TCP_RST | WEIR_TCP_ACK;
		p.g.ack = g->seq + g->len + !!(g->flags & WEIR_TCP_SYN) + !!(g->flags & WEIR_TCP_FIN);
	}
	world_transmit(t->w, t->side, &p);
}

static void tcp_established(struct tcp *t, const struct weir_segment *g)
{
	t->state = TCP_OPEN;
	t->una = 1;
	t->window = g->flags & WEIR_TCP_SYN ? g->window : (uint64_t)g->window << t->w->tcp[!t->side].o.scale;
	t->backoff = t->tries = 0;
	t->timer[TCP_RETRANSMIT] = NEVER;
	t->timer[TCP_KEEPALIVE] = t->w->net.now + t->o.keepalive_ns;
}

static void tcp_take_syn(struct tcp *t, const struct weir_segment *g)
{
	t->irs = g->seq;
	t->received = 1;
	t->ts_recent = g->tsval;
}

/* Before the connection is open. True: the segment is to be looked at further. */
static bool tcp_handshake(struct tcp *t, const struct weir_segment *g)
{
	switch (t->state) {
	case TCP_LISTEN:
		if (g->flags & WEIR_TCP_RST)
			return false;
		if (g->flags & WEIR_TCP_ACK || !(g->flags & WEIR_TCP_SYN)) {
			tcp_refuse(t, g);
			return false;
		}
		tcp_take_syn(t, g);
		t->state = TCP_SYN_RECEIVED;
		t->timer[TCP_RETRANSMIT] = t->w->net.now + t->o.rto_ns;
		tcp_send(t, 0, 0, WEIR_TCP_SYN | WEIR_TCP_ACK);
		return false;
	case TCP_SYN_SENT:
		if ((g->flags & (WEIR_TCP_SYN | WEIR_TCP_ACK)) != (WEIR_TCP_SYN | WEIR_TCP_ACK) || g->ack != t->iss + 1)
			return false;
		tcp_take_syn(t, g);
		tcp_established(t, g);
		if (random_chance(&t->w->net.random, 700))
			tcp_acknowledge(t);
		else
			t->timer[TCP_DELAYED_ACK] = t->w->net.now + 5 * MS;
		return false;
	case TCP_SYN_RECEIVED:
		if (g->flags & WEIR_TCP_RST) {
			if (g->seq == t->irs + 1)
				tcp_finish(t, TCP_END_RESET);
			return false;
		}
		if (g->flags & WEIR_TCP_SYN) {
			tcp_send(t, 0, 0, WEIR_TCP_SYN | WEIR_TCP_ACK);
			return false;
		}
		if (!(g->flags & WEIR_TCP_ACK))
			return false;
		if (g->ack != t->iss + 1) {
			if ((int32_t)(g->ack - t->iss) > 0)
				world_fail(t->w, "%s: more than its SYN is acknowledged", world_side(t->side));
			tcp_refuse(t, g);
			return false;
		}
		if (g->seq - (t->irs + 1) <= t->o.room)
			tcp_established(t, g);
		return t->state == TCP_OPEN;
	default:
		return true;
	}
}

/* As Linux does, which takes an empty segment right at the window's edge. */
static bool tcp_acceptable(const struct tcp *t, const struct weir_segment *g, int64_t at)
{
	int64_t end = at + g->len + !!(g->flags & WEIR_TCP_FIN);
	int64_t received = t->received, edge = t->edge;

	if (at == received && (end == at || edge > received))
		return true;
	if (end == at)
		return at > received && at <= edge;
	return at < edge && end > received;
}

/* An acknowledgement in reply to what is not acceptable, at a limited rate: two ends must not keep each other busy. */
static void tcp_challenge(struct tcp *t, const struct weir_segment *g)
{
	bool bare = !g->len && !(g->flags & WEIR_TCP_FIN);

	if (bare && t->w->net.now < t->challenged_ns)
		return;
	if (bare)
		t->challenged_ns = t->w->net.now + CHALLENGE_INTERVAL;
	tcp_acknowledge(t);
}

/* Bytes that were received before must be the same now; `at` is below which they were. */
static void tcp_check_bytes(struct tcp *t, const struct packet *p, int64_t at, int64_t start, int64_t end)
{
	int64_t from = start > at ? start : at;
	int64_t until = end < at + p->g.len ? end : at + p->g.len;

	if (from < until && memcmp(t->in + from - 1, p->data + (from - at), until - from))
		world_fail(t->w, "%s: bytes at %lld..%lld differ from those received before", world_side(t->side),
			   (long long)from, (long long)until);
}

/*
 * What lies wholly below the received is discarded unseen: a duplicate from before the last cut but one may be laid
 * anywhere there, and the byte of a keep-alive probe has no meaning.
 */
static void tcp_check_repeats(struct tcp *t, const struct packet *p, int64_t at)
{
	bool discarded = at + p->g.len <= (int64_t)t->received;
	bool meant = !discarded || (t->w->box.conn.splice.cuts < 2 && p->g.len > 1);

	if (p->joined && at > (int64_t)t->received)
		world_fail(t->w, "%s: joined bytes are laid where nothing has arrived", world_side(t->side));
	else if (meant && !p->joined)
		tcp_check_bytes(t, p, at, 1, t->received - tcp_fin_received(t));
	for (unsigned int i = 0; i < t->early.n; i++) {
		int64_t end = t->early.at[i].end;

		if (t->fin_known && end > (int64_t)t->fin_at)
			end = t->fin_at;
		tcp_check_bytes(t, p, at, t->early.at[i].start, end);
	}
}

static void tcp_check_fin(struct tcp *t, const struct weir_segment *g, int64_t at)
{
	int64_t end = at + g->len;

	if (t->fin_known && end > (int64_t)t->fin_at)
		world_fail(t->w, "%s: data beyond the FIN", world_side(t->side));
	if (!(g->flags & WEIR_TCP_FIN))
		return;
	if (t->fin_known ? end != (int64_t)t->fin_at : end < (int64_t)t->received)
		world_fail(t->w, "%s: the FIN has moved", world_side(t->side));
	for (unsigned int i = 0; i < t->early.n; i++) {
		if (!t->fin_known && (int64_t)t->early.at[i].end > end)
			world_fail(t->w, "%s: a FIN before data", world_side(t->side));
	}
}

static void tcp_take_sacks(struct tcp *t, const struct weir_segment *g)
{
	for (int i = 0; i < g->sacks; i++) {
		int64_t start = unwrap(g->sack[i].start, t->iss, t->una);
		int64_t end = unwrap(g->sack[i].end, t->iss, t->una);

		if (end > (int64_t)t->next)
			world_fail(t->w, "%s: a SACK of what was never sent", world_side(t->side));
		if (start < end && start > (int64_t)t->una)
			ranges_add(&t->sacked, start, end);
	}
}

static void tcp_progress(struct tcp *t, uint64_t ack)
{
	struct random *r = &t->w->net.random;

	t->una = ack;
	t->backoff = t->duplicates = 0;
	t->probed = false;
	t->timer[TCP_TAIL_PROBE] = t->timer[TCP_RETRANSMIT] = NEVER;
	ranges_drop_below(&t->sacked, ack);
	if (t->recovering && t->una >= t->recover)
		t->recovering = false;
	if (t->o.tail_probe_ns && t->una < t->next && !t->recovering && random_chance(r, 500))
		t->timer[TCP_TAIL_PROBE] = t->w->net.now + t->o.tail_probe_ns;
}

static void tcp_duplicate(struct tcp *t)
{
	if (++t->duplicates < 3)
		return;
	if (!t->recovering) {
		t->recovering = true;
		t->recover = t->next;
		t->resend = t->una;
	}
}

/* False: nothing more of this segment counts. */
static bool tcp_take_ack(struct tcp *t, const struct weir_segment *g, int64_t at)
{
	int64_t ack = unwrap(g->ack, t->iss, t->una);
	uint64_t window = (uint64_t)g->window << t->w->tcp[!t->side].o.scale;
	bool same = window == t->window;

	if (ack > (int64_t)t->next) {
		world_fail(t->w, "%s: %lld acknowledged, %llu sent", world_side(t->side), (long long)ack,
			   (unsigned long long)t->next);
		return false;
	}
	if (g->has_ts && (int32_t)(g->tsecr - tcp_clock(t)) > 0) {
		world_fail(t->w, "%s: a time stamp of the future is echoed", world_side(t->side));
		return false;
	}
	if (ack > (int64_t)t->una ||
	    (ack == (int64_t)t->una &&
	     (at > (int64_t)t->window_at || (at == (int64_t)t->window_at && window > t->window)))) {
		t->window = window;
		t->window_at = at;
	}
	tcp_take_sacks(t, g);
	t->tries = 0;
	if (ack > (int64_t)t->una)
		tcp_progress(t, ack);
	else if (ack == (int64_t)t->una && !g->len && t->una < t->next && same)
		tcp_duplicate(t);
	return true;
}

static void tcp_copy(struct tcp *t, const struct packet *p, int64_t at, int64_t from, int64_t until)
{
	if (from < until)
		memcpy(t->in + from - 1, p->data + (from - at), until - from);
}

static void tcp_soon_acknowledge(struct tcp *t, bool now)
{
	t->unacknowledged++;
	if (now || t->unacknowledged >= 2 || !t->o.delayed_ack_ns)
		tcp_acknowledge(t);
	else if (t->timer[TCP_DELAYED_ACK] == NEVER)
		t->timer[TCP_DELAYED_ACK] = t->w->net.now + t->o.delayed_ack_ns;
}

/* These bytes have come again. */
static void tcp_note_again(struct tcp *t, int64_t start, int64_t end)
{
	if (start < 1)
		start = 1;
	if (start < end)
		t->again = (struct range){ start, end };
}

/* The part of a segment that lies in the window. */
static void tcp_take_data(struct tcp *t, const struct packet *p, int64_t at)
{
	bool fin = p->g.flags & WEIR_TCP_FIN;
	int64_t end = at + p->g.len + fin;
	int64_t from = most(at < 0 ? 0 : at, t->received);
	int64_t until = least(end < 0 ? 0 : end, t->edge);
	bool gap;

	if (at < (int64_t)t->received)
		tcp_note_again(t, at, least(end < 1 ? 1 : end, t->received));
	else if (t->early.n && ranges_hold(&t->early, at, end))
		tcp_note_again(t, at, end);
	if (from >= until)
		return tcp_acknowledge(t);
	if (until > (int64_t)STREAM_ROOM) {
		world_fail(t->w, "%s: more data than anybody sent", world_side(t->side));
		return;
	}
	if (fin && until == end) {
		t->fin_known = true;
		t->fin_at = end - 1;
		if (from == (int64_t)t->received && !tcp_fin_sent(t))
			t->fin_first = true;
	}
	tcp_copy(t, p, at, from, least(until, end - fin));
	gap = t->early.n || from > (int64_t)t->received;
	if (from > (int64_t)t->received) {
		if (ranges_add(&t->early, from, until))
			t->early_last = from;
		return tcp_acknowledge(t);
	}
	t->received = until;
	ranges_drop_below(&t->early, t->received);
	if (t->early.n && t->early.at[0].start == t->received) {
		t->received = t->early.at[0].end;
		ranges_drop_below(&t->early, t->received);
	}
	tcp_soon_acknowledge(t, gap || tcp_fin_received(t) || at < from);
}

static void tcp_check_finished(struct tcp *t)
{
	if (t->state != TCP_OPEN || !tcp_fin_acked(t) || !tcp_fin_received(t))
		return;
	if (t->timer[TCP_DELAYED_ACK] != NEVER)
		tcp_acknowledge(t);
	tcp_finish(t, TCP_END_CLEAN);
}

static bool tcp_is_stale(const struct tcp *t, const struct weir_segment *g)
{
	return g->has_ts && (int32_t)(g->tsval - t->ts_recent) < 0;
}

static void tcp_take(struct tcp *t, const struct packet *p)
{
	const struct weir_segment *g = &p->g;
	int64_t at = unwrap(g->seq, t->irs, t->received);

	if (g->flags & WEIR_TCP_RST) {
		if (at == (int64_t)t->received)
			tcp_finish(t, TCP_END_RESET);
		else if (tcp_acceptable(t, g, at))
			tcp_challenge(t, g);
		return;
	}
	if (g->len)
		tcp_check_repeats(t, p, at);
	if (!tcp_is_stale(t, g) && (g->flags & WEIR_TCP_FIN || (g->len && at + g->len >= (int64_t)t->received)))
		tcp_check_fin(t, g, at);
	if (tcp_is_stale(t, g) || !tcp_acceptable(t, g, at) || g->flags & WEIR_TCP_SYN) {
		if (at + g->len + !!(g->flags & WEIR_TCP_FIN) <= (int64_t)t->received)
			tcp_note_again(t, at, at + g->len);
		tcp_challenge(t, g);
		return;
	}
	if (!(g->flags & WEIR_TCP_ACK))
		return;
	if (g->has_ts && at <= (int64_t)t->acked)
		t->ts_recent = g->tsval;
	if (!tcp_take_ack(t, g, at))
		return;
	if (g->len || g->flags & WEIR_TCP_FIN) {
		if (g->len && t->read_shut && at + g->len > (int64_t)t->received) {
			tcp_abort(t);
			return;
		}
		tcp_take_data(t, p, at);
	}
	tcp_check_finished(t);
	tcp_output(t);
}

void tcp_receive(struct tcp *t, const struct packet *p)
{
	if (!tcp_handshake(t, &p->g))
		return;
	if (t->state == TCP_CLOSED) {
		tcp_refuse(t, &p->g);
		return;
	}
	if (t->state == TCP_TIME_WAIT) {
		int64_t at = unwrap(p->g.seq, t->irs, t->received);

		if (!(p->g.flags & WEIR_TCP_RST) &&
		    (p->g.len || p->g.flags & (WEIR_TCP_FIN | WEIR_TCP_SYN) || at != (int64_t)t->received))
			tcp_acknowledge(t);
		return;
	}
	t->timer[TCP_KEEPALIVE] = t->w->net.now + t->o.keepalive_ns;
	tcp_take(t, p);
}
