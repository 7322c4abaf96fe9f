/* SPDX-License-Identifier: GPL-2.0 */
/* What the maps of a network namespace, which its servers share, have room for. */
#ifndef WEIR_USER_STATE_ROOM_H
#define WEIR_USER_STATE_ROOM_H

#include "state/state.h"

/*
 * Is there room for this server, in the place of the one of its name, beside the others of its namespace? -ENOSPC says of what
 * there are too many. Of tokens and addresses, most of which are in files, who reads those counts.
 */
int state_check_room(const struct state *state, const struct server *server, struct error *err);

#endif
