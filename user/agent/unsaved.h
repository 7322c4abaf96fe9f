/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The way off needs no disk. What is turned off is off in the kernel first, and saved afterwards; where it cannot be saved, a
 * note stands in for the file: an empty directory beside the pins, on the bpffs, which is memory. So an agent that is started
 * again does not bring the limits back. Whatever else changes, a limit that goes included, is saved before, or does not change.
 */
#ifndef WEIR_USER_AGENT_UNSAVED_H
#define WEIR_USER_AGENT_UNSAVED_H

#include "agent/agent.h"

enum unsaved {
	UNSAVED_PAUSED,
	UNSAVED_DRAINING,
	UNSAVED_ENDED,
	UNSAVED_KINDS,
};

/* Saves the state; no note is needed any more then. */
int agent_save(struct agent *agent, struct error *err);
/* The same where this override is all that is other than it was. */
int agent_save_override(struct agent *agent, int slot, const struct limit *limit, const struct override *override,
			struct error *err);
/* Of an agent that begins: what was not to be persisted before may have to be now. A full disk keeps no agent from its servers. */
void agent_save_first(struct agent *agent);
/* For who reads the state after this agent, which may be an earlier version: it is one line then. */
void agent_save_last(struct agent *agent);
/* Saves that a server is off, or notes it; agent->unsaved says why then. */
void agent_save_off(struct agent *agent, int slot, const char *name, enum unsaved how);
/*
 * A change was saved, then failed, as err says, and was taken back: saves the state without it. If that fails, the file still has the
 * change: err says that, too, and it is tried again.
 */
void agent_save_back(struct agent *agent, struct error *err);
/* Warns the client whose command turned something off, if that could not be saved. */
void agent_tell_unsaved(const struct agent *agent, json_t *result);
/* Once more, if there is anything. */
void agent_save_again(struct agent *agent);
/* What was noted, on the state that was loaded. */
void unsaved_take_up(struct agent *agent);

#endif
