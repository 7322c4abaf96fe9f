/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All rules of a server as the kernel looks them up (weir/limit/match.h): at most WEIR_RULES_MAX of them, of which a request may
 * meet those of WEIR_NAMED_MAX limits, WEIR_SEAT_SLOTS in-flight ones among them. Nothing here touches the kernel.
 */
#ifndef WEIR_USER_RULES_RULES_H
#define WEIR_USER_RULES_RULES_H

#include "weir/abi/abi.h"
#include "weir/limit/match.h"

#include "datapath/datapath.h"
#include "model/rule.h"

/* The rules of one thing: a limit, a flow schema, an exemption. */
struct rules_entry {
	const struct rule *rules;
	size_t n;	   /* 0: every request, of a limit; no request, of anything else */
	__u16 limit;	   /* its slot; or WEIR_RULE_EXEMPT, WEIR_RULE_NOTHING */
	bool schema;	   /* a request is of the first that matches, among all of these: they stand together */
	bool in_flight;	   /* the limit has seats */
	bool connections;  /* it is on connections: no request meets its rules */
	const char *label; /* for messages: "limit secrets", "flow schema probes" */
};

/* How many rules the kernel has for it. */
size_t rules_count(const struct rules_entry *entry);

/* How names become what the kernel looks up. */
struct rules_names {
	/* As datapath_subject(). */
	__u64 (*subject)(void *context, enum weir_name_kind kind, const void *bytes, size_t length);
	/* The bit (weir/base/groups.h) of a group whose members are to be known; negative: there is none left. */
	int (*group)(void *context, const char *name);
	void *context;
};

/* What datapath_rules_set() takes. */
struct rules {
	struct weir_rules value;
	struct datapath_vector *vectors; /* ordered by dimension and value */
	size_t n_vectors;
	struct datapath_source *sources; /* ordered by address and bits; each has the rules of those that cover it */
	size_t n_sources;
};

/*
 * entries: in the order in which they are to be looked at. -E2BIG: there are more rules, values or groups than the kernel
 * has room for, or a request could meet more limits than may be charged; err says how many, and which. Caller frees *out.
 */
int rules_compile(const struct rules_entry *entries, size_t n, const struct rules_names *names, struct rules **out,
		  struct error *err);
void rules_free(struct rules *rules);
static inline void cleanup_rules(struct rules **rules)
{
	rules_free(*rules);
}
#define CLEANUP_RULES __attribute__((cleanup(cleanup_rules)))

/* What a look-up finds: the vector of the value, or else that of any (for a group: NULL). */
const struct weir_vector *rules_find(const struct rules *rules, enum weir_dimension dimension, __u64 value);

/*
 * The part of rules_compile() that looks for a request which meets too many limits: it goes through all that the rules
 * tell apart, as long as that is not too much; then it takes for possible what it could not rule out.
 */
int rules_check(const struct rules *rules, const struct rules_entry *entries, size_t n, const struct rules_names *names,
		struct error *err);

/* Of a request's verb, kind and duration (weir_call()): whether attributes.h says so of some request, and meets the rule. */
bool rules_call_is_possible(__u64 call);
bool rules_call_meets(const struct rule *rule, __u64 call);

#endif
