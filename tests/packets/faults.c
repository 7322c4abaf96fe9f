/* SPDX-License-Identifier: GPL-2.0 */
#include "tricks.h"

#include <string.h>

#define OPTION_TS 8
#define OPTION_MD5 19
#define OPTION_AO 29
#define HOP_BY_HOP 0
#define ROUTING 43
#define DESTINATION 60

static void another_mac(const struct scene *s)
{
	s->shape->mac = MAC_OTHER + below(s, 3);
}

static void wrong_check(const struct scene *s)
{
	s->shape->check = below(s, 2) ? CHECK_WRONG : CHECK_BEGUN;
}

static void wrong_ip_check(const struct scene *s)
{
	s->shape->bad_ip_check = true;
	if (s->ipv6)
		s->shape->version = 4 + below(s, 2);
}

static void wrong_length(const struct scene *s)
{
	s->shape->length_error = below(s, 2) ? (int)random_between(s->random, 1, 60) :
					       -(int)random_between(s->random, 1, s->segment->length + 1);
}

static void no_length(const struct scene *s)
{
	s->shape->zero_length = true;
	s->shape->length_error = below(s, 2) ? -20 - (int)s->segment->length : 0;
}

static void wrong_offset(const struct scene *s)
{
	s->segment->offset_error = below(s, 2) ? 1 + (int)below(s, 10) : -1 - (int)below(s, 5);
}

/* Behind the timestamp that it has, one that is older: the last one counts. */
static void old_stamp(const struct scene *s)
{
	uint8_t data[8] = { 0 };

	if (below(s, 2))
		s->segment->options_length = 0;
	random_bytes(s, data, below(s, 5));
	add_option(s->segment, OPTION_TS, data, sizeof(data));
}

static void no_stamp(const struct scene *s)
{
	s->segment->options_length = 0;
}

static void wrong_ack(const struct scene *s)
{
	s->segment->ack += (int)random_between(s->random, 0, 4000000) - 2000000;
}

static void wrong_flags(const struct scene *s)
{
	static const uint8_t flags[] = { 0,    TCP_PSH, TCP_SYN | TCP_ACK, TCP_SYN, TCP_RST | TCP_ACK, TCP_FIN,
					 0xff, TCP_URG };

	s->segment->flags = flags[below(s, COUNT(flags))];
}

static void signed_segment(const struct scene *s)
{
	uint8_t data[16];

	random_bytes(s, data, sizeof(data));
	s->segment->options_length = 0;
	add_option(s->segment, below(s, 2) ? OPTION_MD5 : OPTION_AO, data, sizeof(data));
}

static void source_route(const struct scene *s)
{
	static const uint8_t routes[][8] = { { 131, 7, 4, 127, 0, 0, 1, 0 },
					     { 137, 7, 4, 10, 77, 0, 1, 0 },
					     { 131, 2, 1, 1, 1, 1, 1, 1 },
					     { 7, 0, 0, 0, 0, 0, 0, 0 } };

	memcpy(s->shape->ip_options, routes[below(s, COUNT(routes))], 8);
	s->shape->ip_options_length = 8;
}

static void forbidden_extension(const struct scene *s)
{
	static const uint8_t kinds[] = { HOP_BY_HOP, DESTINATION, ROUTING, 50, 51, 59, 135, 139, 140, 254 };

	add_extension(s, kinds[below(s, COUNT(kinds))], below(s, 4) << 6 | 30, below(s, 6), below(s, 3));
}

static void forbidden_behind_ip(const struct scene *s)
{
	if (s->ipv6)
		forbidden_extension(s);
	else
		source_route(s);
}

static void lone_piece(const struct scene *s)
{
	s->shape->version = 0;
	s->shape->pieces = PIECES_MAX;
	s->shape->piece_id = random_next(s->random);
	s->segment->length /= 2;
	s->shape->length_error = below(s, 2) * 8;
}

static void tag_of_a_vlan(const struct scene *s)
{
	priority_tags(s);
	s->shape->tag[below(s, s->shape->tags)] |= 1 + below(s, 4094);
}

static void out_of_window(const struct scene *s)
{
	s->segment->seq += below(s, 2) ? (uint32_t)random_next(s->random) : 70000 + below(s, 1 << 20);
}

const struct trick faults[] = {
	TRICK(another_mac),	    TRICK(another_mac),	 TRICK(wrong_check),
	TRICK(wrong_ip_check),	    TRICK(wrong_length), TRICK(no_length),
	TRICK(wrong_offset),	    TRICK(old_stamp),	 TRICK(no_stamp),
	TRICK(wrong_ack),	    TRICK(wrong_flags),	 TRICK(signed_segment),
	TRICK(forbidden_behind_ip), TRICK(lone_piece),	 TRICK(tag_of_a_vlan),
	TRICK(out_of_window),
};
const size_t fault_count = COUNT(faults);
