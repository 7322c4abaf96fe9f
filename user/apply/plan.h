/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What applying or deleting objects comes to, for every server that they are for. A plan is made, and checked, as a whole before
 * anything is changed. Only plan_do() changes something.
 */
#ifndef WEIR_USER_APPLY_PLAN_H
#define WEIR_USER_APPLY_PLAN_H

#include "policy/policy.h"

struct agent;

struct planned {
	char name[PARSE_NAME_SIZE];
	int slot;			      /* negative: not attached yet */
	struct server *fresh;		      /* owned: what is to be attached then */
	json_t *objects;		      /* all that it is to have */
	struct server *made;		      /* owned: what it is to be */
	json_t *export_before, *export_after; /* what it is, and will be, as documents: whole if the plan compares */
	bool overrides_change;		      /* which they then may not have */
	bool throttle_goes;		      /* it had one */
	bool ends;			      /* its Throttle attached it, and goes */
	/* while it is carried out: */
	bool attached;
	bool chooses;	       /* its lane inside anew: it was attached, or asked for another one */
	__u64 draining;	       /* it has ended, but for so many translated connections */
	struct server *before; /* owned */
};

struct plan {
	struct planned *servers; /* owned: room for WEIR_MAX_SERVERS, as attached and new ones are no more than that */
	size_t n;
	json_t *given;	     /* the objects, unless they are to be deleted */
	bool checked;	     /* they are documents as policy files hold them */
	bool compares;	     /* them with what there is: also with what the agent follows */
	json_t *netns_inode; /* borrowed: of who gives the command; or NULL */
};

void planned_clear(struct planned *p);
void plan_clear(struct plan *plan);
#define CLEANUP_PLAN __attribute__((cleanup(plan_clear)))

/*
 * objects: [{file, document}]. server: which one documents without a name of a server are for; NULL: the only one there is.
 * prune: objects that are not among these go.
 */
int plan_apply(struct plan *plan, const struct state *state, json_t *objects, const char *server, bool prune,
	       struct error *err);
int plan_delete(struct plan *plan, const struct state *state, json_t *objects, const char *server,
		bool ignore_not_found, struct error *err);

/*
 * plan_follow.c: what the agent follows. wanted: all of it, [{server, object: {file, followed, document}}], where a
 * server that is not given is the only one there is. Followed objects that are not among these go. Servers that stay as they are
 * are not in the plan. whole: nothing is missing that files say, so that a persisted server whose Throttle is in none of them ends.
 */
int plan_follow(struct plan *plan, const struct state *state, json_t *wanted, bool whole, struct error *err);

/* What plans are made of. A server that is there, with all its objects. NULL: no memory. */
struct planned *plan_server(struct plan *plan, const struct state *state, int slot);
/*
 * The server that an object ({file, document}) is for: of a Throttle its own; else the one that is named, among those that are
 * there and those that come with the plan. *out is left as it is where the object is a Throttle and `throttles` is not set, and
 * the other way round: Throttles come first, so that the servers that they attach are known.
 */
int plan_target(struct plan *plan, const struct state *state, json_t *object, const char *server, bool throttles,
		struct planned **out, struct error *err);
/* Makes the new state of every server, and checks each as a whole. */
int plan_make(struct plan *plan, const struct state *state, struct error *err);

/*
 * plan_check.c: ports that others have, and namespaces that are not there, which plan_do() would refuse. Namespaces of new servers are noted
 * in the plan.
 */
int plan_check(struct agent *agent, struct plan *plan, struct error *err);

/* plan_do.c: carries out a plan: all of it, or what was begun is taken back. */
int plan_do(struct agent *agent, struct plan *plan, struct error *err);

/*
 * plan_changes.c. {changes: [{server, object, change}]}, and with documents {before: [document], after: [document]}. Of a Throttle that goes,
 * server_is says what becomes of its server. A new reference.
 */
json_t *plan_to_json(const struct plan *plan, bool documents);
/* What the levels of changed servers mean (priority_seats_to_json()), each with its server; before the plan is carried out. */
json_t *plan_levels(const struct plan *plan);
/* A line of the log for each change, behind these words. */
void plan_log(const struct plan *plan, const char *words);

#endif
