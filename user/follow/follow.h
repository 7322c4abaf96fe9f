/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Policy files that the agent follows: `weir agent --policy FILE-OR-DIR`, each of which is a source. All that the sources say is
 * one set of objects, and is in force as a whole. Of a source with which something is wrong, what it said when it was last right
 * stays in force; that is what the servers' own lists of objects have (objects.h).
 */
#ifndef WEIR_USER_FOLLOW_SOURCE_H
#define WEIR_USER_FOLLOW_SOURCE_H

#include <time.h>

#include "policy/policy.h"

struct agent;
struct policy_watch;

struct policy_source {
	const char *path;     /* borrowed: absolute */
	struct policy policy; /* as it was last read */
	bool good;	      /* it could be read, and is right by itself */
	json_t *errors;	      /* texts: why what it says is not in force. Empty: it is */
	time_t since;	      /* Unix time: it has been in force, or wrong, from then on */
	time_t last_success;  /* it was in force then; 0: never */
};

struct policy_sources {
	struct policy_source *items;
	size_t n;
	struct policy_watch *watch;
};

/* --- source.c: what a source says */

void policy_source_clear(struct policy_source *source);
struct policy_reading {
	struct policy policy;
	json_t *errors;
};
/* Reads it, unless it is good and says what it said before: then false, and *out is left as it was. Changes nothing. */
bool policy_source_read(const struct policy_source *source, struct policy_reading *out);
/* Takes over what was read. What is wrong with it is logged, and among its errors. */
void policy_source_take(struct policy_source *source, struct policy_reading *reading);
/* Why it is not in force; logged when that is news. Takes over the list. */
void policy_source_fail(struct policy_source *source, json_t *errors);
/* It is in force now; changed: as something that was not before. */
void policy_source_succeed(struct policy_source *source, bool changed);

/* --- sync.c: what all of them say, put in force */

/* The sources of the agent's options, which are not read yet. -ENOMEM. */
int policy_sources_open(struct agent *agent, struct error *err);
void policy_sources_close(struct agent *agent);
/*
 * Reads them again, and puts in force what all of them say: that is as it is wanted now, so it may be called at any time and
 * any number of times. A job: the agent is not locked, nor in what follows.
 */
void policy_sources_sync(struct agent *agent);
/* The same soon, when nobody has written to them for a moment. For the event loop. */
void policy_sources_wake(struct agent *agent);
/* The same if there are any that are not in force: something else has changed that may help. */
void policy_sources_retry(struct agent *agent);

/* --- watch.c */

/* Calls policy_sources_sync() soon after files have changed. -errno: inotify cannot be had. */
int policy_watch_open(struct policy_watch **out, struct agent *agent, struct error *err);
void policy_watch_close(struct policy_watch *watch);
/* The files and directories that a source consists of now; those of before stay watched as long as they are there. */
void policy_watch_source(struct policy_watch *watch, const struct policy_source *source);
/* As if something had changed. */
void policy_watch_wake(struct policy_watch *watch);

/* --- status.c */

/* [{path, in_force, since, last_success, files, objects, errors: [text]}]; a new reference. */
json_t *policy_sources_to_json(const struct policy_sources *sources);
void policy_sources_measure(const struct policy_sources *sources, json_t *families);

#endif
