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

/* Adds a TCP option when there is room. */
void add_option(struct segment *segment, uint8_t kind, const void *data, size_t length);

#endif
