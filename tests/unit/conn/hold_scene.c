/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hold_scene.h"

void hold_add(struct hold_scene *s, __u8 type, __u32 length)
{
	const __u8 header[] = { type, 3, 3, length >> 8, length };

	assert_true(s->size + sizeof(header) + length <= ROOM);
	memcpy(s->stream + s->size, header, sizeof(header));
	memset(s->stream + s->size + sizeof(header), 0xee, length);
	s->size += sizeof(header) + length;
}

void hold_open(struct hold_scene *s, enum weir_phase phase)
{
	memset(s, 0, sizeof(*s));
	weir_conn_open(&s->conn, 0, phase, START, 1, 1000);
	s->now_ns = WEIR_NS_PER_S;
	s->socket = (struct weir_socket){ .next = START, .edge = START + ROOM };
}

void hold_open_tls(struct hold_scene *s)
{
	hold_open(s, WEIR_PHASE_FOLLOWED);
	weir_conn_opaque(&s->conn, START, WEIR_TLS);
}

struct weir_segment hold_segment(__u32 at, __u32 length)
{
	return (struct weir_segment){ .seq = START + at, .len = length, .flags = WEIR_TCP_ACK };
}

/* In windows, as the hook at the socket reads them. */
static void read_lines(const __u8 *stream, const struct weir_segment *g, struct weir_hold_reader *r)
{
	__u32 end = g->seq + g->len - START, n;
	struct weir_window w;

	for (__u32 from = r->news - START; from < end; from += w.length) {
		w.length = end - from < WEIR_WINDOW ? end - from : WEIR_WINDOW;
		memcpy(w.bytes, stream + from, w.length);
		for (__u32 at = 0; at < w.length; at += n ? n : 1) {
			n = weir_hold_reader_ahead(r, &w, at);
			if (!n)
				weir_hold_reader_line(r, w.bytes[at]);
		}
	}
}

void hold_read(const __u8 *stream, const struct weir_segment *g, struct weir_hold_reader *r)
{
	while (r->by_records && r->next - g->seq < g->len) {
		if (weir_hold_reader_feed(r, stream[r->next - START]) == WEIR_FRAME_LOST)
			break;
	}
	if (weir_hold_reader_wants_lines(r))
		read_lines(stream, g, r);
	weir_hold_reader_end(r, g);
}

static enum weir_action offer(struct hold_scene *s, struct weir_segment g, bool refuse)
{
	struct weir_hold_reader r;
	enum weir_action action;
	__u64 held_ns = 0;

	s->why = WEIR_REASON_NONE;
	s->now_ns++;
	action = weir_hold_begin(&s->conn, &s->socket, &g, weir_hold_knows(&s->conn, !s->unseen), &r, &s->why);
	if (action != WEIR_FRAME)
		return action;
	hold_read(s->stream, &g, &r);
	if (refuse && r.weight) {
		weir_hold_refuse(&s->conn, &r, s->now_ns);
		return WEIR_DROP;
	}
	action = weir_hold_commit(&s->conn, &r, s->now_ns, &held_ns, &s->why);
	if (action == WEIR_PASS) {
		s->records += r.records;
		s->weight += r.weight;
		s->held_ns += held_ns;
	}
	return action;
}

enum weir_action hold_offer(struct hold_scene *s, __u32 at, __u32 length, bool refuse)
{
	return offer(s, hold_segment(at, length), refuse);
}

enum weir_action hold_offer_end(struct hold_scene *s, __u32 at, __u32 length, bool refuse)
{
	struct weir_segment g = hold_segment(at, length);

	g.flags |= WEIR_TCP_FIN;
	return offer(s, g, refuse);
}

void hold_check(const struct hold_scene *s, __u32 records, __u32 weight)
{
	assert_int_equal(s->records, records);
	assert_int_equal(s->weight, weight);
}

enum weir_reason hold_server_speaks(struct hold_scene *s, const __u8 *bytes, __u32 length)
{
	struct weir_segment g = { .seq = 1, .ack = START, .len = length, .window = 1000, .flags = WEIR_TCP_ACK };
	enum weir_reason why = WEIR_REASON_NONE;
	struct weir_response_reader r;

	assert_int_equal(weir_conn_begin_server(&s->conn, NULL, &g, &r, &why), WEIR_FRAME);
	while (r.next - g.seq < g.len) {
		if (weir_response_reader_feed(&r, bytes[r.next - g.seq]) == WEIR_FRAME_LOST)
			break;
	}
	weir_conn_commit_server(&s->conn, NULL, &r, &why);
	assert_int_equal(s->conn.phase, WEIR_PHASE_OPAQUE);
	return s->conn.opaque_why;
}
