/* SPDX-License-Identifier: GPL-2.0 */
/* The requests that a server's rules tell apart: along each axis, the sets of rules that a value there can meet. */
#ifndef WEIR_USER_RULES_AXES_H
#define WEIR_USER_RULES_AXES_H

#include "rules/private.h"

enum rules_axis_id {
	RULES_AXIS_SUBJECT,
	RULES_AXIS_CALL,
	RULES_AXIS_API_GROUP,
	RULES_AXIS_RESOURCE, /* and subresource */
	RULES_AXIS_NAMESPACE,
	RULES_AXIS_PATH,
	RULES_AXIS_SOURCE,
	RULES_AXES,
};

struct rules_place {
	struct weir_vector vector;
	const char *what; /* a value there, of the rules'; NULL: some other one */
};

struct rules_axis {
	enum rules_axis_id id;
	struct rules_place *places; /* owned */
	size_t n;
	size_t most; /* rules that are met in one of them, at most */
};

/*
 * Places that differ in nothing, or only meet less than another one, are left out. A user is taken to be in all groups, and
 * none of these to exempt him. -ENOMEM. Caller frees axis->places, on failure too.
 */
int rules_axis_make(struct rules_axis *axis, enum rules_axis_id id, const struct rules *rules,
		    const struct rules_entry *entries, size_t n, const struct rules_names *names);

#endif
