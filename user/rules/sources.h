/* SPDX-License-Identifier: GPL-2.0 */
/* Networks that rules name, and the vectors that a trie has for them. */
#ifndef WEIR_USER_RULES_SOURCES_H
#define WEIR_USER_RULES_SOURCES_H

#include "rules/rules.h"

struct rules_named_source {
	struct datapath_cidr cidr;
	__u16 rule;
};

/* As they are found, and the caller's to clear. */
struct rules_sources {
	struct rules_named_source *items;
	size_t n;
};

/* text: as struct rule has it */
int rules_sources_add(struct rules_sources *sources, const char *text, __u32 rule, struct error *err);
/* Sets rules->sources. any: rules that ask for no source. Sorts the items. */
int rules_sources_make(struct rules_sources *sources, const struct weir_vector *any, struct rules *rules,
		       struct error *err);
void rules_sources_clear(struct rules_sources *sources);

/* The vector of a network that some rule names. text: as struct rule has it */
const struct weir_vector *rules_source_vector(const struct rules *rules, const char *text);
/* What the trie finds for an address; NULL: nothing. */
const struct weir_vector *rules_source_find(const struct rules *rules, const __u8 address[static 16]);

#endif
