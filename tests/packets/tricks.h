/* SPDX-License-Identifier: GPL-2.0 */
/* What can be done to a segment. */
#ifndef WEIR_TESTS_PACKETS_TRICKS_H
#define WEIR_TESTS_PACKETS_TRICKS_H

#include "../random.h"
#include "frame.h"

struct scene {
	struct random *random;
	bool ipv6;
	struct segment *segment;
	struct shape *shape;
};

struct trick {
	const char *name;
	void (*play)(const struct scene *scene);
};

/* Most of these still reach a server's socket; of the faults most do not. Neither is sure: the oracle does not need it. */
extern const struct trick roads[], faults[];
extern const size_t road_count, fault_count;

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define TRICK(name)         \
	{                   \
#name, name \
	}

/* 0 .. n-1 */
unsigned int below(const struct scene *s, unsigned int n);
void random_bytes(const struct scene *s, uint8_t *bytes, size_t length);

/* These do nothing when there is no room. */
void add_option(struct segment *segment, uint8_t kind, const void *data, size_t length);
void add_extension(const struct scene *s, uint8_t kind, uint8_t first, uint8_t second, uint8_t words);

/* One or two, of no VLAN. */
void priority_tags(const struct scene *s);

#endif
