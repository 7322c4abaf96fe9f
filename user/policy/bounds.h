/* SPDX-License-Identifier: GPL-2.0 */
#ifndef WEIR_USER_POLICY_BOUNDS_H
#define WEIR_USER_POLICY_BOUNDS_H

/* Bounds of a document, so that reading it takes a bounded time. */
#define POLICY_DEPTH_MAX 64
#define POLICY_FIELDS_MAX 1024	     /* of an object: each is compared with all before it */
#define POLICY_NODES_MAX (1U << 20)  /* of a document: aliases of aliases can ask for very many */
#define POLICY_COPIES_MAX (1U << 20) /* of all documents: those that aliases ask for */
#define POLICY_ANCHORS_MAX 256	     /* of a document */

#endif
