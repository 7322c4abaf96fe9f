/* SPDX-License-Identifier: GPL-2.0 */
#include <stdio.h>

#include "world.h"

void server_reset(struct world *w)
{
	w->server = (struct server){ .timer = NEVER, .read_at = NEVER, .idle_at = NEVER };
}

static uint8_t *server_end(struct world *w)
{
	return w->tcp[SERVER].out + w->server.composed;
}

static void server_begin_answer(struct world *w, struct exchange *x)
{
	if (x->served)
		return;
	x->served = true;
	x->response_start = w->server.composed;
}

static void server_interim(struct world *w, struct exchange *x, const char *text)
{
	server_begin_answer(w, x);
	w->server.composed += sprintf((char *)server_end(w), "HTTP/1.1 %s\r\n\r\n", text);
}

static void server_answer(struct world *w, struct exchange *x)
{
	const struct server_options *o = &w->config.server;
	struct random *r = &w->net.random;
	struct server *s = &w->server;
	bool empty = random_chance(r, o->empty), chunked = !empty && random_chance(r, o->chunked);
	uint64_t room = STREAM_ROOM - s->composed, length = random_below(r, o->body_most + 1);
	uint8_t *text, *at;

	server_begin_answer(w, x);
	if (random_chance(r, o->interim))
		server_interim(w, x, random_chance(r, 500) ? "103 Early Hints\r\nLink: </a>" : "102 Processing");
	text = at = server_end(w);
	if (random_chance(r, 600))
		length /= 20;
	if (length + 20000 > room)
		length = 0;
	s->closing |= x->closes || random_chance(r, o->close);
	at += sprintf((char *)at, "HTTP/1.1 %s\r\n", empty ? "204 No Content" : "200 OK");
	at += http_put_filler(at, r, o->filler_most);
	if (s->closing)
		at += sprintf((char *)at, "Connection: close\r\n");
	if (chunked)
		at += sprintf((char *)at, "Transfer-Encoding: chunked\r\n");
	else if (!empty)
		at += sprintf((char *)at, "Content-Length: %llu\r\n", (unsigned long long)length);
	at += sprintf((char *)at, "X-Id: %u\r\n\r\n", (unsigned int)(x - w->exchange));
	if (!empty && !x->is_head)
		at += http_put_body(at, r, length, chunked);
	s->composed += at - text;
	x->response_length = s->composed - x->response_start;
	s->answered = true;
}

/* The request whose head is at p, or NULL when it is not one that may come here and now. */
static struct exchange *server_find(struct world *w, const uint8_t *p, uint64_t n, const struct http_head *head)
{
	struct exchange *x = &w->exchange[head->id];

	if (head->id >= w->client.made || head->id < w->server.next) {
		world_fail(w, "server: request %u is not due", head->id);
		return NULL;
	}
	if (x->shed) {
		world_fail(w, "server: request %u was shed", head->id);
		return NULL;
	}
	if (x->ambiguous && n > x->bad_at) {
		if (!w->box.gap)
			world_fail(w, "server: request %u is ambiguous", head->id);
		w->server.closed = true;
		tcp_abort(&w->tcp[SERVER]);
		return NULL;
	}
	if (head->length != x->head_length || memcmp(p, w->tcp[CLIENT].out + x->start, head->length)) {
		world_fail(w, "server: the head of request %u has changed", head->id);
		return NULL;
	}
	for (unsigned int id = w->server.next; id < head->id; id++) {
		if (!w->exchange[id].shed)
			world_fail(w, "server: request %u is missing", id);
	}
	return x;
}

static void server_wait(struct world *w)
{
	w->server.timer = w->net.now + random_below(&w->net.random, w->config.server.delay_ns + 1);
}

static void server_begin_request(struct world *w, struct exchange *x)
{
	struct server *s = &w->server;

	if (s->continued)
		return;
	s->continued = true;
	if (random_chance(&w->net.random, w->config.server.early)) {
		s->answering = true;
		server_wait(w);
	} else if (x->expects && random_chance(&w->net.random, 800)) {
		server_interim(w, x, "100 Continue");
	}
}

/* Looks at the request being read. True when one is done with, and the next may be looked at. */
static bool server_take_request(struct world *w)
{
	struct tcp *t = &w->tcp[SERVER];
	struct server *s = &w->server;
	const uint8_t *p = t->in + s->at;
	uint64_t n = t->read - 1 - s->at;
	struct http_head head;
	struct exchange *x;
	ssize_t length, body;

	if (!n || s->closing)
		return false;
	length = http_head(p, n, &head);
	if (length < 0)
		world_fail(w, "server: no request where one should begin");
	if (length <= 0)
		return false;
	x = server_find(w, p, n, &head);
	if (!x)
		return false;
	server_begin_request(w, x);
	body = http_body(p + length, n - length, &head);
	if (body >= 0 &&
	    ((uint64_t)(length + body) != x->length || memcmp(p, w->tcp[CLIENT].out + x->start, x->length)))
		world_fail(w, "server: the body of request %u has changed", head.id);
	if (body == -2 && !w->box.gap)
		world_fail(w, "server: the body of request %u is broken", head.id);
	if (body >= 0 && !s->answering) {
		s->answering = true;
		server_wait(w);
	}
	if (s->answering && !s->answered && w->net.now >= s->timer)
		server_answer(w, x);
	if (body < 0 || !s->answered)
		return false;
	s->at += x->length;
	s->next = head.id + 1;
	s->continued = s->answering = s->answered = false;
	return true;
}

/* A request that is shed with a close may leave the first part of its head here; no other shed one leaves anything. */
static bool server_must_not_have(const struct world *w, const struct exchange *x, const uint8_t *p, uint64_t n)
{
	if (!x->shed)
		return false;
	return !x->shed_closes || n >= x->length || memcmp(p, w->tcp[CLIENT].out + x->start, n);
}

void server_check_rest(struct world *w)
{
	struct tcp *t = &w->tcp[SERVER];
	struct server *s = &w->server;
	const uint8_t *p = t->in + s->at;
	uint64_t n = t->received ? t->received - tcp_fin_received(t) - 1 - s->at : 0;
	const struct exchange *x;
	unsigned int id = s->next;

	while (n) {
		while (id < w->client.made && server_must_not_have(w, &w->exchange[id], p, n))
			id++;
		x = &w->exchange[id];
		if (id == w->client.made || memcmp(p, w->tcp[CLIENT].out + x->start, n < x->length ? n : x->length)) {
			world_fail(w, "server: what comes last is not from request %u", id);
			return;
		}
		if (x->ambiguous && n > x->bad_at && !s->closed && !w->box.gap)
			world_fail(w, "server: what comes last is ambiguous");
		if (n <= x->length)
			return;
		p += x->length;
		n -= x->length;
		id++;
	}
}

static void server_read(struct world *w)
{
	const struct server_options *o = &w->config.server;
	struct tcp *t = &w->tcp[SERVER];
	struct server *s = &w->server;
	uint64_t before = t->read;

	if (s->closed)
		return;
	if (!o->read_most) {
		tcp_read(t, STREAM_ROOM);
	} else if (s->read_at == NEVER || w->net.now >= s->read_at) {
		tcp_read(t, random_between(&w->net.random, 1, o->read_most));
		s->read_at = NEVER;
		if (t->read < t->received - tcp_fin_received(t))
			s->read_at = w->net.now + random_below(&w->net.random, o->read_pause_ns) + 1;
	}
	if (t->read != before || s->idle_at == NEVER)
		s->idle_at = w->net.now + o->idle_ns;
}

static void server_write(struct world *w)
{
	const struct server_options *o = &w->config.server;
	struct tcp *t = &w->tcp[SERVER];
	struct random *r = &w->net.random;
	struct server *s = &w->server;

	while (t->written < s->composed) {
		uint64_t n = s->composed - t->written;

		if (s->timer != NEVER && w->net.now < s->timer)
			return;
		if (o->write_most && n > o->write_most)
			n = random_between(r, 1, o->write_most);
		s->timer = NEVER;
		tcp_write(t, n, false);
		s->idle_at = w->net.now + o->idle_ns;
		if (o->pause_ns && random_chance(r, 500))
			s->timer = w->net.now + random_below(r, o->pause_ns) + 1;
	}
	if (!s->answering || s->answered)
		s->timer = NEVER;
}

/* A lenient server would serve what weir has not decided. Where weir does not follow, it decides nothing. */
static void server_check_head(struct world *w)
{
	const struct tcp *t = &w->tcp[SERVER];
	uint64_t n = t->read - 1 - w->server.at;
	struct http_head head;

	if (tcp_at_eof(t) && n && !http_head(t->in + w->server.at, n, &head) && w->box.open &&
	    w->box.conn.phase == WEIR_PHASE_FOLLOWED && !w->box.gap)
		world_fail(w, "server: a head ends with the connection");
}

static void server_close(struct world *w)
{
	struct tcp *t = &w->tcp[SERVER];

	server_check_head(w);
	w->server.closed = true;
	w->server.timer = w->server.idle_at = w->server.read_at = NEVER;
	if (w->config.server.half_close)
		tcp_shutdown(t);
	else
		tcp_close(t);
}

void server_step(struct world *w)
{
	struct tcp *t = &w->tcp[SERVER];
	struct server *s = &w->server;

	if (t->state != TCP_OPEN) {
		if (t->state == TCP_CLOSED || t->state == TCP_TIME_WAIT)
			s->timer = s->read_at = s->idle_at = NEVER;
		return;
	}
	if (s->closed) {
		if (w->config.server.half_close) {
			tcp_read(t, STREAM_ROOM);
			if (tcp_at_eof(t))
				tcp_close(t);
		}
		return;
	}
	server_read(w);
	while (!w->failed && server_take_request(w))
		;
	server_write(w);
	if (w->net.now >= w->config.server.abort_ns) {
		s->closed = true;
		s->timer = s->idle_at = s->read_at = NEVER;
		tcp_abort(t);
		return;
	}
	if (t->written < s->composed || (s->answering && !s->answered)) {
		s->idle_at = w->net.now + w->config.server.idle_ns;
		return;
	}
	if (s->closing || tcp_at_eof(t) || w->net.now >= s->idle_at)
		server_close(w);
}
