/* SPDX-License-Identifier: GPL-2.0 */
#include "probe/probe.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name, *without;
} facts[PROBE_FACT_COUNT] = {
#define X(id, name, without) [PROBE_##id] = { name, without },
	PROBE_FACTS(X)
#undef X
};

static const char *const lanes[PROBE_LANE_COUNT] = {
#define X(id, name) [PROBE_LANE_##id] = (name),
	PROBE_LANES(X)
#undef X
};

const char *probe_fact_name(enum probe_fact fact)
{
	return facts[fact].name;
}

const char *probe_answer_name(enum probe_answer answer)
{
	static const char *const names[] = { "unknown", "no", "yes" };

	return names[answer];
}

const char *probe_lane_name(enum probe_lane lane)
{
	return lanes[lane];
}

const char *probe_mode_name(enum probe_mode mode)
{
	static const char *const names[] = { "full", "lesser", "none", "unknown" };

	return names[mode];
}

void probe_set(struct probe *probe, enum probe_fact fact, enum probe_answer answer, const char *format, ...)
{
	va_list args;

	probe->facts[fact].answer = answer;
	va_start(args, format);
	vsnprintf(probe->facts[fact].why, sizeof(probe->facts[fact].why), format, args);
	va_end(args);
}

/* --- from facts to lanes */

static struct probe_result full(const char *how)
{
	return (struct probe_result){ .mode = PROBE_FULL, .how = how };
}

static struct probe_result lesser(const char *how, enum probe_fact without)
{
	return (struct probe_result){ .mode = PROBE_LESSER, .how = how, .reason = facts[without].without };
}

/* The first of these facts, up to PROBE_FACT_COUNT, that is not a yes. */
static enum probe_fact first_missing(const struct probe *probe, const enum probe_fact *needed)
{
	while (*needed != PROBE_FACT_COUNT && probe->facts[*needed].answer == PROBE_YES)
		needed++;
	return *needed;
}

static struct probe_result without(const struct probe *probe, enum probe_fact missing)
{
	if (probe->facts[missing].answer == PROBE_NO)
		return (struct probe_result){ .mode = PROBE_NOTHING, .how = "-", .reason = facts[missing].without };
	return (struct probe_result){
		.mode = PROBE_NOT_KNOWN,
		.how = "-",
		.reason = facts[missing].name,
		.why = probe->facts[missing].why,
	};
}

/* With all that is needed: full. */
static struct probe_result needs(const struct probe *probe, const char *how, const enum probe_fact *needed)
{
	enum probe_fact missing = first_missing(probe, needed);

	return missing == PROBE_FACT_COUNT ? full(how) : without(probe, missing);
}

static struct probe_result answer(const struct probe *probe)
{
	static const enum probe_fact by_tcx[] = { PROBE_KERNEL, PROBE_BTF,  PROBE_PROGRAMS,
						  PROBE_TCX,	PROBE_MAPS, PROBE_FACT_COUNT };
	static const enum probe_fact by_clsact[] = { PROBE_KERNEL, PROBE_BTF,  PROBE_PROGRAMS,
						     PROBE_CLSACT, PROBE_MAPS, PROBE_FACT_COUNT };

	if (probe->facts[PROBE_TCX].answer == PROBE_YES)
		return needs(probe, "tcx", by_tcx);
	return needs(probe, "clsact", by_clsact);
}

static struct probe_result translate(const struct probe *probe)
{
	struct probe_result answered = answer(probe);

	if (answered.mode != PROBE_FULL || probe->facts[PROBE_UNTRACKED].answer == PROBE_YES)
		return (struct probe_result){ answered.mode, "-", answered.reason, answered.why };
	if (probe->facts[PROBE_UNTRACKED].answer == PROBE_UNKNOWN)
		return without(probe, PROBE_UNTRACKED);
	return lesser("close", PROBE_UNTRACKED);
}

/* By pacing, and where that cannot be, or what comes unseen, by dropping at the socket. */
static struct probe_result hold(const struct probe *probe)
{
	static const enum probe_fact to_pace[] = { PROBE_TCX, PROBE_IFB, PROBE_FQ, PROBE_FACT_COUNT };
	static const enum probe_fact to_drop[] = { PROBE_HOLD_PROGRAM, PROBE_CGROUP2, PROBE_FACT_COUNT };
	enum probe_fact no_pace = first_missing(probe, to_pace), no_drop = first_missing(probe, to_drop);
	struct probe_result answered = answer(probe);

	if (answered.mode != PROBE_FULL)
		return (struct probe_result){ answered.mode, "-", answered.reason, answered.why };
	if (no_pace == PROBE_FACT_COUNT)
		return no_drop == PROBE_FACT_COUNT ? full("pace") : lesser("pace", no_drop);
	if (no_drop != PROBE_FACT_COUNT)
		return without(probe, no_drop);
	return probe->facts[no_pace].answer == PROBE_NO ? lesser("drop", no_pace) : without(probe, no_pace);
}

struct probe_result probe_lane(const struct probe *probe, enum probe_lane lane)
{
	static const enum probe_fact to_reset[] = { PROBE_SOCK_DIAG, PROBE_FACT_COUNT };
	static const enum probe_fact to_survive[] = { PROBE_PINS, PROBE_FACT_COUNT };

	switch (lane) {
	case PROBE_LANE_ANSWER:
		return answer(probe);
	case PROBE_LANE_TRANSLATE:
		return translate(probe);
	case PROBE_LANE_HOLD:
		return hold(probe);
	case PROBE_LANE_RESET:
		return needs(probe, "-", to_reset);
	default:
		return needs(probe, "-", to_survive);
	}
}

/* What a table shows as "-" is null in JSON. */
static json_t *text_or_null(const char *text)
{
	return *text && strcmp(text, "-") != 0 ? json_string(text) : json_null();
}

json_t *probe_to_json(const struct probe *probe)
{
	json_t *found = json_array(), *follows = json_array();

	for (int fact = 0; fact < PROBE_FACT_COUNT; fact++)
		json_array_append_new(found, json_pack("{s:s, s:s, s:o}", "probe", facts[fact].name, "result",
						       probe_answer_name(probe->facts[fact].answer), "why",
						       text_or_null(probe->facts[fact].why)));
	for (int lane = 0; lane < PROBE_LANE_COUNT; lane++) {
		struct probe_result result = probe_lane(probe, lane);

		json_array_append_new(follows, json_pack("{s:s, s:s, s:o, s:s?}", "lane", lanes[lane], "mode",
							 probe_mode_name(result.mode), "how", text_or_null(result.how),
							 "reason", result.reason));
	}
	return json_pack("{s:o, s:o}", "facts", found, "lanes", follows);
}
