/* SPDX-License-Identifier: GPL-2.0 */
#include "replay/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "metrics/metrics.h"
#include "model/parse.h"
#include "weir/http/identity.h"

#define CUT "..." /* as trace_json() marks it */

void recorded_clear(struct recorded *recorded)
{
	free(recorded->target);
	json_decref(recorded->line);
	*recorded = (struct recorded){ 0 };
}

/* 2026-11-20T13:14:15.123456Z */
static int read_time(const char *text, __u64 *out)
{
	struct tm parts = { 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
	__u64 ns = 0, unit = WEIR_NS_PER_S;

	if (!rest)
		return -EINVAL;
	if (*rest == '.')
		for (rest++; *rest >= '0' && *rest <= '9' && unit > 1; rest++)
			ns += (*rest - '0') * (unit /= 10);
	if (strcmp(rest, "Z") != 0)
		return -EINVAL;
	*out = timegm(&parts) * WEIR_NS_PER_S + ns;
	return 0;
}

static int read_target(struct recorded *recorded, const char *target)
{
	size_t length = target ? strlen(target) : 0;

	recorded->missing[RECORDED_NO_TARGET] = !target || !recorded->method;
	if (recorded->missing[RECORDED_NO_TARGET]) {
		recorded->method = "GET";
		target = "/";
		length = 1;
	}
	if (length > strlen(CUT) && !strcmp(target + length - strlen(CUT), CUT)) {
		recorded->missing[RECORDED_CUT_TARGET] = true;
		length -= strlen(CUT);
	}
	recorded->target = strndup(target, length);
	return recorded->target ? 0 : -ENOMEM;
}

static bool is_anonymous(const char *source)
{
	return !strcmp(source, metrics_reasons[weir_source_reason(WEIR_SOURCE_ANONYMOUS)].label);
}

/* A member that is a text; NULL: it is none, which *missing notes, where it must be one. */
static const char *text_of(json_t *line, const char *key, const char **missing)
{
	const char *text = json_string_value(json_object_get(line, key));

	if (!text && missing)
		*missing = key;
	return text;
}

static int read_members(struct recorded *recorded, struct error *err)
{
	json_t *line = recorded->line;
	const char *missing = NULL;
	const char *time = text_of(line, "time", &missing), *source = text_of(line, "source", &missing);
	const char *user = text_of(line, "user", &missing), *decision = text_of(line, "decision", &missing);
	struct datapath_cidr client;

	recorded->server = text_of(line, "server", &missing);
	recorded->client = text_of(line, "client", &missing);
	if (missing)
		return error_set(err, -EINVAL, "not a line of weir trace --json: it has no \"%s\"", missing);
	if (read_time(time, &recorded->time_ns))
		return error_set(err, -EINVAL, "\"%s\" is not a time", time);
	if (parse_cidr(recorded->client, &client, err) || metrics_decision_parse(decision, &recorded->decision, err))
		return -EINVAL;
	memcpy(recorded->address, client.address, sizeof(recorded->address));
	recorded->user = is_anonymous(source) ? NULL : user;
	recorded->namespace = text_of(line, "namespace", NULL);
	recorded->method = text_of(line, "method", NULL);
	recorded->monotonic_ns = json_integer_value(json_object_get(line, "monotonic_ns"));
	recorded->groups = json_object_get(line, "groups");
	recorded->missing[RECORDED_NO_GROUPS] = !json_is_array(recorded->groups);
	if (recorded->missing[RECORDED_NO_GROUPS])
		recorded->groups = NULL;
	return read_target(recorded, text_of(line, "target", NULL)) ? error_set(err, -ENOMEM, "out of memory") : 0;
}

int recorded_read(const char *text, size_t length, struct recorded *out, struct error *err)
{
	json_error_t why;

	*out = (struct recorded){ .line = json_loadb(text, length, 0, &why) };
	if (!out->line)
		return error_set(err, -EINVAL, "not a line of weir trace --json: %s", why.text);
	return read_members(out, err);
}
