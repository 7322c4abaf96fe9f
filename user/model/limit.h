/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A limit as people set it: whom and what it is for, and how much. Every server has the built-in ones, which are for all of
 * its requests and whose names say their key: total, namespace, user, source-and-object. As JSON, which is what policy files
 * say, too (* what must be there):
 *
 *   name*      what it is called; of a built-in limit there is neither key nor in_flight nor rules
 *   key*       "total", or one or more of namespace, user, group, source, object, with commas between (key.h)
 *   qps, burst, or in_flight, or open, or deny
 *              the default for each subject: requests a second (a number, or a text for many digits) and at once, or
 *              requests being served, or connections that are open, at one time; deny: none is ever let pass; without any
 *              the limit is for those with an override alone
 *   connections  true: qps and burst are of new connections
 *   over       of connections: "drop", or "reset": whoever is refused gets a RST
 *   rules      which requests it is for (rule.h): those that one of the rules matches; none: all
 *   overrides  {subject*, qps, burst, or in_flight, or open, or deny} for single subjects
 *   mode       "enforce", or "dry-run": counted, and nothing is refused
 *   penalty    how long those who go on while they are refused are kept waiting (backoff_text.h), or "off"
 *   keys       buckets kept; 0: as many as the server's
 *
 * and in state.json alone: number, by which the kernel knows it, and file, the one that it is from.
 */
#ifndef WEIR_USER_MODEL_LIMIT_H
#define WEIR_USER_MODEL_LIMIT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "datapath/limits.h"
#include "model/parse.h"
#include "model/rule.h"

/* For one subject. */
struct override {
	const char *subject; /* canonical (key.h); shared with copies (base/shared_text.h) */
	struct datapath_amount amount;
};

struct limit {
	char name[PARSE_NAME_SIZE];
	__u32 number; /* of one that is not built in; 0: none yet */
	enum weir_limit_kind kind;
	__u8 key;		       /* enum weir_key_part */
	struct datapath_amount amount; /* the default */
	struct rule *rules;
	size_t n_rules;
	struct override *overrides;
	size_t n_overrides;
	__u32 keys;
	bool dry_run;
	bool reset;		     /* of connections: refused by a RST */
	struct weir_backoff penalty; /* without parts: none */
	char *file;		     /* the file that it is from; NULL: the command line */
};

/* The slot of a built-in limit; -ENOENT. */
int limit_builtin(const char *name);
int limit_builtin_key(const char *name, __u8 *key);
/* slot: below WEIR_BUILTIN_LIMITS */
const char *limit_builtin_name(__u32 slot);
static inline bool limit_is_builtin(const struct limit *limit)
{
	return limit_builtin(limit->name) >= 0;
}

/*
 * Its slot in the kernel. Limits with a name of their own, and priority levels, are numbered, and no number is given twice:
 * so a slot that is used again has another epoch.
 */
__u32 limit_slot(const struct limit *limit);
static inline __u32 limit_slot_of_number(__u32 number)
{
	return WEIR_BUILTIN_LIMITS + number % (WEIR_SERVER_LIMITS - WEIR_BUILTIN_LIMITS);
}

void limit_clear(struct limit *limit);
#define CLEANUP_LIMIT __attribute__((cleanup(limit_clear)))

/* The override of this canonical subject, or NULL. */
struct override *limit_override(const struct limit *limit, const char *subject);
/* subject is copied. -ENOMEM. */
int limit_override_add(struct limit *limit, const char *subject, const struct datapath_amount *amount);
void limit_override_remove(struct limit *limit, struct override *override);

/* The word that counts requests that it refuses; of connections there is none (WEIR_REASON_NONE). */
enum weir_reason limit_reason(enum weir_limit_kind kind, __u8 key);

/* Does it come before the other one, as the narrower of two? Negative, 0 or positive, as for qsort(). */
int limit_compare(const struct limit *a, const struct limit *b);

/* The same in everything but the file. */
bool limit_equal(const struct limit *a, const struct limit *b);
bool amount_equal(const struct datapath_amount *a, const struct datapath_amount *b);
/* The same amounts for the same subjects, in the same order. */
bool limit_overrides_equal(const struct limit *a, const struct limit *b);
/* What of a limit's overrides is other than it was, in any order. */
struct overrides_diff {
	const struct override **put;  /* those of `to` that are new, or have another amount */
	const struct override **gone; /* those of `from` whose subjects have none any more */
	size_t n_put, n_gone;
};
/* limit_diff.c. from: NULL for none. *out is the caller's to clear, on failure too. -ENOMEM. */
int limit_overrides_diff(const struct limit *from, const struct limit *to, struct overrides_diff *out);
void overrides_diff_clear(struct overrides_diff *diff);
#define CLEANUP_OVERRIDES_DIFF __attribute__((cleanup(overrides_diff_clear)))

/* Caller owns what *out points to (limit_clear), on failure too. -ENOMEM. */
int limit_copy(const struct limit *limit, struct limit *out);

/* A new reference; NULL without memory. */
json_t *limit_to_json(const struct limit *limit);
/* The same without overrides, of which there may be thousands. */
json_t *limit_settings_to_json(const struct limit *limit);
/* Checks every value, but not that anything is limited. Caller owns what *out points to (limit_clear). */
int limit_from_json(json_t *json, struct limit *out, struct error *err);
/* Is anything limited? */
int limit_check_amounts(const struct limit *limit, struct error *err);

#endif
