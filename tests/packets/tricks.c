/* SPDX-License-Identifier: GPL-2.0 */
#include "tricks.h"

#include <string.h>

unsigned int below(const struct scene *s, unsigned int n)
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

void random_bytes(const struct scene *s, uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = random_next(s->random);
}

void add_extension(const struct scene *s, uint8_t kind, uint8_t first, uint8_t second, uint8_t words)
{
	struct shape *shape = s->shape;

	if (shape->extensions < EXTENSIONS_MAX)
		shape->extension[shape->extensions++] =
			(struct extension){ .kind = kind, .words = words, .bytes = { first, second } };
}
