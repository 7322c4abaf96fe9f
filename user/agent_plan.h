/* SPDX-License-Identifier: GPL-2.0 */
/* What applying or deleting objects comes to, for every server that they are for. Nothing here changes anything. */
#ifndef WEIR_USER_AGENT_PLAN_H
#define WEIR_USER_AGENT_PLAN_H

#include "policy.h"

struct planned {
	char name[PARSE_NAME_SIZE];
	int slot;			      /* negative: not attached yet */
	struct server *fresh;		      /* owned: what is to be attached then */
	json_t *objects;		      /* all that it is to have */
	struct server *made;		      /* owned: what it is to be */
	json_t *export_before, *export_after; /* what it is, and will be, as documents */
	bool ends;			      /* its Throttle attached it, and goes */
	/* while it is carried out: */
	bool attached;
	struct server *before; /* owned */
};

struct plan {
	struct planned servers[WEIR_MAX_SERVERS];
	size_t n;
	json_t *given;	     /* borrowed: the objects */
	bool deletes;	     /* them */
	json_t *netns_inode; /* borrowed: of who gives the command; or NULL */
};

void plan_clear(struct plan *plan);
#define CLEANUP_PLAN __attribute__((cleanup(plan_clear)))

/*
 * objects: [{source, document}]. server: which one documents without a name of a server are for; NULL: the only one there is.
 * prune: objects that are not among these go.
 */
int plan_apply(struct plan *plan, const struct state *state, json_t *objects, const char *server, bool prune,
	       struct error *err);
int plan_delete(struct plan *plan, const struct state *state, json_t *objects, const char *server,
		bool ignore_not_found, struct error *err);

/* {changes: [{server, object, change}]}, and with documents {before: [document], after: [document]}. A new reference. */
json_t *plan_to_json(const struct plan *plan, bool documents);

#endif
