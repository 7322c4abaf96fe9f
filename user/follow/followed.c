/* SPDX-License-Identifier: GPL-2.0 */
#include "follow/source.h"

#include "agent/log.h"
#include "base/cleanup.h"
#include "sys/privilege.h"

void policy_source_clear(struct policy_source *source)
{
	policy_clear(&source->policy);
	json_decref(source->errors);
	source->errors = NULL;
}

static void log_errors(const struct policy_source *source)
{
	size_t n = json_array_size(source->errors), i;
	json_t *text;

	log_error("policy %s: %s: %zu error%s", source->path,
		  source->last_success ? "its earlier content stays in force" :
					 "it has not been in force since the agent started",
		  n, n == 1 ? "" : "s");
	json_array_foreach (source->errors, i, text)
		log_error("%s", json_string_value(text));
}

void policy_source_fail(struct policy_source *source, json_t *errors)
{
	bool news = !json_equal(source->errors, errors);

	if (!json_array_size(source->errors))
		source->since = time(NULL);
	json_decref(source->errors);
	source->errors = errors;
	if (news)
		log_errors(source);
}

void policy_source_succeed(struct policy_source *source, bool changed)
{
	bool failed = json_array_size(source->errors);

	source->last_success = time(NULL);
	if (changed || failed || !source->since)
		source->since = source->last_success;
	if (failed)
		log_info("policy %s: its content is in force again", source->path);
	json_decref(source->errors);
	source->errors = json_array();
}

/* --- reading */

static json_t *text_of(const struct problem *problem)
{
	CLEANUP_FREE char *text = problem_text(problem);

	return json_string(text ?: "out of memory");
}

static json_t *errors_of(const struct policy *policy)
{
	json_t *errors = json_array();

	for (size_t i = 0; i < policy->problems.n; i++)
		if (!policy->problems.items[i].warning)
			json_array_append_new(errors, text_of(&policy->problems.items[i]));
	return errors;
}

static void log_warnings(const struct policy *policy)
{
	for (size_t i = 0; i < policy->problems.n; i++) {
		CLEANUP_JSON json_t *text = text_of(&policy->problems.items[i]);

		if (policy->problems.items[i].warning)
			log_warning("%s", json_string_value(text));
	}
}

/* What is wrong may be mended elsewhere: where a file that is pointed to is missing, or may not be read. */
bool policy_source_read(const struct policy_source *source, struct policy_reading *out)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_READ);
	struct policy_reading reading = { .policy.regular = true };
	struct error err;

	if (source->good && policy_is_current(&source->policy, source->path))
		return false;
	if (policy_read(&reading.policy, source->path, &err)) {
		reading.errors = json_pack("[s]", err.text);
	} else {
		policy_check(&reading.policy);
		reading.errors = errors_of(&reading.policy);
	}
	*out = reading;
	return true;
}

void policy_source_take(struct policy_source *source, struct policy_reading *reading)
{
	policy_clear(&source->policy);
	source->policy = reading->policy;
	source->good = !json_array_size(reading->errors);
	if (source->good) {
		log_warnings(&source->policy);
		json_decref(reading->errors);
	} else {
		policy_source_fail(source, reading->errors);
	}
}
