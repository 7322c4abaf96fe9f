/* SPDX-License-Identifier: GPL-2.0 */
/* What a connection sends: its stream, one segment at a time. */
#include "conn_private.h"

#define OPTION_TS 8

bool conn_chance(struct conn *c, unsigned int per_mille)
{
	return random_chance(&c->random, per_mille);
}

uint32_t conn_below(struct conn *c, uint32_t n)
{
	return random_below(&c->random, n);
}

void conn_play(struct conn *c, const struct trick *const *tricks, size_t n, struct segment *segment,
	       struct shape *shape)
{
	struct scene scene = { .random = &c->random, .ipv6 = c->ends.ipv6, .segment = segment, .shape = shape };

	tricks[conn_below(c, n)]->play(&scene);
}

void conn_send(struct conn *c, const struct segment *segment, const struct shape *shape)
{
	frame_send(&c->ends, segment, shape, wire_send, c->wire);
}

void conn_stamp(struct conn *c, struct segment *segment)
{
	uint32_t clock = c->clock++;
	uint8_t data[8] = { clock >> 24, clock >> 16, clock >> 8, clock };

	add_option(segment, OPTION_TS, data, sizeof(data));
}

struct segment conn_segment(struct conn *c, uint8_t flags, uint32_t offset)
{
	struct segment segment = { .seq = c->first + offset, .ack = c->peer, .flags = flags, .window = WINDOW };

	if (c->habits.stamps)
		conn_stamp(c, &segment);
	return segment;
}

struct segment conn_data(struct conn *c, const struct stream *stream, uint32_t offset, uint32_t length)
{
	struct segment segment = conn_segment(c, TCP_ACK | TCP_PSH, offset);

	if (offset > stream->length)
		offset = stream->length;
	segment.data = stream->bytes + offset;
	segment.length = length < stream->length - offset ? length : stream->length - offset;
	return segment;
}

/* By the way that this connection's real bytes take. */
void conn_send_by_road(struct conn *c, struct segment *segment)
{
	struct shape shape = { 0 };

	if (conn_chance(c, c->habits.road_chance))
		conn_play(c, c->habits.roads, TRICKS_AT_ONCE, segment, &shape);
	conn_send(c, segment, &shape);
}

uint32_t conn_some_length(struct conn *c, uint32_t offset)
{
	uint32_t one = stream_request_end(&c->real, offset) - offset;

	switch (conn_below(c, 8)) {
	case 0:
		return 1 + conn_below(c, 16);
	case 1:
		return 1 + conn_below(c, one ? one : 1);
	case 2:
		return 1 + conn_below(c, MSS);
	case 3:
		return MSS;
	case 4:
		return one + stream_request_end(&c->real, offset + one) - (offset + one);
	default:
		return one;
	}
}

void conn_note_sent(struct conn *c, uint32_t end)
{
	if (end > c->sent)
		c->sent = end;
}
