/* SPDX-License-Identifier: GPL-2.0 */
/* What the attached server's heads come to, for comparison, and what is kept of them. */
#ifndef WEIR_TESTS_HEADS_H
#define WEIR_TESTS_HEADS_H

#include "attached.h"

/* From now on heads are read as the server has it now. */
void heads_look(void);
/* The digest of a request, read by the machine alone, a byte at a time. */
__u64 head_digest(const char *head);
/* A head of `length` bytes, which begins so, with whole lines. head: of more bytes by one */
void head_fill(char *head, size_t length, const char *begin);

#define SAYINGS 130 /* of one head: within so many it is looked for, and kept */

/* In each request that is kept, has the user be another one. What follows from that is found out anew. A second time, it is the same again. */
void requests_poison(void);
/* Has a CPU kept the head with which this payload begins? */
bool request_is_kept(const char *payload);
bool answer_is_kept(const char *payload);

#endif
