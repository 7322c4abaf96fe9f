/* SPDX-License-Identifier: GPL-2.0 */
/* What a server's identity settings come to in the kernel. Nothing here touches it. */
#ifndef WEIR_USER_RULES_IDENTITY_H
#define WEIR_USER_RULES_IDENTITY_H

#include "datapath/datapath.h"
#include "model/identity.h"

/* The names of the headers that are read. */
void identity_reading(const struct identity_settings *settings, struct weir_reading *how);

/* The groups that are exempt, and those that follow from how a request is identified. */
void identity_known_groups(const struct identity_settings *settings, struct weir_known_groups *known);

/* Whom earlier settings exempted is exempt, too: while the others come into force, in which groups may have other bits. */
void identity_exempt_join(struct weir_known_groups *known, const struct identity_settings *before);

/* The bit of a group that settings or rules name; -ENOENT. */
int identity_group_bit(const struct identity_settings *settings, const char *name);

/* Which of them has this subject to dp; NULL: none. */
const char *identity_group_name(const struct identity_settings *settings, const struct datapath *dp, __u64 subject);

/* The names of these groups: a list, a new reference. */
json_t *identity_group_names(const struct identity_settings *settings, const struct weir_groups *groups);

/* What the map `groups` is to hold; the subjects are those of dp. Caller frees *out. Returns how many, or -ENOMEM. */
int identity_group_keys(const struct identity_settings *settings, const struct datapath *dp,
			struct datapath_group **out);

/*
 * The users of tokens and addresses, as the files and rows of the settings have them now. err names all errors of one file. The
 * caller frees *out. Return how many there are.
 */
int identity_tokens(const struct identity_settings *settings, const struct datapath *dp, struct datapath_token **out,
		    struct error *err);
int identity_addresses(const struct identity_settings *settings, const struct datapath *dp,
		       struct datapath_address **out, struct error *err);
/* As these two, where there is nothing in the kernel yet: how many there are. */
int identity_size(const struct identity_settings *settings, size_t *tokens, size_t *addresses, struct error *err);

#endif
