/* SPDX-License-Identifier: GPL-2.0 */
/* The policy files that the agent follows, for status and metrics. */
#include "follow/follow.h"
#include "metrics/metrics.h"

#define TIME_TEXT 32

/* As RFC 3339 has it; null for never. */
static json_t *time_text(time_t when)
{
	char text[TIME_TEXT];
	struct tm parts;

	if (!when || !gmtime_r(&when, &parts))
		return json_null();
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	return json_string(text);
}

static bool in_force(const struct followed *followed)
{
	return !json_array_size(followed->errors);
}

json_t *follow_to_json(const struct followed_paths *paths)
{
	json_t *list = json_array();

	for (size_t i = 0; paths && i < paths->n; i++) {
		const struct followed *followed = &paths->items[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:b, s:o, s:o, s:I, s:I, s:O}", "path", followed->path,
						"in_force", in_force(followed), "since", time_text(followed->since),
						"last_success", time_text(followed->last_success), "files",
						(json_int_t)followed->policy.n_files, "objects",
						(json_int_t)followed->policy.n, "errors", followed->errors));
	}
	return list;
}

void follow_measure(const struct followed_paths *paths, json_t *families)
{
	json_t *ok = metrics_add_family(
		families, "weir_policy_ok", "gauge",
		"1 if the current content of a followed policy file or directory is in force, 0 if an earlier one is.");
	json_t *success = metrics_add_family(
		families, "weir_policy_last_success_timestamp_seconds", "gauge",
		"Last time the content of a followed policy path was in force, in Unix time. 0: never.");
	json_t *errors = metrics_add_family(families, "weir_policy_errors", "gauge",
					    "Errors in a followed policy file or directory.");

	for (size_t i = 0; paths && i < paths->n; i++) {
		const struct followed *followed = &paths->items[i];

		metrics_add_sample(ok, json_pack("{s:s}", "file", followed->path), json_integer(in_force(followed)));
		metrics_add_sample(success, json_pack("{s:s}", "file", followed->path),
				   json_integer(followed->last_success));
		metrics_add_sample(errors, json_pack("{s:s}", "file", followed->path),
				   json_integer(json_array_size(followed->errors)));
	}
}
