/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The files of the history: JSON, an object a line, a file for each hour (by its name, in UTC), those of the last day.
 *
 *   {"time": UNIX_S, "seconds": S, "by": WHAT, "server": NAME, ..., "requests": N, "refused": N, "dry_run": N, "held": N}
 *
 * S has milliseconds, without which the rate of a short row would be far off. A line that is not whole, as a machine that lost its power
 * leaves it, is passed over.
 */
#ifndef WEIR_USER_HISTORY_FILES_H
#define WEIR_USER_HISTORY_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <time.h>

#include "weir/base/duration.h"
#include "weir/base/types.h"

#include "base/error.h"

#define HISTORY_DIR "history" /* in the state directory, or where the state is persisted */
#define HISTORY_HOURS 24
#define HISTORY_NS (HISTORY_HOURS * 3600 * WEIR_NS_PER_S)

/*
 * What is not of the last day is removed when the clock has told the same day for an hour: one that is set a day ahead and back takes nothing
 * away. An agent that begins takes the clock as it is.
 */
struct history_clock {
	bool known;
	time_t ahead;	/* of the time since boot */
	__u64 steady_s; /* since boot: until then it is not believed */
};
bool history_clock_is_steady(struct history_clock *clock, time_t now, __u64 since_boot_s);

/* Adds whole lines to the file of the hour, and, with prune, removes those that are not of the last day. Makes the directory. */
int history_append(const char *dir, time_t now, bool prune, const char *lines, size_t length, struct error *err);

/*
 * Has take() called with each object of this kind that ends after `since`, oldest first, until it returns false. What begins later than
 * now was written by a clock that was wrong.
 */
typedef bool history_take(void *arg, json_t *object);
int history_read(const char *dir, time_t since, time_t now, const char *by, history_take *take, void *arg,
		 struct error *err);

/* last.json beside them, replaced as a whole. load: NULL where there is none that can be read. A new reference. */
int history_save_last(const char *dir, json_t *json, struct error *err);
json_t *history_load_last(const char *dir);

/* Everything that was written, and the directory, unless anything else is in it. */
void history_remove(const char *dir);

#endif
