/* SPDX-License-Identifier: GPL-2.0 */
/* The texts of the answers: what the map `answers` is filled with. */
#ifndef WEIR_USER_DATAPATH_ANSWER_TEXT_H
#define WEIR_USER_DATAPATH_ANSWER_TEXT_H

#include "weir/abi/answer.h"

/*
 * The answer for a Retry-After of `digits` (1 to WEIR_RETRY_DIGITS) digits, with 1, 10, 100 or 1000 in its holes.
 * -EINVAL: no such kind or digits; -EMSGSIZE: the text does not fit; -ENOMEM.
 */
int weir_answer_make(enum weir_answer_kind kind, unsigned int digits, struct weir_answer *answer);

/* The 400 for an ambiguity (weir/http/ambiguity.h). -EINVAL: `why` is none; otherwise as above. */
int weir_rejection_make(enum weir_reason why, struct weir_answer *answer);

#endif
