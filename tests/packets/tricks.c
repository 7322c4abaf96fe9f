/* SPDX-License-Identifier: GPL-2.0 */
#include "tricks.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define OPTION_NOP 1
#define OPTION_SACK 5
#define OPTION_TS 8
#define OPTION_MD5 19
#define OPTION_AO 29
#define OPTION_MPTCP 30
#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define DESTINATION 60

static unsigned int below(const struct scene *s, unsigned int n)
{
	return random_below(s->random, n);
}

void add_option(struct segment *segment, uint8_t kind, const void *data, size_t length)
{
	uint8_t *at = segment->options + segment->options_length;

	if (segment->options_length + 2 + length > OPTIONS_MAX)
		return;
	at[0] = kind;
	at[1] = 2 + length;
	memcpy(at + 2, data, length);
	segment->options_length += 2 + length;
}

static void random_bytes(const struct scene *s, uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = random_next(s->random);
}

/* IP options or extension headers that a host passes over. */
static void ip_options(const struct scene *s)
{
	static const uint8_t known[][4] = {
		{ 1, 1, 1, 1 }, { 0, 0, 0, 0 }, { 148, 4, 0, 0 }, { 94, 4, 0, 0 }, { 136, 4, 0, 1 }
	};
	struct shape *shape = s->shape;

	shape->ip_options_length = 4 * (1 + below(s, 3));
	for (size_t i = 0; i < shape->ip_options_length; i += 4)
		memcpy(shape->ip_options + i, known[below(s, COUNT(known))], 4);
}

static void add_extension(const struct scene *s, uint8_t kind, uint8_t first, uint8_t second, uint8_t words)
{
	struct shape *shape = s->shape;

	if (shape->extensions < EXTENSIONS_MAX)
		shape->extension[shape->extensions++] =
			(struct extension){ .kind = kind, .words = words, .bytes = { first, second } };
}

/* PadN in four bytes; an unknown option, to be skipped, where there are more. */
static void add_padding(const struct scene *s, uint8_t kind)
{
	uint8_t words = below(s, 8) ? 0 : below(s, 4);

	add_extension(s, kind, words ? 0x1e : 1, 4 + 8 * words, words);
}

static void extensions(const struct scene *s)
{
	int n = random_between(s->random, 1, EXTENSIONS_MAX);

	if (!below(s, 4))
		add_padding(s, HOP_BY_HOP);
	while (s->shape->extensions < n) {
		unsigned int what = below(s, 10);

		if (what == 0)
			add_extension(s, ROUTING, below(s, 5), 0, 0);
		else if (what == 1)
			add_extension(s, FRAGMENT, 0, 0, 0);
		else
			add_padding(s, DESTINATION);
	}
}

static void behind_ip(const struct scene *s)
{
	if (s->ipv6)
		extensions(s);
	else
		ip_options(s);
}

static void jumbo_without_option(const struct scene *s)
{
	if (!s->ipv6)
		return;
	s->shape->extensions = 0;
	add_padding(s, HOP_BY_HOP);
	if (below(s, 2))
		add_padding(s, DESTINATION);
	s->shape->zero_length = true;
}

static void priority_tags(const struct scene *s)
{
	static const uint16_t types[] = { 0x8100, 0x88a8, 0x8100, 0x9100 };
	struct shape *shape = s->shape;

	shape->tags = 1 + below(s, TAGS_MAX);
	for (int i = 0; i < shape->tags; i++) {
		shape->tag_type[i] = types[below(s, COUNT(types))];
		shape->tag[i] = below(s, 8) << 13;
	}
}

static void pieces(const struct scene *s)
{
	s->shape->pieces = random_between(s->random, 2, PIECES_MAX);
	s->shape->piece_id = random_next(s->random);
	s->shape->pieces_turned = below(s, 4) == 0;
	s->shape->pieces_twice = below(s, 8) == 0;
	s->shape->pieces_lap = below(s, 16) == 0;
}

static void trailer(const struct scene *s)
{
	s->shape->trailer = random_between(s->random, 1, 40);
}

static void checksum_to_finish(const struct scene *s)
{
	s->shape->check = CHECK_PARTIAL;
}

static void many_in_one(const struct scene *s)
{
	s->shape->check = CHECK_PARTIAL;
	s->shape->gso_size = random_between(s->random, 40, 1000);
	if (s->segment->length <= s->shape->gso_size)
		s->shape->gso_size = 0;
}

static void no_operations(const struct scene *s)
{
	for (unsigned int n = 1 + below(s, 12); n && s->segment->options_length < OPTIONS_MAX; n--)
		s->segment->options[s->segment->options_length++] = OPTION_NOP;
}

static void unknown_option(const struct scene *s)
{
	uint8_t data[16];

	random_bytes(s, data, sizeof(data));
	add_option(s->segment, 60 + below(s, 190), data, below(s, sizeof(data)));
}

static void false_sacks(const struct scene *s)
{
	uint8_t data[24];

	random_bytes(s, data, sizeof(data));
	add_option(s->segment, OPTION_SACK, data, 8 * (1 + below(s, 3)));
}

static void mptcp(const struct scene *s)
{
	uint8_t data[20];

	random_bytes(s, data, sizeof(data));
	data[0] = below(s, 9) << 4;
	add_option(s->segment, OPTION_MPTCP, data, random_between(s->random, 1, sizeof(data)));
}

static void options_of_any_kind(const struct scene *s)
{
	uint8_t *options = s->segment->options;

	s->segment->options_length = 4 * below(s, 11);
	random_bytes(s, options, s->segment->options_length);
}

static void urgent(const struct scene *s)
{
	s->segment->flags |= TCP_URG;
	s->segment->urgent = below(s, 3) ? below(s, s->segment->length + 2) : random_next(s->random);
}

static void odd_flags(const struct scene *s)
{
	static const uint8_t flags[] = { TCP_ACK, TCP_ACK | 0x40, TCP_ACK | 0xc0, TCP_ACK | TCP_PSH | 0x80 };

	s->segment->flags = flags[below(s, COUNT(flags))];
}

static void small_window(const struct scene *s)
{
	s->segment->window = below(s, 3);
}

static void fin(const struct scene *s)
{
	s->segment->flags |= TCP_FIN;
}

/* What a server drops. */
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

#define TRICK(name)         \
	{                   \
#name, name \
	}
const struct trick roads[] = {
	TRICK(behind_ip),
	TRICK(behind_ip),
	TRICK(jumbo_without_option),
	TRICK(priority_tags),
	TRICK(pieces),
	TRICK(trailer),
	TRICK(checksum_to_finish),
	TRICK(many_in_one),
	TRICK(no_operations),
	TRICK(mptcp),
	TRICK(unknown_option),
	TRICK(false_sacks),
	TRICK(options_of_any_kind),
	TRICK(urgent),
	TRICK(fin),
	TRICK(odd_flags),
	TRICK(small_window),
};
const struct trick faults[] = {
	TRICK(another_mac),	    TRICK(another_mac),	 TRICK(wrong_check),
	TRICK(wrong_ip_check),	    TRICK(wrong_length), TRICK(no_length),
	TRICK(wrong_offset),	    TRICK(old_stamp),	 TRICK(no_stamp),
	TRICK(wrong_ack),	    TRICK(wrong_flags),	 TRICK(signed_segment),
	TRICK(forbidden_behind_ip), TRICK(lone_piece),	 TRICK(tag_of_a_vlan),
	TRICK(out_of_window),
};
const size_t road_count = COUNT(roads), fault_count = COUNT(faults);
