/* SPDX-License-Identifier: GPL-2.0 */
/* The texts of the answers: what the map `answers` is filled with. */
#ifndef WEIR_USER_DATAPATH_ANSWER_TEXT_H
#define WEIR_USER_DATAPATH_ANSWER_TEXT_H

#include "weir/abi/answer.h"

#define WEIR_ANSWER_NAME 64 /* bytes of a limit's name in an answer, with its NUL */

/*
 * The answer for a Retry-After of `digits` digits (at most WEIR_RETRY_DIGITS), with 1, 10, 100 or 1000 in its holes; digits 0:
 * the 403 of what is never let pass. limit: its name, which is cut if it is longer than that, and in which whatever may not
 * stand in a header is _; NULL: none is named.
 * -EINVAL: no such kind or digits; -EMSGSIZE: the text does not fit; -ENOMEM.
 */
int weir_answer_make(const char *limit, enum weir_answer_kind kind, unsigned int digits, struct weir_answer *answer);

/* All answers that name a limit. Errors as above. */
int weir_refusal_make(const char *limit, struct weir_refusal *refusal);

/* The 400 for an ambiguity (weir/http/ambiguity.h). -EINVAL: `why` is none; otherwise as above. */
int weir_rejection_make(enum weir_reason why, struct weir_answer *answer);

#endif
