/* SPDX-License-Identifier: GPL-2.0 */
/* The names of those whom the programs have counted. */
#ifndef WEIR_USER_DATAPATH_NAMES_H
#define WEIR_USER_DATAPATH_NAMES_H

#include "weir/abi/abi.h"

struct datapath;

/* A name for people; whatever is not a plain character is escaped. */
void datapath_name_text(const struct weir_name *name, char *text, size_t size);

/* The subject of a name, hashed with this namespace's seed. An address is 16 bytes, already cut to what is limited. */
__u64 datapath_subject(const struct datapath *dp, enum weir_name_kind kind, const void *bytes, size_t length);
/* Text for a subject ("alice", "10.0.0.1", "2001:db8::/64"); -ENOENT when the name is no longer known. */
int datapath_name(struct datapath *dp, __u64 subject, char *text, size_t size);

#endif
