/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policy files that the agent follows: `weir agent --policy FILE-OR-DIR`, each of which is a path that is followed. All that
 * their files say is one set of objects, and is in force as a whole. Of a path with which something is wrong, what it said when it
 * was last right stays in force; that is what the servers' own lists of objects have (objects.h).
 */
#ifndef WEIR_USER_FOLLOW_FOLLOW_H
#define WEIR_USER_FOLLOW_FOLLOW_H

#include <time.h>

#include "policy/policy.h"

struct agent;
struct follow_watch;

/* A file or a directory. */
struct followed {
	const char *path;     /* borrowed: absolute */
	struct policy policy; /* as it was last read */
	bool good;	      /* it could be read, and is right by itself */
	json_t *errors;	      /* texts: why what it says is not in force. Empty: it is */
	time_t since;	      /* Unix time: it has been in force, or wrong, from then on */
	time_t last_success;  /* it was in force then; 0: never */
};

struct followed_paths {
	struct followed *items;
	size_t n;
	struct follow_watch *watch;
};

/* --- followed.c: what a path says */

void followed_clear(struct followed *followed);
struct followed_reading {
	struct policy policy;
	bool good;
	json_t *errors; /* not good: why not, as far as there is memory */
};
/* Reads it, unless it is good and says what it said before: then false, and *out is left as it was. Changes nothing. */
bool followed_read(const struct followed *followed, struct followed_reading *out);
/* Takes over what was read. What is wrong with it is logged, and among its errors. */
void followed_take(struct followed *followed, struct followed_reading *reading);
/* Why it is not in force; logged when that is news. Takes over the list. */
void followed_fail(struct followed *followed, json_t *errors);
/* It is in force now; changed: as something that was not before. */
void followed_succeed(struct followed *followed, bool changed);

/* --- sync.c: what all of them say, put in force */

/* The paths of the agent's options, which are not read yet. -ENOMEM. */
int follow_open(struct agent *agent, struct error *err);
void follow_close(struct agent *agent);
/*
 * Reads them again, and puts in force what all of them say: that is as it is wanted now, so it may be called at any time and
 * any number of times. A job: the agent is not locked, nor in what follows.
 */
void follow_sync(struct agent *agent);
/* The same soon, when nobody has written to them for a moment. For the event loop. */
void follow_wake(struct agent *agent);
/* The same if there are any that are not in force: something else has changed that may help. */
void follow_retry(struct agent *agent);

/* --- watch.c */

/* Calls follow_sync() soon after files have changed. -errno: inotify cannot be had. */
int follow_watch_open(struct follow_watch **out, struct agent *agent, struct error *err);
void follow_watch_close(struct follow_watch *watch);
/* The files and directories that a path consists of now; those of before stay watched as long as they are there. */
void follow_watch_add(struct follow_watch *watch, const struct followed *followed);
/* As if something had changed. */
void follow_watch_wake(struct follow_watch *watch);

/* --- status.c */

/* paths NULL: there are none. [{path, in_force, since, last_success, files, objects, errors: [text]}]; a new reference. */
json_t *follow_to_json(const struct followed_paths *paths);
void follow_measure(const struct followed_paths *paths, json_t *families);

#endif
