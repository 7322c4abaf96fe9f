/* SPDX-License-Identifier: GPL-2.0 */
/* Who is known to a server: by whom its requests are named, and in which groups they are. */
#ifndef WEIR_USER_DATAPATH_IDENTITY_H
#define WEIR_USER_DATAPATH_IDENTITY_H

#include "weir/abi/abi.h"

#include "base/error.h"
#include "datapath/address.h"

struct datapath;

/* Whose PROXY protocol preambles are believed: these networks and no others. */
int datapath_balancers_set(struct datapath *dp, __u32 slot, const struct datapath_cidr *balancers, size_t n,
			   struct error *err);
/* The groups that follow from how a request is identified. */
int datapath_known_groups_set(struct datapath *dp, __u32 slot, const struct weir_known_groups *groups,
			      struct error *err);
/* Groups, and users, that a server's settings name: these and no others. bit: which of struct weir_groups */
struct datapath_group {
	__u64 subject;
	__u32 bit;
};
int datapath_groups_set(struct datapath *dp, __u32 slot, const struct datapath_group *groups, size_t n,
			struct error *err);

/* The users of tokens and of networks: these and no others. Of equal tokens or networks the last counts. */
struct datapath_token {
	__u64 subject; /* of kind WEIR_NAME_TOKEN */
	struct weir_principal principal;
};
int datapath_tokens_set(struct datapath *dp, __u32 slot, const struct datapath_token *tokens, size_t n,
			struct error *err);

struct datapath_address {
	struct datapath_cidr cidr;
	struct weir_principal principal;
};
int datapath_addresses_set(struct datapath *dp, __u32 slot, const struct datapath_address *addresses, size_t n,
			   struct error *err);

#endif
