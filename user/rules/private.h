/* SPDX-License-Identifier: GPL-2.0 */
/* What the steps of rules_compile() share. */
#ifndef WEIR_USER_RULES_PRIVATE_H
#define WEIR_USER_RULES_PRIVATE_H

#include "rules/rules.h"
#include "rules/sources.h"
#include "rules/values.h"

/* A value that meets a rule. */
struct rules_value {
	__u64 value;
	__u16 dimension; /* enum weir_dimension */
	__u16 rule;	 /* its number; WEIR_RULES_MAX: none */
};

struct rules_compiler {
	const struct rules_names *names;
	struct rules *rules;
	struct rules_value *values; /* owned */
	size_t n_values;
	struct rules_sources sources;
	struct weir_vector no_namespace;   /* rules that are met by requests of none */
	struct weir_vector of_connections; /* exemptions that are met by new connections, too */
	const struct rules_entry *entry;   /* whose rules are being added */
	struct error *err;
};

int rules_add_value(struct rules_compiler *c, enum weir_dimension dimension, __u64 value, __u32 rule);
/* Everything that meets the rule of this number. */
int rules_add(struct rules_compiler *c, const struct rule *rule, __u32 number);

#endif
