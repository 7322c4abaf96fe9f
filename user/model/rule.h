/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Which requests something is for, as people write it: conditions, all of which a request must meet. A list is met by any
 * of its items, and an empty one by everything; so is "*", except among namespaces. rules.h makes of rules what the
 * kernel looks up.
 */
#ifndef WEIR_USER_MODEL_RULE_H
#define WEIR_USER_MODEL_RULE_H

#include <jansson.h>
#include <stdbool.h>

#include "weir/http/attributes.h"

#include "base/error.h"
#include "base/texts.h"

#define RULE_ANY "*"

enum rule_answer {
	RULE_EITHER,
	RULE_YES,
	RULE_NO,
};

struct rule {
	/* Whose it is: one of these users, or in one of these groups. */
	struct texts users; /* canonical (parse_subject): names, or addresses of those without one */
	struct texts groups;

	struct texts verbs; /* those of attributes.h */
	enum rule_answer long_running;

	/* Any of these: only requests for resources. */
	struct texts api_groups;   /* "": the core group */
	struct texts resources;	   /* "pods": itself, without a subresource; "pods/log" */
	struct texts subresources; /* of the resources, which then name none themselves; "": none */

	struct texts namespaces; /* "*": any, but not none */
	bool cluster_scope;	 /* requests of no namespace: they too, or without `namespaces` they alone */

	struct texts paths; /* "/healthz": itself; "/healthz/" + "*": all below that */
	bool non_resource;  /* only requests that are for no resource */

	struct texts sources; /* canonical CIDRs (format_cidr) of the peer's address */
};

void rule_clear(struct rule *rule);
#define CLEANUP_RULE __attribute__((cleanup(rule_clear)))

/* What several rules have, and the array that they are in. */
void rule_list_clear(struct rule *rules, size_t n);

/* The same conditions, written in the same order. */
bool rule_equal(const struct rule *a, const struct rule *b);

/* Does the rule ask whose a request is? */
bool rule_of_subjects(const struct rule *rule);
/* Does it ask for nothing else than who sends a request? */
bool rule_of_senders(const struct rule *rule);
/* Does it ask for nothing that a connection does not say: a sender, or a namespace? */
bool rule_of_peers(const struct rule *rule);
/* Is it for those whom nobody names, by their address or all of them together? */
bool rule_of_nobody(const struct rule *rule);
/* Does it ask for a resource? */
bool rule_of_resource(const struct rule *rule);

/*
 * The groups whose members the rule is for, those that its users imply (nobody is of system:unauthenticated) among them;
 * none, if it is for all. Until each() returns something else than 0, which is returned.
 */
int rule_each_group(const struct rule *rule, int (*each)(void *arg, const char *group), void *arg);

/* A new reference: an object with the conditions that there are. NULL without memory. */
json_t *rule_to_json(const struct rule *rule);

/* Checks every word; unknown members are errors. Caller clears *out (rule_clear). */
int rule_from_json(json_t *json, struct rule *out, struct error *err);

/* The same of several rules. The caller clears *out, on failure too (rule_list_clear). Errors begin with the key. */
json_t *rule_list_to_json(const struct rule *rules, size_t n);
int rule_list_from_json(json_t *array, const char *key, struct rule **out, size_t *n, struct error *err);

/* Can the text stand in this list, a member of a rule's JSON? */
int rule_check_word(const char *list, const char *text, struct error *err);

/* "" for WEIR_VERB_NONE */
const char *rule_verb_name(enum weir_verb verb);
/* The verb of a word; -EINVAL: err lists those there are. */
int rule_verb_parse(const char *text, enum weir_verb *verb, struct error *err);

#endif
