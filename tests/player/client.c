/* SPDX-License-Identifier: GPL-2.0 */
#include <stdio.h>

#include "world.h"

#define CONTINUE_WAIT (1 * SECOND)

void client_reset(struct world *w)
{
	w->client = (struct client){ .timer = NEVER };
}

/* What a request is to have. */
struct plan {
	bool has_body, chunked, bad_chunks;
	uint64_t length; /* of the body */
};

static struct plan client_plan(const struct client_options *o, struct random *r, uint64_t room, struct exchange *x)
{
	struct plan plan = { .has_body = random_chance(r, o->body) };

	plan.chunked = plan.has_body && random_chance(r, o->chunked);
	if (plan.has_body)
		plan.length = random_chance(r, 500) ? random_below(r, o->body_most + 1) :
						      random_below(r, o->body_most / 20 + 1);
	if (plan.length + 20000 > room)
		plan.length = 0;
	x->is_head = !plan.has_body && random_chance(r, o->head);
	x->closes = random_chance(r, o->close);
	x->expects = plan.has_body && plan.length && random_chance(r, o->expect);
	x->ambiguous = random_chance(r, o->ambiguous);
	plan.bad_chunks = x->ambiguous && plan.chunked && random_chance(r, 700);
	return plan;
}

/* All lines but the one that is bad and the empty one. */
static uint8_t *client_put_lines(const struct world *w, const struct plan *plan, struct random *r, uint8_t *at)
{
	const struct client *c = &w->client;
	const struct exchange *x = &w->exchange[c->made];
	const char *method = x->is_head ? "HEAD" : plan->has_body ? "POST" : "GET";

	at += sprintf((char *)at, "%s /r/%u HTTP/1.1\r\nHost: player\r\n", method, c->made);
	at += http_put_filler(at, r, w->config.client.filler_most);
	if (x->closes)
		at += sprintf((char *)at, "Connection: close\r\n");
	if (x->expects)
		at += sprintf((char *)at, "Expect: 100-continue\r\n");
	if (plan->chunked)
		at += sprintf((char *)at, "Transfer-Encoding: chunked\r\n");
	else if (plan->has_body)
		at += sprintf((char *)at, "Content-Length: %llu\r\n", (unsigned long long)plan->length);
	return at;
}

static void client_compose(struct world *w)
{
	struct random *r = &w->net.random;
	struct client *c = &w->client;
	struct exchange *x = &w->exchange[c->made];
	uint8_t *text = w->tcp[CLIENT].out + c->composed, *at;
	uint64_t bad_at = 0;
	struct plan plan;

	*x = (struct exchange){ .start = c->composed };
	plan = client_plan(&w->config.client, r, STREAM_ROOM - c->composed, x);
	at = client_put_lines(w, &plan, r, text);
	if (x->ambiguous && !plan.bad_chunks) {
		x->bad_at = at - text;
		at += http_put_bad_line(at, r, &bad_at);
	}
	at += sprintf((char *)at, "\r\n");
	x->head_length = at - text;
	if (plan.bad_chunks) {
		x->bad_at = at - text;
		at += http_put_bad_chunks(at, r, plan.length, &bad_at);
	} else if (plan.has_body) {
		at += http_put_body(at, r, plan.length, plan.chunked);
	}
	x->bad_at += bad_at;
	x->length = at - text;
	c->composed += x->length;
	c->made++;
	c->continued = false;
}

/* How far the client may write now. */
static uint64_t client_limit(const struct world *w)
{
	const struct client *c = &w->client;
	const struct exchange *x = c->made ? &w->exchange[c->made - 1] : NULL;

	return x && x->expects && !x->answered && !c->continued ? x->start + x->head_length : c->composed;
}

static void client_leave(struct world *w, enum farewell how)
{
	struct tcp *t = &w->tcp[CLIENT];

	w->client.leaving = true;
	w->client.timer = NEVER;
	w->client.early |= w->client.answered < w->config.client.exchanges;
	if (how == FAREWELL_ABORT)
		tcp_abort(t);
	else if (how == FAREWELL_CLOSE)
		tcp_close(t);
	else if (how == FAREWELL_SHUTDOWN)
		tcp_shutdown(t);
}

static void client_write(struct world *w)
{
	const struct client_options *o = &w->config.client;
	struct tcp *t = &w->tcp[CLIENT];
	struct random *r = &w->net.random;
	struct client *c = &w->client;

	while (!c->leaving && w->net.now >= (c->timer == NEVER ? 0 : c->timer)) {
		uint64_t limit, n;

		c->timer = NEVER;
		if (t->written == c->composed) {
			if (c->made == o->exchanges || c->made - c->answered >= o->depth)
				return;
			if (c->made && w->exchange[c->made - 1].closes)
				return;
			client_compose(w);
			if (o->think_ns && random_chance(r, 400)) {
				c->timer = w->net.now + random_below(r, o->think_ns) + 1;
				continue;
			}
		}
		limit = client_limit(w);
		if (limit == t->written) {
			/* It goes on without the 100 after a while. */
			c->timer = w->net.now + CONTINUE_WAIT;
			c->continued = true;
			return;
		}
		n = limit - t->written;
		if (o->write_most && n > o->write_most)
			n = random_between(r, 1, o->write_most);
		tcp_write(t, n, o->last_with_fin && c->made == o->exchanges && t->written + n == c->composed);
		if (o->pause_ns && random_chance(r, 500))
			c->timer = w->net.now + random_below(r, o->pause_ns) + 1;
	}
}

/* Is this the beginning of the answer: the server's, or the one that weir gave, behind interim ones of the server's? */
static bool client_expects(const struct world *w, const struct exchange *x, const uint8_t *got, uint64_t n)
{
	const uint8_t *served = w->tcp[SERVER].out + x->response_start;
	/* An answer that the server has not made whole has no length yet. */
	uint64_t most = !x->served ? 0 : x->refusal ? x->refusal_after : w->server.composed - x->response_start;
	uint64_t part = n < most ? n : most;

	if (memcmp(got, served, part))
		return false;
	return n == part || (x->refusal && n - part <= x->refusal_length && !memcmp(got + part, x->refusal, n - part));
}

/* The connection is over: what is left of the server's stream must be the beginning of the next answer. */
void client_check_rest(struct world *w)
{
	const struct tcp *t = &w->tcp[CLIENT];
	const struct exchange *x = &w->exchange[w->client.answered];
	uint64_t n = t->received ? t->received - tcp_fin_received(t) - 1 - w->client.at : 0;

	if (n && (w->client.answered == w->client.made || !client_expects(w, x, t->in + w->client.at, n)))
		world_fail(w, "client: what comes last is not from the answer to request %u", w->client.answered);
}

static void client_check_answer(struct world *w, struct exchange *x, uint64_t end)
{
	uint64_t length = end - w->client.at;
	uint64_t whole = x->refusal ? x->refusal_after + x->refusal_length : x->response_length;

	if (length != whole || !client_expects(w, x, w->tcp[CLIENT].in + w->client.at, length))
		world_fail(w, "client: the answer to request %u is not %s", w->client.answered,
			   x->refusal ? "weir's" : "the server's");
}

/* One whole head, with its body when it is final. False when there is none yet. */
static bool client_take_message(struct world *w)
{
	struct client *c = &w->client;
	const struct tcp *t = &w->tcp[CLIENT];
	struct exchange *x = &w->exchange[c->answered];
	const uint8_t *p = t->in + c->interim;
	uint64_t n = t->read - 1 - c->interim;
	struct http_head head;
	ssize_t length;

	if (!n)
		return false;
	if (c->answered == c->made) {
		world_fail(w, "client: an answer that nobody asked for");
		return false;
	}
	length = http_head(p, n, &head);
	if (length < 0 || (length && (head.status < 100 || head.status > 599)))
		world_fail(w, "client: no answer where one should begin");
	if (length <= 0)
		return false;
	if (head.status < 200) {
		c->interim += length;
		c->continued |= head.status == 100;
		c->timer = c->timer == NEVER ? NEVER : w->net.now;
		return true;
	}
	if (!x->is_head && head.status != 204) {
		ssize_t body = http_body(p + length, n - length, &head);

		if (body == -2)
			world_fail(w, "client: a broken body");
		if (body < 0)
			return false;
		length += body;
	}
	c->interim += length;
	client_check_answer(w, x, c->interim);
	c->at = c->interim;
	x->answered = true;
	c->answered++;
	if (head.closes || (t->written < x->start + x->length && w->config.client.gives_up_body))
		client_leave(w, FAREWELL_CLOSE);
	else if (c->timer != NEVER && t->written != c->composed)
		c->timer = w->net.now;
	return true;
}

void client_step(struct world *w)
{
	const struct client_options *o = &w->config.client;
	struct tcp *t = &w->tcp[CLIENT];
	struct client *c = &w->client;

	if (t->state == TCP_SYN_SENT || c->ended)
		return;
	tcp_read(t, STREAM_ROOM);
	while (!w->failed && client_take_message(w))
		;
	if (t->state != TCP_OPEN) {
		c->ended = true;
		c->timer = NEVER;
		return;
	}
	if (tcp_at_eof(t) && !c->notices_at)
		c->notices_at = w->net.now + o->notice_ns;
	if (c->notices_at && w->net.now >= c->notices_at) {
		client_leave(w, FAREWELL_CLOSE);
		c->ended = true;
		return;
	}
	if (w->net.now >= o->abort_ns && !c->leaving)
		client_leave(w, FAREWELL_ABORT);
	if (w->net.now >= o->shutdown_ns && !c->leaving)
		client_leave(w, FAREWELL_SHUTDOWN);
	client_write(w);
	if (!c->leaving && c->answered == c->made && t->written == c->composed && c->timer == NEVER &&
	    (c->made == o->exchanges || (c->made && w->exchange[c->made - 1].closes)))
		client_leave(w, o->farewell);
}
