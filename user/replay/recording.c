/* SPDX-License-Identifier: GPL-2.0 */
#include "replay/recording.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/utc.h"
#include "metrics/metrics.h"
#include "model/parse.h"
#include "replay/line.h"
#include "weir/http/identity.h"

#define CUT "..." /* as trace_json() marks it */

void recorded_clear(struct recorded *recorded)
{
	json_decref(recorded->groups);
	*recorded = (struct recorded){ 0 };
}

/* Cuts it in the line where it was cut before. */
static void read_target(struct recorded *recorded, char *target)
{
	size_t length = target ? strlen(target) : 0;

	recorded->missing[RECORDED_NO_TARGET] = !target || !recorded->method;
	if (recorded->missing[RECORDED_NO_TARGET]) {
		recorded->method = "GET";
		recorded->target = "/";
		return;
	}
	if (length > strlen(CUT) && !strcmp(target + length - strlen(CUT), CUT)) {
		recorded->missing[RECORDED_CUT_TARGET] = true;
		target[length - strlen(CUT)] = 0;
	}
	recorded->target = target;
}

static bool is_anonymous(const char *identified_by)
{
	return !strcmp(identified_by, metrics_reasons[weir_identified_reason(WEIR_IDENTIFIED_BY_NOBODY)].label);
}

/* Most requests have none that settings name. */
static int read_groups(struct recorded *recorded, const struct line_member *groups, struct error *err)
{
	bool is_list = groups->value && groups->value[0] == '[';

	recorded->missing[RECORDED_NO_GROUPS] = !is_list;
	if (!is_list || groups->length == strlen("[]"))
		return 0;
	recorded->groups = json_loadb(groups->value, groups->length, 0, NULL);
	return recorded->groups ? 0 : error_set(err, -EINVAL, "\"groups\" cannot be read");
}

/* Leaves *out as it is where there is none. */
static int read_number(const struct line_member *member, __u64 *out, struct error *err)
{
	char digits[24];

	if (!member->value || *member->value == 'n')
		return 0;
	if (member->length >= sizeof(digits))
		return error_set(err, -EINVAL, "\"%s\" is too large", member->name);
	memcpy(digits, member->value, member->length);
	digits[member->length] = 0;
	return parse_number(digits, INT64_MAX, out, err);
}

/* What is read of a line. */
enum member {
	TIME,
	IDENTIFIED_BY,
	USER,
	DECISION,
	SERVER,
	CLIENT,
	REQUIRED,
	NAMESPACE = REQUIRED,
	METHOD,
	TARGET,
	GROUPS,
	MONOTONIC_NS,
};

static int read_members(struct recorded *recorded, const struct line_member *members, struct error *err)
{
	struct datapath_cidr client;

	for (enum member i = 0; i < REQUIRED; i++)
		if (!members[i].text)
			return error_set(err, -EINVAL, "not a line of weir trace --json: it has no \"%s\"",
					 members[i].name);
	if (utc_parse(members[TIME].text, &recorded->time_ns))
		return error_set(err, -EINVAL, "\"%s\" is not a time", members[TIME].text);
	if (parse_cidr(members[CLIENT].text, &client, err) ||
	    metrics_decision_parse(members[DECISION].text, &recorded->decision, err) ||
	    read_number(&members[MONOTONIC_NS], &recorded->monotonic_ns, err) ||
	    read_groups(recorded, &members[GROUPS], err))
		return -EINVAL;
	memcpy(recorded->address, client.address, sizeof(recorded->address));
	recorded->server = members[SERVER].text;
	recorded->client = members[CLIENT].text;
	recorded->user = is_anonymous(members[IDENTIFIED_BY].text) ? NULL : members[USER].text;
	recorded->namespace = members[NAMESPACE].text;
	recorded->method = members[METHOD].text;
	read_target(recorded, members[TARGET].text);
	return 0;
}

int recorded_read(char *line, size_t length, struct recorded *out, struct error *err)
{
	struct line_member members[] = {
		[TIME] = LINE_MEMBER("time"),
		[IDENTIFIED_BY] = LINE_MEMBER("identified_by"),
		[USER] = LINE_MEMBER("user"),
		[DECISION] = LINE_MEMBER("decision"),
		[SERVER] = LINE_MEMBER("server"),
		[CLIENT] = LINE_MEMBER("client"),
		[NAMESPACE] = LINE_MEMBER("namespace"),
		[METHOD] = LINE_MEMBER("method"),
		[TARGET] = LINE_MEMBER("target"),
		[GROUPS] = LINE_MEMBER("groups"),
		[MONOTONIC_NS] = LINE_MEMBER("monotonic_ns"),
	};
	struct error why;

	*out = (struct recorded){ 0 };
	if (line_read(line, length, members, sizeof(members) / sizeof(*members), &why))
		return error_set(err, -EINVAL, "not a line of weir trace --json: %s", why.text);
	return read_members(out, members, err);
}
