/* SPDX-License-Identifier: GPL-2.0 */
/* What the agent keeps in the kernel as it should be, and how much of it was written. */
#ifndef WEIR_USER_DATAPATH_PART_H
#define WEIR_USER_DATAPATH_PART_H

#include "sys/changes.h"

/* The maps that the agent alone writes, but for the contents of buckets. */
#define DATAPATH_OWN_MAPS(X) \
	X(settings)          \
	X(ports)             \
	X(listeners)         \
	X(servers)           \
	X(proxies)           \
	X(balancers)         \
	X(groups)            \
	X(tokens)            \
	X(addresses)         \
	X(rules)             \
	X(vectors)           \
	X(sources)           \
	X(limits)            \
	X(overrides)         \
	X(buckets)           \
	X(answers)           \
	X(refusals)          \
	X(named_devices)

/*
 * What the agent keeps as it should be: its maps, and besides
 * pins      the files of maps and programs
 * links     the programs on devices
 * holds     and on cgroups
 */
#define DATAPATH_PARTS(X)    \
	DATAPATH_OWN_MAPS(X) \
	X(pins)              \
	X(links)             \
	X(holds)

enum datapath_part {
#define X(name) DATAPATH_##name,
	DATAPATH_PARTS(X)
#undef X
	DATAPATH_N_PARTS,
};

const char *datapath_part_name(enum datapath_part part);

struct datapath_written {
	struct datapath_changes of[DATAPATH_N_PARTS];
};

#endif
