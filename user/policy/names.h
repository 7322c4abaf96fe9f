/* SPDX-License-Identifier: GPL-2.0 */
/* The two ways to write keys: weir's own, and those of policy files. */
#ifndef WEIR_USER_POLICY_NAMES_H
#define WEIR_USER_POLICY_NAMES_H

#include <jansson.h>

/*
 * Keys as weir writes them in JSON, everywhere in the value: inFlight becomes in_flight. A new reference; lists in it may be
 * the value's own, which must not be changed.
 */
json_t *policy_own_names(json_t *json);
/* And the other way. */
json_t *policy_yaml_names(json_t *json);
/* The same of the keys that an error names, in place: words outside quotes. */
void policy_yaml_words(char *text);

#endif
