/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A client that lies: segments of several streams that differ, in any order, repeated, overlapping, some of which its
 * server never gets, gets late, or drops. Whatever it does, each request that the server reads is one that was read here:
 * it ends at the same place and says the same. Only what lies behind the point from which the connection is opaque is
 * the hold's business (hold.h).
 *
 * Where connections begin with a PROXY protocol preamble, it is the server's that was read here, too.
 *
 * It may reset its connection and set up another one by the same SYN cookie, whose numbers may be greater: what is known of
 * the old one is forgotten then (bpf/sockops.h), and what was on its way of the old one comes to the new one.
 *
 * The input is a list of steps of STEP bytes; struct step says what they mean. An odd rest: there are preambles.
 */
#include "weir/conn/hold.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "../digest_keys.h"
#include "../passing_check.h"
#include "segments_stories.h"

#define STEP 6
#define SEGMENT 1024
#define TOLD 1024 /* requests that were read, at most */
#define LATE 16
#define CLIENT_ISN scene.client_isn
#define SERVER_ISN scene.server_isn
#define WINDOW 16384
#define SLACK 200
#define ANSWER 100
#define MS 1000000ULL

static const struct weir_reading reading = { .seed = { 1, 2 } };
static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

enum fate {
	FATE_ARRIVES,
	FATE_LOST,	/* between weir and the server */
	FATE_LATE,	/* on its way for a while */
	FATE_OLD_STAMP, /* the server drops it: its time stamp is old */
	FATE_OLD_ACK,
	FATE_NEW_ACK, /* of what was never sent */
	FATES,
};

/* A segment, and what the server does behind it. */
struct step {
	uint8_t story; /* which stream its bytes are of (% 3), and its fate (/ 3) */
	uint8_t length;
	int8_t from; /* where it begins, relative to what `base` names */
	uint8_t base;
	uint8_t time; /* milliseconds that pass before */
	uint8_t then; /* THEN_* */
};

#define THEN_ACKNOWLEDGE 1
#define THEN_ANSWER 2
#define THEN_REFUSE 4 /* requests of this segment are refused */
#define THEN_RACE 8   /* it is committed behind the next one */
#define THEN_AGAIN 16 /* and instead of the above: the connection begins anew */
#define THEN_OWNED 32 /* the server is at work on its socket, which counts nothing as sent that is not acknowledged */

struct piece {
	struct weir_segment g;
	uint64_t due;
	uint8_t bytes[SEGMENT];
};

struct server {
	uint8_t stream[2 * STREAM]; /* what has come in order */
	uint32_t next, edge;	    /* offsets in the stream */
	uint32_t sent, acked;	    /* offsets in its own */
	uint32_t tsval;
	struct piece early[LATE];
	unsigned int n_early;
	struct weir_preamble preamble;
	struct weir_request request; /* reads what has come */
	uint32_t read, start;	     /* how far, and where the request now read began */
	unsigned int requests, answers;
	bool lost;
};

/* A request that weir has read and let through, at its place in the server's stream. */
struct told {
	uint32_t start, end;
	uint64_t hash;
};

/* A segment between begin and commit. */
struct job {
	bool busy;
	struct piece piece;
	struct weir_request_reader r;
	struct told told[SEGMENT / 16];
	unsigned int n_told;
	uint32_t start; /* of the request now read, client's numbers */
	uint32_t from;	/* what is read of it begins */
};

static struct scene {
	uint32_t client_isn, server_isn;
	struct weir_conn conn;
	struct weir_busy busy;
	bool open;  /* it is in the table */
	bool owned; /* THEN_OWNED */
	bool introduced;
	struct server server;
	struct piece late[LATE];
	unsigned int n_late;
	struct told told[TOLD];
	unsigned int n_told;
	uint8_t seen[2 * STREAM]; /* what was read, by its offset in the server's stream */
	uint32_t start;		  /* of the request now read, client's numbers */
	struct job waiting;
	uint64_t now;
	uint32_t sent; /* of the client's stream */
} scene;

static uint64_t hash(const uint8_t *bytes, size_t n)
{
	uint64_t h = 1;

	while (n--)
		h = (h ^ *bytes++) * 0x9e3779b97f4a7c15ULL;
	return h;
}

static bool opaque_at(uint32_t offset)
{
	const struct weir_conn *c = &scene.conn;

	return scene.open && c->phase == WEIR_PHASE_OPAQUE && !seq_before(CLIENT_ISN + offset, c->hold.next);
}

/* The server has read a request. */
static void check_told(uint32_t start, uint32_t end)
{
	uint64_t h = hash(scene.server.stream + start, end - start);

	for (unsigned int i = scene.n_told; i--;) {
		if (scene.told[i].start == start && scene.told[i].end == end && scene.told[i].hash == h)
			return;
	}
	assert(opaque_at(end));
}

static void server_read_preamble(void)
{
	const struct weir_preamble *here = &scene.conn.preamble;
	struct server *s = &scene.server;
	enum weir_frame_event event = WEIR_FRAME_MORE;

	while (s->read < s->next && event == WEIR_FRAME_MORE)
		event = weir_preamble_byte(&s->preamble, s->stream[s->read++]);
	s->lost = event == WEIR_FRAME_LOST;
	if (event == WEIR_FRAME_MESSAGE)
		assert(opaque_at(s->read) || (here->given && !memcmp(here->address, s->preamble.address, 16)));
}

static void server_read(void)
{
	struct server *s = &scene.server;

	if (weir_preamble_awaited(&s->preamble))
		server_read_preamble();
	if (weir_preamble_awaited(&s->preamble))
		return;
	while (s->read < s->next && !s->lost) {
		if (weir_request_ended(&s->request))
			weir_request_start(&s->request);
		if (weir_request_fresh(&s->request))
			s->start = s->read;
		switch (weir_request_byte(&s->request, &reading, s->stream[s->read++])) {
		case WEIR_FRAME_HEAD:
			s->requests++;
			check_told(s->start, s->read);
			break;
		case WEIR_FRAME_LOST:
			s->lost = true;
			break;
		default:
			break;
		}
	}
}

/* Takes what a piece has beyond what is there. */
static void server_append(const struct piece *p)
{
	struct server *s = &scene.server;
	uint32_t at = p->g.seq - CLIENT_ISN, end = at + p->g.len;

	if (end <= s->next)
		return;
	memcpy(s->stream + s->next, p->bytes + (s->next - at), end - s->next);
	s->next = end;
}

static void server_append_early(void)
{
	struct server *s = &scene.server;

	for (unsigned int i = 0; i < s->n_early;) {
		if (s->early[i].g.seq - CLIENT_ISN > s->next) {
			i++;
			continue;
		}
		server_append(&s->early[i]);
		memmove(s->early + i, s->early + i + 1, (--s->n_early - i) * sizeof(s->early[0]));
		i = 0;
	}
}

static void server_receive(const struct piece *p)
{
	struct server *s = &scene.server;
	const struct weir_segment *g = &p->g;
	uint32_t ack = g->ack - SERVER_ISN, at = g->seq - CLIENT_ISN;

	if ((int32_t)(g->tsval - s->tsval) < -1 || (int32_t)(ack - s->sent) > 0 || (int32_t)(ack - s->acked) < -SLACK)
		return;
	if ((int32_t)at > (int32_t)s->edge || at + g->len > sizeof(s->stream))
		return;
	s->acked = (int32_t)(ack - s->acked) > 0 ? ack : s->acked;
	if ((int32_t)(g->tsval - s->tsval) > 0)
		s->tsval = g->tsval;
	if (at > s->next) {
		if (s->n_early < LATE)
			s->early[s->n_early++] = *p;
		return;
	}
	server_append(p);
	server_append_early();
	server_read();
}

/* A segment of the server's passes weir; the client gets it at once. */
static void server_send(const char *text)
{
	struct server *s = &scene.server;
	struct weir_segment g = {
		.seq = SERVER_ISN + s->sent,
		.ack = CLIENT_ISN + s->next,
		.len = text ? strlen(text) : 0,
		.flags = WEIR_TCP_ACK,
		.window = WINDOW,
	};
	enum weir_reason why = WEIR_REASON_NONE;
	struct weir_response_reader r;
	bool passed;

	s->edge = s->next + WINDOW;
	s->sent += g.len;
	if (!scene.open)
		return;
	if (checked_begin_server(&scene.conn, &scene.busy, &g, &r, &why, &passed) != WEIR_FRAME)
		return;
	while (seq_before(r.next, g.seq + g.len)) {
		if (weir_response_reader_feed(&r, text[r.next - g.seq]) == WEIR_FRAME_LOST)
			break;
	}
	kept_commit_server(&scene.conn, &scene.busy, &r, &why);
}

static void server_step(uint8_t then)
{
	struct server *s = &scene.server;

	if (then & THEN_ACKNOWLEDGE)
		server_send(NULL);
	if (then & THEN_ANSWER && s->answers < s->requests) {
		s->answers++;
		server_send(ok);
	}
}

static void time_passes(uint8_t ms)
{
	scene.now += ms * MS;
	for (unsigned int i = 0; i < scene.n_late;) {
		if (scene.late[i].due > scene.now) {
			i++;
			continue;
		}
		server_receive(&scene.late[i]);
		memmove(scene.late + i, scene.late + i + 1, (--scene.n_late - i) * sizeof(scene.late[0]));
	}
}

/* A segment leaves weir for the server. */
static void send_on(const struct piece *piece, enum fate fate, uint32_t length)
{
	struct weir_view view = { 0 };
	struct piece p = *piece;

	p.g.len = length;
	weir_conn_look(&scene.conn, &p.g, WEIR_PASS, &view);
	weir_splice_to_server(&view.splice, &p.g);
	p.due = scene.now + WEIR_UNDER_WAY_NS - MS;
	if (fate == FATE_LATE && scene.n_late < LATE)
		scene.late[scene.n_late++] = p;
	else if (fate != FATE_LOST)
		server_receive(&p);
}

static void ask(struct weir_socket *k)
{
	const struct server *s = &scene.server;

	*k = (struct weir_socket){
		.next = CLIENT_ISN + s->next,
		.edge = CLIENT_ISN + s->edge,
		.sent = SERVER_ISN + (scene.owned ? s->acked : s->sent),
		.owned = scene.owned,
		.acked = SERVER_ISN + s->acked,
		.ack_slack = SLACK,
		.reach = 1U << 30,
		.ts_recent = s->tsval,
		.asked = 1,
		.known = 1,
		.early = !!s->n_early,
	};
}

/* --- a connection in the place of another one */

static void connect_server(void)
{
	scene.server = (struct server){ .edge = WINDOW };
	weir_request_start(&scene.server.request);
	if (scene.introduced)
		weir_preamble_start(&scene.server.preamble);
}

static void table_add(void)
{
	memset(&scene.conn, 0, sizeof(scene.conn));
	weir_conn_open(&scene.conn, 0, WEIR_PHASE_FOLLOWED, CLIENT_ISN + scene.server.next,
		       SERVER_ISN + scene.server.sent, WINDOW);
	if (scene.introduced)
		weir_conn_await_preamble(&scene.conn);
	scene.open = true;
}

/* What passed as a segment of the old connection comes to the new one's socket: as hold_unseen() in bpf/hold.h. */
static void arrives_late(const struct piece *piece)
{
	struct piece p = *piece;
	struct weir_socket k;
	uint32_t before = seq_before(p.g.seq, CLIENT_ISN) ? CLIENT_ISN - p.g.seq : 0;

	if (before >= p.g.len)
		return;
	p.g.seq += before;
	p.g.len -= before;
	memmove(p.bytes, p.bytes + before, p.g.len);
	ask(&k);
	if (!scene.open && !weir_socket_drops(&k, &p.g, k.sent)) {
		table_add();
		weir_hold_unseen(&scene.conn, &k);
	} else if (scene.open && weir_hold_overlooked(&scene.conn, &k, &p.g, false)) {
		weir_hold_unseen(&scene.conn, &k);
	}
	server_receive(&p);
}

static void begin_anew(uint32_t greater)
{
	struct piece late[LATE];
	unsigned int n_late = scene.n_late;

	memcpy(late, scene.late, sizeof(late));
	scene.waiting.busy = false;
	scene.open = false;
	scene.n_late = scene.n_told = 0;
	scene.sent = scene.start = 0;
	scene.client_isn += greater;
	scene.server_isn += greater;
	connect_server();
	for (unsigned int i = 0; i < n_late; i++)
		arrives_late(&late[i]);
}

/* The request whose head ends before `end` is let through. What is cut later is cut behind it: offsets stay. */
static void tell(struct job *j, uint32_t end)
{
	uint32_t cut = CLIENT_ISN + scene.conn.splice.in_off;
	struct told *t = &j->told[j->n_told++];
	uint8_t head[2 * STREAM] = { 0 };

	assert(j->n_told <= sizeof(j->told) / sizeof(j->told[0]));
	*t = (struct told){ .start = j->start - cut, .end = end - cut };
	for (uint32_t at = t->start; at < t->end; at++)
		head[at - t->start] = seq_before(cut + at, j->from) ? scene.seen[at] :
								      j->piece.bytes[cut + at - j->piece.g.seq];
	t->hash = hash(head, t->end - t->start);
	weir_request_reader_passed(&j->r);
}

static void decide(struct job *j, uint32_t end, bool refuse)
{
	struct weir_request_reader *r = &j->r;
	enum weir_reason why_not = r->heads ? WEIR_PIPELINED : r->why_not;
	bool full = !r->again && weir_request_reader_full(r);

	if (!full && (r->again || !refuse))
		tell(j, end);
	else if (!full && why_not == WEIR_REASON_NONE)
		r->shed = 1;
	else
		r->held = 1;
}

static void feed(struct job *j, bool refuse)
{
	struct weir_request_reader *r = &j->r;
	const struct weir_segment *g = &j->piece.g;
	uint32_t end = g->seq + g->len;

	j->start = scene.start;
	j->from = r->next;
	while (seq_before(r->next, end) && weir_preamble_awaited(&r->preamble))
		weir_request_reader_feed_preamble(r, j->piece.bytes[r->next - g->seq]);
	while (seq_before(r->next, end) && !r->held && r->lost == WEIR_REASON_NONE) {
		uint32_t at = r->next;
		uint8_t byte = j->piece.bytes[at - g->seq];
		enum weir_frame_event event;

		if (weir_request_ended(&r->request) || weir_request_fresh(&r->request))
			j->start = at;
		event = weir_request_reader_feed(r, &reading, &digest_keys, byte);
		if (event == WEIR_FRAME_LOST)
			break;
		if (event == WEIR_FRAME_HEAD && !r->shed)
			decide(j, at + 1, refuse);
		if (r->held || r->lost != WEIR_REASON_NONE || (r->shed && weir_request_ended(&r->request)))
			break;
	}
	weir_request_reader_digest(r, &digest_keys);
	weir_request_reader_end(r, g);
	r->answer = (struct weir_answer_choice){ .length = ANSWER, .kind = WEIR_ANSWER_KEEP };
	if (r->must_close || !weir_request_ended(&r->request) || seq_before(r->next, end))
		r->answer.kind = WEIR_ANSWER_CLOSE;
}

static void commit(struct job *j, enum fate fate)
{
	const struct weir_segment *g = &j->piece.g;
	uint32_t cut = CLIENT_ISN + scene.conn.splice.in_off;
	enum weir_reason why = WEIR_REASON_NONE;
	enum weir_action action = kept_commit_client(&scene.conn, &scene.busy, g, &j->r, &why);
	uint32_t length = action == WEIR_CUT ? j->r.start - g->seq : g->len;

	if (action == WEIR_DROP)
		return;
	for (uint32_t at = j->from; seq_before(at, g->seq + length); at++)
		scene.seen[at - cut] = j->piece.bytes[at - g->seq];
	for (unsigned int i = 0; i < j->n_told && scene.n_told < TOLD; i++)
		scene.told[scene.n_told++] = j->told[i];
	if (!j->r.again)
		scene.start = j->start;
	if (action == WEIR_PASS || action == WEIR_CUT)
		send_on(&j->piece, fate, length);
}

static void client_sends(const struct piece *p, enum fate fate, uint8_t then)
{
	enum weir_reason why = WEIR_REASON_NONE;
	struct job j = { .piece = *p };
	struct weir_socket k = { 0 };
	enum weir_action action;
	bool passed;

	if (!scene.open)
		table_add();
	scene.conn.last_ns = scene.now;
	action = checked_begin_client(&scene.conn, &scene.busy, &k, &p->g, &j.r, &why, &passed);
	if (action == WEIR_ASK) {
		ask(&k);
		action = weir_conn_begin_client(&scene.conn, busy_there(&scene.conn, &scene.busy), &k, &p->g, &j.r,
						&why);
		assert(action != WEIR_ASK);
	}
	if (action == WEIR_PASS || action == WEIR_CUT)
		send_on(p, fate, action == WEIR_CUT ? j.r.start - p->g.seq : p->g.len);
	if (action != WEIR_FRAME)
		return;
	feed(&j, then & THEN_REFUSE);
	if (then & THEN_RACE && !scene.waiting.busy) {
		scene.waiting = j;
		scene.waiting.busy = true;
		return;
	}
	commit(&j, fate);
	if (scene.waiting.busy) {
		scene.waiting.busy = false;
		commit(&scene.waiting, fate);
	}
}

static uint32_t base_of(uint8_t base)
{
	const struct weir_conn *c = &scene.conn;

	switch (base % 4) {
	case 0:
		return scene.sent;
	case 1:
		return scene.server.next + c->splice.in_off;
	case 2:
		return c->request_next - CLIENT_ISN;
	default:
		return c->unconfirmed.read[0].start - CLIENT_ISN;
	}
}

static void play(const struct step *step)
{
	const struct weir_splice *s = &scene.conn.splice;
	uint32_t at = base_of(step->base) + step->from, length = step->length;
	enum fate fate = step->story / 3 % FATES;
	struct piece p = { .g = { .flags = WEIR_TCP_ACK, .window = 1000, .has_ts = 1 } };

	if (step->then & THEN_AGAIN) {
		begin_anew(step->length);
		return;
	}
	scene.owned = step->then & THEN_OWNED;
	if (!scene.waiting.busy)
		time_passes(step->time);
	if (at >= STREAM)
		return;
	length = length < 64 ? length : (length - 63) * 4;
	p.g.len = length < STREAM - at ? length : STREAM - at;
	p.g.seq = CLIENT_ISN + at;
	p.g.ack = s->server_end + s->out_off + (fate == FATE_NEW_ACK) * 5000 - (fate == FATE_OLD_ACK) * 5000;
	p.g.tsval = scene.now / MS - (fate == FATE_OLD_STAMP) * 100000;
	memcpy(p.bytes, stories[step->story % 3] + at, p.g.len);
	if (at + p.g.len > scene.sent)
		scene.sent = at + p.g.len;
	client_sends(&p, fate, step->then);
	server_step(step->then);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step step;

	memset(&scene, 0, sizeof(scene));
	scene.introduced = size % STEP & 1;
	scene.now = 1000000 * MS;
	scene.client_isn = 0xfffff000;
	scene.server_isn = 0x7ffffff0;
	tell_stories(scene.introduced);
	connect_server();
	table_add();
	for (; size >= STEP; data += STEP, size -= STEP) {
		memcpy(&step, data, STEP);
		play(&step);
		assert(scene.conn.phase != WEIR_PHASE_HUNTING);
	}
	return 0;
}
