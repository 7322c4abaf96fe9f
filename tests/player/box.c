/* SPDX-License-Identifier: GPL-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "../digest_keys.h"
#include "../passing_check.h"
#include "world.h"

void box_reset(struct world *w)
{
	struct box *b = &w->box;

	b->open = b->server_busy = b->gap = false;
	b->waits = b->sheds = b->rejects = b->closes = b->cut_short = b->followed = b->texts = 0;
	b->asks = b->retaken = b->contradicted = b->heads_cut = b->early = 0;
	for (int i = 0; i < BOX_JOBS; i++)
		b->job[i].busy = false;
	memset(&b->conn, 0, sizeof(b->conn));
}

static int box_make_text(uint8_t *to, const struct weir_answer_choice *choice)
{
	char body[128];
	int length = snprintf(body, sizeof(body), "{\"code\":429,\"retryAfterSeconds\":%u}\n", choice->retry_s);

	if (choice->rejected)
		return snprintf((char *)to, BOX_TEXT,
				"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 4\r\n\r\n%s",
				choice->head ? "" : "400\n");
	return snprintf((char *)to, BOX_TEXT,
			"HTTP/1.1 429 Too Many Requests\r\nRetry-After: %u\r\n%sContent-Length: %d\r\n\r\n%s",
			choice->retry_s, choice->kind == WEIR_ANSWER_CLOSE ? "Connection: close\r\n" : "", length,
			choice->head ? "" : body);
}

/* The text of a choice, made once for all packets that carry it. */
static unsigned int box_text(struct world *w, const struct weir_answer_choice *choice)
{
	struct box *b = &w->box;

	for (unsigned int i = b->texts; i--;) {
		if (!memcmp(&b->choice[i], choice, sizeof(*choice)))
			return i;
	}
	if (b->texts == BOX_TEXTS)
		abort();
	b->choice[b->texts] = *choice;
	b->text_length[b->texts] = box_make_text(b->text[b->texts], choice);
	return b->texts++;
}

/* What a look does not fill holds what another packet left there. */
static struct weir_view box_look(struct world *w, const struct packet *p, enum weir_action action)
{
	struct weir_view view;

	memset(&view, 0xa5, sizeof(view));
	weir_conn_look(&w->box.conn, &p->g, action, &view);
	return view;
}

/* Was the packet left as it came, as long as nothing was shed? */
static void box_check_untouched(struct world *w, const struct weir_view *view, const struct packet *before,
				const struct packet *p)
{
	if (!view->splice.cuts && memcmp(&before->g, &p->g, sizeof(p->g)))
		world_fail(w, "weir: a packet was changed before anything was shed");
}

static void box_reply(struct world *w, const struct packet *p, enum weir_action action, const struct weir_view *view)
{
	const struct tcp *client = &w->tcp[CLIENT];
	struct packet reply = { 0 };
	unsigned int text;

	weir_view_reply(view, &p->g, action, &reply.g);
	if (reply.g.len) {
		text = box_text(w, &view->answer);
		reply.data = w->box.text[text];
		if (reply.g.len != w->box.text_length[text])
			world_fail(w, "weir: an answer of %u bytes in place of %zu", reply.g.len,
				   w->box.text_length[text]);
	}
	if (reply.g.window != w->box.window)
		world_fail(w, "weir: a window of %u where the server's is %u", reply.g.window, w->box.window);
	/* Where weir has joined and heard nothing of the server yet, an answer may be too old, and is made again. */
	if (view->splice.has_ts && (__s32)(reply.g.tsval - client->ts_recent) < 0)
		world_fail(w, "weir: a reply whose time stamp the client has seen pass");
	if (action == WEIR_ANSWER && !reply.g.len && !view->closed)
		world_fail(w, "weir: an empty answer");
	world_send(w, HOP_WEIR_CLIENT, &reply);
}

/* The server's window is shut: it gets none of the packet's bytes, and is asked for its window. */
static void box_probe(struct world *w, const struct packet *p)
{
	struct weir_view view = box_look(w, p, WEIR_PROBE);
	const struct tcp *t = &w->tcp[SERVER];
	struct packet out = *p;

	out.data = NULL;
	out.g.len = 0;
	out.g.flags &= ~WEIR_TCP_FIN;
	weir_splice_to_server(&view.splice, &out.g);
	out.g.seq = t->irs + t->received - 1;
	world_send(w, HOP_WEIR_SERVER, &out);
}

/* What becomes of a client's packet. */
static void box_act(struct world *w, enum weir_action action, const struct packet *p)
{
	struct weir_view view;
	struct packet out = *p;

	view = box_look(w, p, action);
	if (action == WEIR_DROP)
		return;
	if (action == WEIR_PASS) {
		weir_splice_to_server(&view.splice, &out.g);
		box_check_untouched(w, &view, p, &out);
		world_send(w, HOP_WEIR_SERVER, &out);
		return;
	}
	box_reply(w, p, action, &view);
	w->box.closes += action == WEIR_CLOSE;
	if (action != WEIR_CLOSE && !view.news)
		return;
	weir_view_forward(&view, &p->g, action, &out.g);
	out.data = NULL;
	world_send(w, HOP_WEIR_SERVER, &out);
}

/* The request's number. A client's payload stands in its stream, so that a head's start can be read from its end. */
static unsigned int box_read_id(const struct packet *p, const struct weir_request_reader *r, __u32 head_end)
{
	const char *path = strstr((const char *)p->data + (__s32)(head_end - r->request.head_length - p->g.seq),
				  " /r/");

	return path ? strtoul(path + 4, NULL, 10) : EXCHANGES_MAX;
}

/* What becomes of the request whose head has just ended. */
static void box_decide(struct world *w, struct box_job *j, __u32 head_end)
{
	const struct box_options *o = &w->config.box;
	struct weir_request_reader *r = &j->request;
	enum weir_reason why_not = r->heads ? WEIR_PIPELINED : r->why_not;

	j->id = box_read_id(&j->packet, r, head_end);
	if (r->again) {
		weir_request_reader_passed(r);
		return;
	}
	if (weir_request_reader_full(r))
		r->held = 1;
	else if (why_not == WEIR_REASON_NONE)
		r->shed = random_chance(&w->net.random, o->shed) || (j->id < 64 && o->shed_mask >> j->id & 1);
	else
		r->held = random_chance(&w->net.random, why_not == WEIR_SPLIT_HEAD ? o->hold / 2 : o->hold);
	if (!r->shed && !r->held)
		weir_request_reader_passed(r);
}

static void box_choose(struct world *w, const struct packet *p, struct weir_request_reader *r)
{
	static const uint16_t top[] = { 9, 99, 999, 9999 };
	__u32 end = p->g.seq + p->g.len;
	__u32 body = seq_after(r->next, end) ? r->next - end : 0;
	bool unending = !weir_request_ended(&r->request) &&
			(weir_request_skippable(&r->request) || r->request.flags & WEIR_REQUEST_CHUNKED);
	bool closes = r->answer.rejected || r->request.flags & WEIR_REQUEST_LAST || unending || r->must_close ||
		      seq_before(r->next, end) || body > w->config.box.swallow_max;
	uint8_t scratch[BOX_TEXT];

	r->answer = (struct weir_answer_choice){
		.retry_s = 1 + random_below(&w->net.random, top[random_below(&w->net.random, 4)]),
		.kind = closes ? WEIR_ANSWER_CLOSE : WEIR_ANSWER_KEEP,
		.head = r->request.method == WEIR_METHOD_HEAD,
		.rejected = r->answer.rejected,
	};
	r->answer.length = r->begun ? 0 : box_make_text(scratch, &r->answer);
}

/* The request of which this is a byte; EXCHANGES_MAX: none. */
static unsigned int box_find_id(const struct world *w, __u32 seq)
{
	uint64_t at = (__u32)(seq - w->tcp[CLIENT].iss - 1);

	for (unsigned int id = 0; id < w->client.made; id++) {
		if (at - w->exchange[id].start < w->exchange[id].length)
			return id;
	}
	return EXCHANGES_MAX;
}

static void box_reject(const struct world *w, struct box_job *j)
{
	struct weir_request_reader *r = &j->request;

	if (!weir_request_reader_may_reject(r))
		return;
	weir_request_reader_unpass(r);
	weir_request_reader_reject(r);
	j->id = box_find_id(w, r->next - 1);
}

static void box_feed_client(struct world *w, struct box_job *j)
{
	static const struct weir_reading reading = { .seed = { 1, 2 } };
	struct weir_request_reader *r = &j->request;
	const struct packet *p = &j->packet;
	__u32 end = p->g.seq + p->g.len;

	while (seq_before(r->next, end)) {
		const uint8_t *next = p->data + (r->next - p->g.seq);
		__u32 behind = r->next + 1;
		enum weir_frame_event event;

		if (weir_request_reader_take(r, weir_run_word(next, end - r->next)))
			continue;
		event = weir_request_reader_feed(r, &reading, &digest_keys, *next);
		if (event == WEIR_FRAME_LOST)
			break;
		if (event == WEIR_FRAME_HEAD && !r->shed)
			box_decide(w, j, behind);
		if (r->held || r->lost != WEIR_REASON_NONE || (r->shed && weir_request_ended(&r->request)))
			break;
	}
	weir_request_reader_digest(r, &digest_keys);
	weir_request_reader_end(r, &p->g);
	if (r->lost != WEIR_REASON_NONE)
		box_reject(w, j);
	if (r->shed)
		box_choose(w, p, r);
}

static void box_note_shed(struct world *w, const struct box_job *j)
{
	struct exchange *x = &w->exchange[j->id];
	unsigned int text = box_text(w, &j->request.answer);

	if (j->id >= w->client.made || x->shed || x->served) {
		world_fail(w, "weir: request %u is shed and was not to be", j->id);
		return;
	}
	x->shed = true;
	x->shed_closes = j->request.answer.kind == WEIR_ANSWER_CLOSE;
	x->refusal = w->box.text[text];
	x->refusal_length = w->box.text_length[text];
	w->box.sheds++;
}

static void box_note_reject(struct world *w, const struct box_job *j)
{
	struct exchange *x = &w->exchange[j->id];
	unsigned int text = box_text(w, &j->request.answer);
	bool cut = j->request.answer.rejected == WEIR_HEAD_CUT;

	w->box.heads_cut += cut;
	if (j->id >= w->client.made || !(x->ambiguous || cut) || x->shed || x->rejected) {
		world_fail(w, "weir: request %u is rejected and was not to be", j->id);
		return;
	}
	w->box.rejects++;
	x->rejected = true;
	if (j->request.begun)
		return;
	x->refusal = w->box.text[text];
	x->refusal_length = w->box.text_length[text];
	if (x->served)
		x->refusal_after = (__u32)(w->box.conn.splice.server_end - w->tcp[SERVER].iss - 1) - x->response_start;
}

/* Passes what comes before `until`, if the packet can be cut there. */
static void box_cut(struct world *w, const struct packet *p, __u32 until)
{
	struct packet before = *p;

	before.g.len = until - p->g.seq;
	before.g.flags &= ~WEIR_TCP_FIN;
	w->box.cut_short++;
	if (!random_chance(&w->net.random, w->config.box.blunt))
		box_act(w, WEIR_PASS, &before);
}

static void box_note(struct world *w, enum weir_reason why)
{
	w->box.retaken += why == WEIR_RETAKEN;
	w->box.contradicted += why == WEIR_CONTRADICTED;
	w->box.early += why == WEIR_ANSWERED_EARLY;
	w->box.gap |= why == WEIR_CONTRADICTED || why == WEIR_ANSWERED_EARLY;
}

static void box_commit_client(struct world *w, struct box_job *j)
{
	enum weir_reason why = WEIR_REASON_NONE;
	enum weir_action action = kept_commit_client(&w->box.conn, &w->box.busy, &j->packet.g, &j->request, &why);

	j->busy = false;
	if (j->request.shed && action != WEIR_DROP) {
		if (j->request.answer.rejected)
			box_note_reject(w, j);
		else
			box_note_shed(w, j);
	}
	world_note(w, "commit", action, why);
	box_note(w, why);
	if (action == WEIR_CUT) {
		box_cut(w, &j->packet, j->request.start);
		return;
	}
	box_act(w, action, &j->packet);
}

static void box_feed_server(struct box_job *j)
{
	struct weir_response_reader *r = &j->response;
	const struct packet *p = &j->packet;

	__u32 end = p->g.seq + p->g.len;

	while (r->lost == WEIR_REASON_NONE && seq_before(r->next, end)) {
		const uint8_t *next = p->data + (r->next - p->g.seq);

		if (!weir_response_reader_take(r, weir_run_word(next, end - r->next)))
			weir_response_reader_feed(r, *next);
	}
}

/* A SACK block is as long as it was, unless it lies on both sides of the cut's place, and on its side of the ack. */
static void box_check_sacks(struct world *w, const struct weir_view *view, const struct packet *before,
			    const struct packet *p)
{
	__u32 place = weir_splice_cut_at(&view->splice);

	for (int i = 0; i < p->g.sacks; i++) {
		__u32 start = before->g.sack[i].start, end = before->g.sack[i].end;

		if (seq_before(before->g.ack, start) && !seq_before(p->g.ack, p->g.sack[i].start))
			world_fail(w, "weir: a SACK block from beyond the acknowledgement lies before it");
		if (p->g.sack[i].end - p->g.sack[i].start != end - start &&
		    !(seq_before(start, place) && seq_before(place, end)))
			world_fail(w, "weir: a SACK block of %u bytes became one of %u", end - start,
				   p->g.sack[i].end - p->g.sack[i].start);
	}
}

static void box_pass_to_client(struct world *w, const struct packet *p)
{
	struct weir_view view;
	struct packet out = *p;
	__u32 place;

	view = box_look(w, p, WEIR_PASS);
	place = weir_splice_answer_at(&view.splice);
	out.joined = view.splice.cuts && view.splice.answer_length && seq_before(p->g.seq, place) &&
		     seq_after(p->g.seq + p->g.len + !!(p->g.flags & WEIR_TCP_FIN), place);
	weir_splice_to_client(&view.splice, &out.g);
	box_check_untouched(w, &view, p, &out);
	if (view.splice.cuts)
		box_check_sacks(w, &view, p, &out);
	world_send(w, HOP_WEIR_CLIENT, &out);
}

static void box_commit_server(struct world *w, struct box_job *j)
{
	enum weir_reason why = WEIR_REASON_NONE;

	j->busy = w->box.server_busy = false;
	kept_commit_server(&w->box.conn, &w->box.busy, &j->response, &why);
	box_note(w, why);
	world_note(w, "commit", WEIR_PASS, why);
	box_pass_to_client(w, &j->packet);
	while (w->box.waits && !w->box.server_busy) {
		struct packet p = w->box.waiting[0];

		w->box.waits--;
		memmove(w->box.waiting, w->box.waiting + 1, w->box.waits * sizeof(p));
		box_from_server(w, &p);
	}
}

void box_commit(struct world *w, unsigned int job)
{
	struct box_job *j = &w->box.job[job];

	if (j->from_server)
		box_commit_server(w, j);
	else
		box_commit_client(w, j);
}

static struct box_job *box_job(struct world *w)
{
	for (unsigned int i = 0; i < BOX_JOBS; i++) {
		if (!w->box.job[i].busy)
			return &w->box.job[i];
	}
	abort();
}

static void box_commit_some_time(struct world *w, struct box_job *j)
{
	const struct box_options *o = &w->config.box;
	unsigned int job = j - w->box.job;
	uint64_t wait = random_below(&w->net.random, o->race_ns + 1);

	j->busy = true;
	if (j->from_server)
		w->box.server_busy = true;
	if (random_chance(&w->net.random, o->race))
		net_schedule(&w->net, w->net.now + wait, EVENT_COMMIT, job, NULL);
	else
		box_commit(w, job);
}

/* Has the server's socket something out of order, or not looked at yet, that was not seen here? */
static bool box_overlooked(const struct world *w)
{
	return w->tcp[SERVER].early.n || net_under_way(&w->net, HOP_WEIR_SERVER);
}

/* A packet of a connection that weir has not seen before: the server's socket says what is known of it. */
static void box_open(struct world *w, const struct weir_segment *g)
{
	const struct tcp *t = &w->tcp[SERVER];
	struct weir_conn *c = &w->box.conn;
	uint64_t room = (t->edge - t->received) >> t->o.scale;
	__u16 window = room > UINT16_MAX ? UINT16_MAX : room;
	bool untouched = t->received == 1 && t->next == 1;

	if (w->box.open || w->net.now < w->config.box.attach_ns || g->flags & WEIR_TCP_RST)
		return;
	if (t->state == TCP_SYN_RECEIVED)
		weir_conn_open(c, 0, WEIR_PHASE_FOLLOWED, t->irs + 1, t->iss + 1, window);
	else if (t->state == TCP_OPEN && !tcp_fin_sent(t) && !tcp_fin_received(t) && !box_overlooked(w))
		weir_conn_open(c, 0, untouched ? WEIR_PHASE_FOLLOWED : WEIR_PHASE_HUNTING, t->irs + t->received,
			       t->iss + t->next, window);
	else
		return;
	c->splice.server_scale = t->o.scale;
	w->box.open = true;
	w->box.window = window;
}

/* What the server's socket says. */
static void box_ask(struct world *w, struct weir_socket *k)
{
	const struct tcp *t = &w->tcp[SERVER];

	w->box.asks++;
	*k = (struct weir_socket){ .asked = 1, .gone = t->state == TCP_CLOSED || t->state == TCP_LISTEN };
	if (t->state != TCP_OPEN && t->state != TCP_SYN_RECEIVED)
		return;
	*k = (struct weir_socket){
		.next = t->irs + t->received,
		.edge = t->irs + t->edge,
		.sent = t->iss + t->next,
		.acked = t->iss + t->una,
		.ack_slack = 1U << 30,
		.reach = 1U << 30,
		.ts_recent = t->o.timestamps ? t->ts_recent : 0,
		.asked = 1,
		.known = 1,
		.early = !!t->early.n,
	};
}

static enum weir_action box_begin(struct world *w, const struct packet *p, struct box_job *j, enum weir_reason *why)
{
	struct weir_socket socket = { 0 };
	enum weir_action action;
	bool passed;

	w->box.conn.last_ns = w->net.now;
	action = checked_begin_client(&w->box.conn, &w->box.busy, &socket, &p->g, &j->request, why, &passed);
	if (action != WEIR_ASK)
		return action;
	world_note(w, "begin", action, *why);
	box_ask(w, &socket);
	return weir_conn_begin_client(&w->box.conn, busy_there(&w->box.conn, &w->box.busy), &socket, &p->g, &j->request,
				      why);
}

/* What begins with a packet. Its readers hold what another packet left there, as those of the programs do. */
static void box_take(struct box_job *j, const struct packet *p, bool from_server)
{
	*j = (struct box_job){ .packet = *p, .from_server = from_server };
	memset(&j->request, 0xa5, sizeof(j->request));
	memset(&j->response, 0xa5, sizeof(j->response));
}

void box_from_client(struct world *w, const struct packet *p)
{
	struct box_job *j = box_job(w);
	enum weir_reason why = WEIR_REASON_NONE;
	enum weir_action action;

	if (!(p->g.flags & WEIR_TCP_SYN))
		box_open(w, &p->g);
	if (!w->box.open || p->g.flags & WEIR_TCP_SYN) {
		world_send(w, HOP_WEIR_SERVER, p);
		return;
	}
	box_take(j, p, false);
	action = box_begin(w, p, j, &why);
	world_note(w, "begin", action, why);
	box_note(w, why);
	if (action == WEIR_CUT) {
		box_cut(w, p, j->request.start);
		return;
	}
	if (action == WEIR_PROBE) {
		box_probe(w, p);
		return;
	}
	if (action != WEIR_FRAME) {
		box_act(w, action, p);
		return;
	}
	w->box.followed |= w->box.conn.phase == WEIR_PHASE_FOLLOWED;
	box_feed_client(w, j);
	box_commit_some_time(w, j);
}

void box_from_server(struct world *w, const struct packet *p)
{
	struct box_job *j = box_job(w);
	enum weir_reason why = WEIR_REASON_NONE;
	enum weir_action action;
	bool passed;

	if (w->box.server_busy) {
		if (w->box.waits < BOX_JOBS)
			w->box.waiting[w->box.waits++] = *p;
		else
			w->box.gap = true;
		return;
	}
	if (!w->box.open || p->g.flags & WEIR_TCP_SYN) {
		world_send(w, HOP_WEIR_CLIENT, p);
		return;
	}
	box_take(j, p, true);
	if (!(p->g.flags & WEIR_TCP_RST) && w->box.conn.phase != WEIR_PHASE_CLOSED)
		w->box.window = p->g.window;
	action = checked_begin_server(&w->box.conn, &w->box.busy, &p->g, &j->response, &why, &passed);
	world_note(w, "begin", action, why);
	if (action == WEIR_PASS)
		box_pass_to_client(w, p);
	if (action != WEIR_FRAME)
		return;
	box_feed_server(j);
	box_commit_some_time(w, j);
}
