/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../busy_keeper.h"
#include "../../digest_keys.h"
#include "doubt_scene.h"

void doubt_open(struct doubt_scene *s)
{
	memset(s, 0, sizeof(*s));
	weir_conn_open(&s->conn, 0, WEIR_PHASE_FOLLOWED, CLIENT, SERVER, WINDOW);
	s->conn.splice.server_scale = SCALE;
	s->conn.last_ns = WEIR_NS_PER_S;
	s->socket = (struct weir_socket){
		.next = CLIENT,
		.edge = CLIENT + (WINDOW << SCALE),
		.sent = SERVER,
		.acked = SERVER,
		.ack_slack = 100,
		.reach = 1000,
		.ts_recent = 500,
		.known = 1,
	};
}

struct weir_segment doubt_segment(const struct doubt_scene *s, __u32 at, __u32 length)
{
	return (struct weir_segment){
		.seq = CLIENT + at,
		.ack = SERVER + s->sent,
		.len = length,
		.flags = WEIR_TCP_ACK,
		.has_ts = 1,
		.tsval = 500,
	};
}

static void feed(struct doubt_scene *s, const struct weir_segment *g, const char *text, struct weir_request_reader *r,
		 bool shed)
{
	static const struct weir_reading reading = { .seed = { 1, 2 } };

	while (seq_before(r->next, g->seq + g->len) && weir_preamble_awaited(&r->preamble))
		weir_request_reader_feed_preamble(r, text[r->next - g->seq]);
	while (seq_before(r->next, g->seq + g->len) && !r->held && r->lost == WEIR_REASON_NONE) {
		if (weir_request_reader_feed(r, &reading, &digest_keys, text[r->next - g->seq]) != WEIR_FRAME_HEAD)
			continue;
		s->got++;
		r->shed = shed && !r->again;
		if (!r->shed)
			weir_request_reader_passed(r);
		if (!r->shed && s->serves_bodies && weir_request_has_body(&r->request))
			weir_request_reader_doubt_body(r);
	}
	weir_request_reader_digest(r, &digest_keys);
	weir_request_reader_end(r, g);
	r->answer = (struct weir_answer_choice){ .length = 100, .kind = WEIR_ANSWER_KEEP };
}

enum weir_action doubt_offer(struct doubt_scene *s, const struct weir_segment *g, const char *text, bool shed)
{
	struct weir_socket k = {};
	struct weir_request_reader r;
	enum weir_action action;

	memset(&r, 0xa5, sizeof(r)); /* what another packet left there */
	s->why = WEIR_REASON_NONE;
	s->got = 0;
	action = weir_conn_begin_client(&s->conn, busy_there(&s->conn, &s->busy), &k, g, &r, &s->why);
	if (action == WEIR_ASK) {
		assert_int_equal(s->why, WEIR_REASON_NONE);
		s->asks++;
		k = s->socket;
		k.asked = 1;
		action = weir_conn_begin_client(&s->conn, busy_there(&s->conn, &s->busy), &k, g, &r, &s->why);
	}
	if (action == WEIR_FRAME) {
		feed(s, g, text, &r, shed);
		action = kept_commit_client(&s->conn, &s->busy, g, &r, &s->why);
	}
	s->start = r.start - CLIENT;
	return action;
}

enum weir_action doubt_send(struct doubt_scene *s, __u32 at, const char *text)
{
	struct weir_segment g = doubt_segment(s, at, strlen(text));

	return doubt_offer(s, &g, text, false);
}

enum weir_reason doubt_server_says(struct doubt_scene *s, __u32 next, const char *text)
{
	struct weir_segment g = {
		.seq = SERVER + s->sent,
		.ack = CLIENT + next,
		.len = strlen(text),
		.flags = WEIR_TCP_ACK,
		.window = WINDOW,
	};
	enum weir_reason why = WEIR_REASON_NONE;
	struct weir_response_reader r;

	memset(&r, 0xa5, sizeof(r));
	s->socket.next = g.ack;
	s->socket.edge = g.ack + (WINDOW << SCALE);
	s->sent += g.len;
	s->socket.sent = SERVER + s->sent;
	if (weir_conn_begin_server(&s->conn, busy_there(&s->conn, &s->busy), &g, &r, &why) != WEIR_FRAME)
		return why;
	while (seq_before(r.next, g.seq + g.len) && r.lost == WEIR_REASON_NONE)
		weir_response_reader_feed(&r, text[r.next - g.seq]);
	kept_commit_server(&s->conn, &s->busy, &r, &why);
	return why;
}

void doubt_server_has(struct doubt_scene *s, __u32 next, const char *text)
{
	assert_int_equal(doubt_server_says(s, next, text), WEIR_REASON_NONE);
}

void doubt_server_answers_early(struct doubt_scene *s, __u32 next, const char *text)
{
	assert_int_equal(doubt_server_says(s, next, text), WEIR_ANSWERED_EARLY);
}

void doubt_later(struct doubt_scene *s)
{
	s->conn.last_ns += WEIR_UNDER_WAY_NS;
}

void doubt_check_at(const struct doubt_scene *s, __u32 next, __u32 requests)
{
	assert_int_equal(s->conn.request_next - CLIENT, next);
	assert_int_equal(s->conn.requests, requests);
}
