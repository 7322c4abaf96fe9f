/* SPDX-License-Identifier: GPL-2.0 */
/* A limit with many rules, all of them with conditions on user, verb, namespace, path and address. */
#ifndef WEIR_TESTS_BENCH_MANY_RULES_H
#define WEIR_TESTS_BENCH_MANY_RULES_H

#include "datapath/datapath.h"

#define MANY_RULES_SLOT WEIR_BUILTIN_LIMITS
#define MANY_RULES_GROUP 0 /* bit of system:authenticated */

/*
 * Gives server 0 a limit for each user with n rules, of which the last alone is for a GET of / from 127.0.0.0/8 by anyone who
 * is authenticated. keys: of its bucket map.
 */
int many_rules_set(struct datapath *dp, __u32 n, __u64 per_ns, __u32 keys, struct error *err);
int many_rules_unset(struct datapath *dp, struct error *err);

#endif
