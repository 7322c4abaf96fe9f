/* SPDX-License-Identifier: GPL-2.0 */
/* What came of the requests of a recording. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "replay/notes.h"
#include "replay/private.h"

static const char *limit_name(struct replay *replay, __u32 server, __u32 slot)
{
	char *name = replay->names[server][slot];

	if (!*name)
		server_slot_name(replay->servers[server], slot, name);
	return name;
}

/* --- one request */

static void count_row(struct tally_row *row, const struct weir_explained_limit *e, bool dry_run)
{
	bool refuses = e->flags & WEIR_EXPLAINED_REFUSED;

	row->asked++;
	row->refused += refuses && !dry_run;
	row->would_refuse += e->flags & WEIR_EXPLAINED_DRY_RUN || (refuses && dry_run);
}

/* Whom it has charged, too, where it does not charge all alike. */
static int count_limit(struct replay *replay, __u32 server, const struct recorded *recorded,
		       const struct weir_explained_limit *e, bool dry_run)
{
	const struct tally_key all = { server, e->slot, 0 }, one = { server, e->slot, e->subject };
	struct tally_row *row = tally_row(&replay->tally, &all);

	if (!row)
		return -ENOMEM;
	count_row(row, e, dry_run);
	if (!e->subject)
		return 0;
	row = tally_row(&replay->tally, &one);
	if (row && !row->name)
		row->name = replay_subject_name(replay->servers[server], replay->dp, e, recorded);
	if (!row || !row->name)
		return -ENOMEM;
	count_row(row, e, dry_run);
	return 0;
}

static int count_limits(struct replay *replay, __u32 server, const struct recorded *recorded,
			const struct weir_explained *answer, struct error *err)
{
	bool dry_run = answer->trace.decision == WEIR_DRY_RUN_SHED;
	int ret = 0;

	for (__u32 n = 0; n < answer->n_limits && n < WEIR_MATCHES_MAX && !ret; n++)
		if (answer->limits[n].flags & WEIR_EXPLAINED_ASKED)
			ret = count_limit(replay, server, recorded, &answer->limits[n], dry_run);
	return ret ? error_set(err, ret, "out of memory") : 0;
}

/* The limit that weir trace names (show/trace.c): the slowest; else the first, where all are in dry runs of their own. */
static __u32 named_slot(const struct weir_explained *answer)
{
	const struct weir_explained_limit *first = NULL;

	for (__u32 n = 0; n < answer->n_limits && n < WEIR_MATCHES_MAX; n++) {
		const struct weir_explained_limit *e = &answer->limits[n];

		if (!(e->flags & (WEIR_EXPLAINED_DRY_RUN | WEIR_EXPLAINED_REFUSED)))
			continue;
		if (e->slot == answer->trace.named)
			return e->slot;
		first = first ?: e;
	}
	return first ? first->slot : answer->trace.named;
}

static void say(struct replay *replay, __u32 server, const struct weir_explained *answer, struct replayed *out)
{
	bool refuses = answer->trace.decision == WEIR_SHED || answer->trace.decision == WEIR_DRY_RUN_SHED;

	*out = (struct replayed){ .decided = true, .decision = answer->trace.decision };
	if (!refuses)
		return;
	out->retry_s = answer->trace.retry_s;
	out->limit = limit_name(replay, server, named_slot(answer));
}

int replay_count(struct replay *replay, const struct replay_line *line, const struct weir_explained *answer,
		 struct replayed *out, struct error *err)
{
	const struct recorded *recorded = &line->recorded;

	*out = (struct replayed){ 0 };
	if (!line->asked)
		return 0;
	if (answer->lost < WEIR_REASON_COUNT || !answer->whole) {
		replay->unread++;
		return 0;
	}
	replay->requests++;
	for (int i = 0; i < RECORDED_MISSING; i++)
		replay->missing[i] += recorded->missing[i];
	replay->recorded[recorded->decision]++;
	replay->replayed[answer->trace.decision]++;
	replay->same += recorded->decision == answer->trace.decision;
	say(replay, line->server, answer, out);
	return count_limits(replay, line->server, recorded, answer, err);
}

/* --- all of them */

static json_t *decisions_json(const __u64 counts[static WEIR_REASON_COUNT])
{
	static const enum weir_reason reasons[] = { WEIR_PASSED, WEIR_SHED, WEIR_EXEMPT, WEIR_DRY_RUN_SHED };
	json_t *object = json_object();

	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		json_object_set_new(object, metrics_reasons[reasons[i]].label, json_integer(counts[reasons[i]]));
	return object;
}

static json_t *row_json(struct replay *replay, const struct tally_row *row)
{
	json_t *object = json_pack("{s:s, s:s}", "server", replay->servers[row->key.server]->name, "limit",
				   limit_name(replay, row->key.server, row->key.slot));

	if (row->key.subject)
		json_object_set_new(object, "subject", json_string(row->name));
	json_object_set_new(object, "requests", json_integer(row->asked));
	json_object_set_new(object, "refused", json_integer(row->refused));
	json_object_set_new(object, "would_refuse", json_integer(row->would_refuse));
	return object;
}

/* Is there room for one more of the limit's subjects? */
static bool is_shown(struct replay *replay, const struct tally_row *row, size_t top)
{
	const struct tally_key limit = { row->key.server, row->key.slot, 0 };
	struct tally_row *all = tally_row(&replay->tally, &limit);

	return all && all->subjects++ < top;
}

static int add_rows(struct replay *replay, size_t top, json_t *limits, json_t *subjects)
{
	CLEANUP_FREE struct tally_row **rows = NULL;
	int n = tally_list(&replay->tally, &rows);

	for (int i = 0; i < n; i++) {
		if (!rows[i]->key.subject)
			json_array_append_new(limits, row_json(replay, rows[i]));
		else if (is_shown(replay, rows[i], top))
			json_array_append_new(subjects, row_json(replay, rows[i]));
	}
	return n;
}

json_t *replay_result(struct replay *replay, size_t top)
{
	json_t *limits = json_array(), *subjects = json_array();
	json_t *result = json_pack(
		"{s:I, s:f, s:o, s:o, s:I, s:{s:I, s:I, s:I}, s:{s:I, s:I, s:I}, s:o, s:o, s:o}", "requests",
		(json_int_t)replay->requests, "seconds", (double)(replay->latest_ns - replay->first_ns) / WEIR_NS_PER_S,
		"recorded", decisions_json(replay->recorded), "replayed", decisions_json(replay->replayed), "changed",
		(json_int_t)(replay->requests - replay->same), "left_out", "other_servers",
		(json_int_t)replay->elsewhere, "rejected", (json_int_t)replay->rejected, "unread",
		(json_int_t)replay->unread, "missing", "target", (json_int_t)replay->missing[RECORDED_NO_TARGET],
		"rest_of_target", (json_int_t)replay->missing[RECORDED_CUT_TARGET], "groups",
		(json_int_t)replay->missing[RECORDED_NO_GROUPS], "limits", limits, "subjects", subjects, "notes",
		replay_notes((const struct server *const *)replay->servers, replay->n_servers, replay->by_time));

	if (result && add_rows(replay, top, limits, subjects) < 0) {
		json_decref(result);
		return NULL;
	}
	return result;
}
