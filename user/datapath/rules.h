/* SPDX-License-Identifier: GPL-2.0 */
/* Which requests a server's limits are for. */
#ifndef WEIR_USER_DATAPATH_RULES_H
#define WEIR_USER_DATAPATH_RULES_H

#include "weir/abi/abi.h"

#include "base/error.h"
#include "datapath/address.h"

struct datapath;

/* For the limits behind the built-in ones (weir/limit/match.h): these rules and no others, at once. */
struct datapath_vector {
	enum weir_dimension dimension;
	__u64 value;
	struct weir_vector vector;
};

struct datapath_source {
	struct datapath_cidr cidr;
	struct weir_vector vector;
};

/* rules NULL: none. */
int datapath_rules_set(struct datapath *dp, __u32 server, const struct weir_rules *rules,
		       const struct datapath_vector *vectors, size_t n_vectors, const struct datapath_source *sources,
		       size_t n_sources, struct error *err);

#endif
