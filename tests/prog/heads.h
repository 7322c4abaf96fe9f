/* SPDX-License-Identifier: GPL-2.0 */
/* What the attached server's heads come to, for comparison. */
#ifndef WEIR_TESTS_HEADS_H
#define WEIR_TESTS_HEADS_H

#include "attached.h"

/* From now on heads are read as the server has it now. */
void heads_look(void);
/* The digest of a request, read by the machine alone, a byte at a time. */
__u64 head_digest(const char *head);

#endif
