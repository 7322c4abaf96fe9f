/* SPDX-License-Identifier: GPL-2.0 */
/* The state's files. What is read is checked as a whole, with the policies in it. */
#ifndef WEIR_USER_SAVED_SAVED_H
#define WEIR_USER_SAVED_SAVED_H

#include "state/state.h"

/*
 * STATE_DIR/state.json, which says of which boot of the machine it is, and with a persist_dir the same there of what commands have
 * set alone. save is atomic and on disk when it returns. load: no file is an empty state; a file that cannot be read in full is an
 * error and changes nothing.
 */
int state_save(struct state *state, const char *state_dir, struct error *err);
/* The same of a state of which one override was set since it was saved: most often that is added to the files (lines.h). */
int state_save_override(struct state *state, int slot, const struct limit *limit, const struct override *override,
			const char *state_dir, struct error *err);
int state_load(struct state *state, const char *state_dir, struct error *err);

enum state_origin {
	STATE_NEW,	 /* there is no file */
	STATE_CURRENT,	 /* from the state directory: of this boot */
	STATE_PERSISTED, /* from the persist_dir: what commands had set before the machine was restarted */
	STATE_OUTDATED,	 /* the state directory's is of another boot, and nothing was persisted: empty */
};
/*
 * The state that an agent starts with. What is in the state directory is newer than what was persisted, if it is of this boot.
 * persist_dir may be NULL; if not, it is the state's from now on. Returns an enum state_origin, or -errno.
 */
int state_begin(struct state *state, const char *state_dir, const char *persist_dir, struct error *err);
/*
 * The server without what policy files have set that the agent follows: itself, or *made, which the caller frees; NULL: nothing
 * is left.
 */
struct server *server_persisted(struct server *server, struct server **made);

/* Turns the servers of a file of the version before into those of this one. */
void state_upgrade(json_t *servers);
/* Reads what earlier agents of this version called `source` as the file that limits and objects are from. */
void state_name_files(json_t *servers);

#endif
