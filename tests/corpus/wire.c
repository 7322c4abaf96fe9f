/* SPDX-License-Identifier: GPL-2.0 */
#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "../busy_keeper.h"
#include "../digest_keys.h"

#define CLIENT_ISN 0xfffffff0U /* numbers wrap early */
#define SERVER_ISN 5000U
#define WINDOW 65535
#define QUEUE_MAX 64
#define STEPS_MAX 1000000

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

struct piece {
	size_t from, to; /* of the stream */
};

struct wire {
	const struct stream *stream;
	const struct reading *whole;
	const struct weir_reading *how;
	const struct wire_options *options;
	struct reading *read;
	struct weir_conn conn;
	struct weir_busy busy;
	uint64_t random;
	struct piece queue[QUEUE_MAX]; /* on the way to weir */
	unsigned int queued;
	size_t sent;   /* offset of the client's next new byte */
	size_t taken;  /* the server's: everything before it is there */
	uint8_t *here; /* whether the server has a byte */
	unsigned int answered;
	uint32_t server_next;
};

static uint32_t random_below(struct wire *w, uint32_t n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (w->random >> 32) % n;
}

static bool chance(struct wire *w, unsigned int per_mille)
{
	return random_below(w, 1000) < per_mille;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t offset_of(uint32_t seq)
{
	return (uint32_t)(seq - CLIENT_ISN);
}

/* The server's segment, an answer or nothing but an acknowledgement, passes weir and reaches the client. */
static void server_says(struct wire *w, const char *text)
{
	struct weir_segment g = {
		.seq = w->server_next,
		.ack = CLIENT_ISN + (uint32_t)w->taken,
		.len = strlen(text),
		.window = WINDOW,
		.flags = WEIR_TCP_ACK,
	};
	enum weir_reason why = WEIR_REASON_NONE;
	struct weir_response_reader r;

	w->server_next += g.len;
	if (weir_conn_begin_server(&w->conn, busy_there(&w->conn, &w->busy), &g, &r, &why) != WEIR_FRAME)
		return;
	while (r.lost == WEIR_REASON_NONE && seq_before(r.next, w->server_next))
		weir_response_reader_feed(&r, text[r.next - g.seq]);
	kept_commit_server(&w->conn, &w->busy, &r, &why);
}

static void server_takes(struct wire *w, const struct piece *p)
{
	memset(w->here + p->from, 1, p->to - p->from);
	while (w->taken < w->stream->length && w->here[w->taken])
		w->taken++;
	while (w->answered < w->whole->messages && w->whole->message[w->answered].end &&
	       w->whole->message[w->answered].end <= w->taken) {
		w->answered++;
		server_says(w, answer);
	}
	server_says(w, "");
}

/* What a segment's bytes come to, as far as they are read; the record is kept only if the segment is committed. */
static void feed(struct wire *w, const struct weir_segment *g, struct weir_request_reader *r)
{
	const uint8_t *bytes = w->stream->bytes + offset_of(g->seq);
	struct reading *read = w->read;
	__u32 end = g->seq + g->len;

	while (seq_before(r->next, end) && weir_preamble_awaited(&r->preamble)) {
		__u32 skip = weir_preamble_skippable(&r->preamble), left = end - r->next;

		if (skip)
			weir_request_reader_skip_preamble(r, skip < left ? skip : left);
		else
			weir_request_reader_feed_preamble(r, bytes[r->next - g->seq]);
	}
	while (seq_before(r->next, end) && r->lost == WEIR_REASON_NONE && !r->held) {
		__u32 at = r->next - g->seq, head_end = r->next + 1;
		enum weir_frame_event event;

		if (weir_request_reader_take(r, weir_run_word(bytes + at, g->len - at)))
			continue;
		event = weir_request_reader_feed(r, w->how, &digest_keys, bytes[at]);
		if (event == WEIR_FRAME_HEAD) {
			if (weir_request_reader_full(r)) {
				r->held = 1;
				break;
			}
			weir_request_reader_passed(r);
			read->message[read->messages++] = (struct message){
				.start = offset_of(head_end) - r->request.head_length,
				.head_end = offset_of(head_end),
				.head = r->request,
			};
		}
		if (r->lost == WEIR_REASON_NONE && weir_request_ended(&r->request))
			read->message[read->messages - 1].end = read->rest = offset_of(r->next);
	}
}

/* A body that was announced is skipped ahead of its bytes, by begin too: its end is known when its head is committed. */
static void note_end(struct wire *w)
{
	struct reading *read = w->read;

	if (w->conn.phase == WEIR_PHASE_FOLLOWED && w->conn.request_place == WEIR_PLACE_ENDED)
		read->message[read->messages - 1].end = read->rest = offset_of(w->conn.request_next);
}

static void weir_gets(struct wire *w, const struct piece *p)
{
	static const struct weir_socket nobody = { .asked = 1 };
	struct weir_segment g = {
		.seq = CLIENT_ISN + (uint32_t)p->from,
		.ack = w->server_next,
		.len = p->to - p->from,
		.window = WINDOW,
		.flags = WEIR_TCP_ACK | WEIR_TCP_PSH,
	};
	enum weir_reason why = WEIR_REASON_NONE;
	unsigned int messages = w->read->messages;
	struct piece passed = *p;
	struct weir_request_reader r;
	enum weir_action action;

	action = weir_conn_begin_client(&w->conn, busy_there(&w->conn, &w->busy), &nobody, &g, &r, &why);
	if (action == WEIR_FRAME) {
		feed(w, &g, &r);
		weir_request_reader_digest(&r, &digest_keys);
		weir_request_reader_end(&r, &g);
		action = kept_commit_client(&w->conn, &w->busy, &g, &r, &why);
		if (action == WEIR_CUT)
			passed.to = offset_of(r.start);
		if (action == WEIR_DROP)
			w->read->messages = messages;
		if (action == WEIR_PASS && r.lost != WEIR_REASON_NONE)
			w->read->lost = r.lost;
	}
	note_end(w);
	if (action == WEIR_PASS || action == WEIR_CUT)
		server_takes(w, &passed);
}

static void enqueue(struct wire *w, size_t from)
{
	size_t length = 1 + random_below(w, chance(w, 300) ? 4 : w->options->largest);

	if (w->queued < QUEUE_MAX)
		w->queue[w->queued++] = (struct piece){ from, from + least(length, w->stream->length - from) };
}

/* New bytes, or, where the overlap is to be shown or there are none, bytes that were sent before. */
static void client_sends(struct wire *w)
{
	size_t room = w->taken + WINDOW;

	if (w->sent == w->stream->length || w->sent >= room) {
		enqueue(w, w->taken);
	} else if (w->sent > w->taken && chance(w, w->options->overlap)) {
		enqueue(w, w->taken + random_below(w, w->sent - w->taken));
	} else {
		enqueue(w, w->sent);
		w->sent = w->queue[w->queued - 1].to;
	}
}

static void deliver(struct wire *w)
{
	unsigned int i = chance(w, w->options->reorder) ? random_below(w, w->queued) : 0;
	struct piece p = w->queue[i];

	if (!chance(w, w->options->repeat)) {
		w->queued--;
		memmove(w->queue + i, w->queue + i + 1, (w->queued - i) * sizeof(p));
	}
	if (!chance(w, w->options->loss))
		weir_gets(w, &p);
}

bool wire_play(const struct stream *s, const struct reading *whole, const struct weir_reading *how,
	       const struct wire_options *o, struct reading *r)
{
	struct wire w = { .stream = s,
			  .whole = whole,
			  .how = how,
			  .options = o,
			  .read = r,
			  .random = o->seed | 1,
			  .server_next = SERVER_ISN };

	r->messages = 0;
	r->rest = 0;
	r->lost = WEIR_REASON_NONE;
	r->text = NULL;
	w.here = calloc(1, s->length + 1);
	weir_conn_open(&w.conn, 0, WEIR_PHASE_FOLLOWED, CLIENT_ISN, SERVER_ISN, WINDOW);
	if (o->preamble)
		weir_conn_await_preamble(&w.conn);
	for (unsigned int step = 0; step < STEPS_MAX && w.taken < s->length; step++) {
		if (!w.queued || (w.queued < 8 && chance(&w, 500)))
			client_sends(&w);
		else
			deliver(&w);
	}
	/* An end was announced that does not come. */
	if (r->messages && r->message[r->messages - 1].end > s->length)
		r->message[r->messages - 1].end = 0;
	r->preamble = w.conn.preamble;
	free(w.here);
	return w.taken == s->length;
}
