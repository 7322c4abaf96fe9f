/* SPDX-License-Identifier: GPL-2.0 */
/* The texts of a replay: names of subjects, and notes on what a recording does not contain. */
#ifndef WEIR_USER_REPLAY_NOTES_H
#define WEIR_USER_REPLAY_NOTES_H

#include <jansson.h>

#include "replay/recording.h"
#include "state/state.h"
#include "weir/conn/explain.h"

/* The name of the subject that the limit has charged, from the recorded request. The caller frees it. */
char *replay_subject_name(const struct server *server, const struct datapath *dp,
			  const struct weir_explained_limit *limit, const struct recorded *recorded);

/* Texts: what of the servers' policy is not replayed as it would be in force. by_time: as in struct replay. A new reference. */
json_t *replay_notes(const struct server *const *servers, size_t n, bool by_time);

#endif
