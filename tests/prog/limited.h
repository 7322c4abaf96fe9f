/* SPDX-License-Identifier: GPL-2.0 */
/* A limit of the attached server, with rules, and what becomes of requests. */
#ifndef WEIR_TESTS_LIMITED_H
#define WEIR_TESTS_LIMITED_H

#include "../unit/rules/rule_fixture.h"
#include "attached.h"

#define SLOT WEIR_BUILTIN_LIMITS /* the first one of a limit with rules */

extern const char get_pod[], list_secrets[]; /* requests of namespace a */

/* The rules of all limits, in place of those before. */
void rules_set(const struct rules_entry *entries, size_t n);
/* One limit, SLOT, with one rule. */
void rule_set(const char *json);
/* The bit of a group that is known from now on, until the next rules_set(). */
int group_known(const char *name);

struct datapath_limit rate_of(__u8 key, __u64 per_ns, __u64 burst);
void slot_set(const struct datapath_limit *limit);
struct weir_limit_counts counts(__u32 slot);
/* In the bucket of a limit without a key. */
__u64 tokens_left(__u32 slot);

/* The two connections are told apart by their IP version. Verdicts. */
int client_says(bool ipv6, __u32 at, const char *text);
int server_says(bool ipv6, __u32 at, __u32 acked, __u8 flags, const char *text);
/* A request on a fresh connection: does it pass? */
bool passes(bool ipv6, const char *text);

#endif
