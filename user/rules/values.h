/* SPDX-License-Identifier: GPL-2.0 */
/* What the kernel looks up for a word of a rule (weir/limit/match.h). */
#ifndef WEIR_USER_RULES_VALUES_H
#define WEIR_USER_RULES_VALUES_H

#include "rules/rules.h"

/* "": 0 */
__u64 rules_name_value(const struct rules_names *names, const char *name);
__u64 rules_user_value(const struct rules_names *names, const char *user);
/* resource: "pods", of which the subresource is meant, or "pods/log" */
__u64 rules_resource_value(const struct rules_names *names, const char *resource, const char *subresource);
/* *prefix: how many segments come before the "*" at its end; -1: there is none */
__u64 rules_path_value(const struct rules_names *names, const char *path, int *prefix);

#endif
