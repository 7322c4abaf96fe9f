/* SPDX-License-Identifier: GPL-2.0 */
#include "follow/follow.h"

#include "base/cleanup.h"
#include "base/log.h"
#include "base/output.h"
#include "sys/privilege.h"

void followed_clear(struct followed *followed)
{
	policy_clear(&followed->policy);
	json_decref(followed->errors);
	followed->errors = NULL;
}

static void log_errors(const struct followed *followed)
{
	size_t n = json_array_size(followed->errors), i;
	json_t *text;

	log_error("policy %s: %s: %zu error%s", followed->path,
		  followed->last_success ? "its earlier content stays in force" :
					   "it has not been in force since the agent started",
		  n, n == 1 ? "" : "s");
	json_array_foreach (followed->errors, i, text)
		log_error("%s", json_string_value(text));
}

void followed_fail(struct followed *followed, json_t *errors)
{
	bool news = !json_equal(followed->errors, errors);

	if (!json_array_size(followed->errors))
		followed->since = time(NULL);
	json_decref(followed->errors);
	followed->errors = errors;
	if (news)
		log_errors(followed);
}

void followed_succeed(struct followed *followed, bool changed)
{
	bool failed = json_array_size(followed->errors);

	followed->last_success = time(NULL);
	if (changed || failed || !followed->since)
		followed->since = followed->last_success;
	if (failed)
		log_info("policy %s: its content is in force again", followed->path);
	json_decref(followed->errors);
	followed->errors = json_array();
}

/* --- reading */

static json_t *text_of(const struct problem *problem)
{
	CLEANUP_FREE char *text = problem_text(problem);

	return output_text_json(text ?: "out of memory");
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
bool followed_read(const struct followed *followed, struct followed_reading *out)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_READ);
	struct followed_reading reading = { .policy.regular = true };
	struct error err;

	if (followed->good && policy_is_current(&followed->policy, followed->path))
		return false;
	if (policy_read(&reading.policy, followed->path, &err)) {
		reading.errors = json_pack("[o]", output_text_json(err.text));
	} else {
		policy_check(&reading.policy);
		reading.errors = errors_of(&reading.policy);
		reading.good = !reading.policy.problems.errors;
	}
	*out = reading;
	return true;
}

void followed_take(struct followed *followed, struct followed_reading *reading)
{
	policy_clear(&followed->policy);
	followed->policy = reading->policy;
	followed->good = reading->good;
	if (followed->good) {
		log_warnings(&followed->policy);
		json_decref(reading->errors);
	} else {
		followed_fail(followed, reading->errors);
	}
}
