/* SPDX-License-Identifier: GPL-2.0 */
#include "tricks.h"

#include <string.h>

#define OPTION_NOP 1
#define OPTION_SACK 5
#define OPTION_MPTCP 30
#define HOP_BY_HOP 0
#define ROUTING 43
#define FRAGMENT 44
#define DESTINATION 60

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

void priority_tags(const struct scene *s)
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
const size_t road_count = COUNT(roads);
