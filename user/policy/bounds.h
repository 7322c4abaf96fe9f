/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_POLICY_BOUNDS_H
#define WEIR_USER_POLICY_BOUNDS_H

#include "policy/tree.h"

#define POLICY_DEPTH_MAX 64
#define POLICY_FIELDS_MAX 1024	    /* of an object: each is compared with all before it */
#define POLICY_NODES_MAX (1U << 20) /* of a document: aliases of aliases can ask for very many */
#define POLICY_ANCHORS_MAX 256	    /* of a document */
#define POLICY_TEXT_OF(number) POLICY_QUOTED(number)
#define POLICY_QUOTED(number) #number

/* Can the text be loaded in a time that grows with its length alone? -E2BIG: no, and a problem says why; -ENOMEM. */
int policy_bounds_check(const char *file, const char *text, size_t length, struct problems *problems);

#endif
