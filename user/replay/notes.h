/* SPDX-License-Identifier: GPL-2.0 */
/* What a replay is told in words: names of subjects, and what no recording can say. */
#ifndef WEIR_USER_REPLAY_NOTES_H
#define WEIR_USER_REPLAY_NOTES_H

#include <jansson.h>

#include "replay/recording.h"
#include "state/state.h"
#include "weir/conn/explain.h"

/* Whom the limit has charged, by what the recording says of the request. The caller frees it. */
char *replay_subject_name(const struct server *server, const struct datapath *dp,
			  const struct weir_explained_limit *limit, const struct recorded *recorded);

/* Texts: what of the servers' policy is not replayed as it would be in force. by_time: as in struct replay. A new reference. */
json_t *replay_notes(const struct server *const *servers, size_t n, bool by_time);

#endif
