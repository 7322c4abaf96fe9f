/* SPDX-License-Identifier: GPL-2.0 */
/* What came of requests, by limit and by the subjects of each. */
#ifndef WEIR_USER_REPLAY_TALLY_H
#define WEIR_USER_REPLAY_TALLY_H

#include <stddef.h>

#include "weir/base/types.h"

struct tally_key {
	__u32 server, slot;
	__u64 subject; /* 0: all of them */
};

struct tally_row {
	struct tally_key key;
	char *name; /* the subject's */
	__u64 asked, refused, would_refuse;
	size_t subjects; /* of a limit: so many were listed */
};

struct tally {
	struct tally_row **rows; /* a hash table: NULL where none is */
	size_t n, room;		 /* room: 0, or a power of two */
};

void tally_clear(struct tally *tally);
/* Made if it is not there; NULL without memory. Its name is for the caller to set, and for the tally to free. */
struct tally_row *tally_row(struct tally *tally, const struct tally_key *key);
/* All rows, most refusals first, then most requests, then by name. The caller frees *out; returns how many, or -ENOMEM. */
int tally_list(const struct tally *tally, struct tally_row ***out);

#endif
