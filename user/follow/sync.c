/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all paths say, put in force. They are tried together first. If that cannot be, each is tried by itself beside what the
 * others said before, so that only those with which something is wrong stay behind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/audit.h"
#include "agent/jobs.h"
#include "apply/plan.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/output.h"
#include "follow/follow.h"
#include "policy/objects.h"

/* Before follow_open() there are none. */
static struct followed_paths *paths_of(const struct agent *agent)
{
	static struct followed_paths none;

	return agent->followed ?: &none;
}

/* --- what is wanted (plan_follow()) */

/* Its server is that of all objects of the path that name none; NULL: there is none, or more than one. */
static const char *only_throttle(const struct policy *policy)
{
	const char *name = NULL;

	for (size_t i = 0; i < policy->n; i++) {
		if (policy->objects[i].kind->id != POLICY_THROTTLE)
			continue;
		if (name)
			return NULL;
		name = policy->objects[i].name;
	}
	return name;
}

static void add_said(json_t *wanted, const struct followed *followed)
{
	const struct policy *policy = &followed->policy;
	const char *server = only_throttle(policy);

	for (size_t i = 0; i < policy->n; i++)
		json_array_append_new(wanted, json_pack("{s:s*, s:{s:s, s:s, s:O}}", "server", server, "object", "file",
							policy->objects[i].file, "followed", followed->path, "document",
							policy->objects[i].document));
}

/* What it said before, as the servers still have it. */
static void add_kept(json_t *wanted, const struct followed *followed, const struct state *state)
{
	json_t *object;
	size_t i;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = state->servers[slot];

		if (!server || server->draining)
			continue;
		json_array_foreach (policy_objects(server), i, object)
			if (strcmp(policy_object_followed(object) ?: "", followed->path) == 0)
				json_array_append_new(wanted, json_pack("{s:s, s:O}", "server", server->name, "object",
									object));
	}
}

/* --- trying it */

static int make_plan(struct agent *agent, struct plan *plan, json_t *wanted, bool whole, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return plan_follow(plan, &agent->state, wanted, whole, err);
}

/* Puts in force what the paths say that are fresh, and what the others said before. */
static int try(struct agent *agent, const bool *fresh, struct error *err)
{
	const struct followed_paths *paths = paths_of(agent);
	CLEANUP_JSON json_t *wanted = json_array();
	CLEANUP_PLAN struct plan plan = { 0 };
	bool whole = true;
	int ret;

	for (size_t i = 0; i < paths->n; i++) {
		whole &= fresh[i];
		if (fresh[i])
			add_said(wanted, &paths->items[i]);
		else
			add_kept(wanted, &paths->items[i], &agent->state);
	}
	ret = make_plan(agent, &plan, wanted, whole, err);
	if (!ret && plan.n) {
		ret = plan_do(agent, &plan, err);
		if (!ret)
			plan_log(&plan, "policy files: ");
	}
	return ret;
}

static void fail(struct followed *followed, const struct error *err)
{
	followed_fail(followed, json_pack("[o]", output_text_json(err->text)));
}

/* Until no more of them can be: what one needs, another one may bring. */
static void try_each(struct agent *agent, const bool *changed)
{
	struct followed_paths *paths = paths_of(agent);
	CLEANUP_FREE bool *done = calloc(paths->n + 1, sizeof(*done)), *fresh = calloc(paths->n + 1, sizeof(*fresh));
	struct error err;
	bool more = done && fresh;

	/* What belonged to paths that there are no more goes in any case. */
	if (more && try(agent, fresh, &err))
		log_error("policy files: %s", err.text);
	while (more) {
		more = false;
		for (size_t i = 0; i < paths->n; i++) {
			struct followed *followed = &paths->items[i];

			if (!followed->good || done[i])
				continue;
			fresh[i] = true;
			done[i] = !try(agent, fresh, &err);
			fresh[i] = false;
			if (done[i])
				followed_succeed(followed, changed[i]);
			else
				fail(followed, &err);
			more |= done[i];
		}
	}
}

static void settle(struct agent *agent, const bool *changed)
{
	struct followed_paths *paths = paths_of(agent);
	CLEANUP_FREE bool *fresh = calloc(paths->n + 1, sizeof(*fresh));
	struct error err;

	if (!fresh)
		return;
	for (size_t i = 0; i < paths->n; i++)
		fresh[i] = paths->items[i].good;
	if (try(agent, fresh, &err)) {
		try_each(agent, changed);
		return;
	}
	for (size_t i = 0; i < paths->n; i++)
		if (fresh[i])
			followed_succeed(&paths->items[i], changed[i]);
}

/* --- the whole */

static bool read_again(struct agent *agent, const struct followed *followed, struct followed_reading *reading)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return followed_read(followed, reading);
}

/* Whose doing it is: the files that have changed, or those that are tried again. */
static json_t *changed_by(const struct followed_paths *paths, const bool *changed)
{
	json_t *files = json_array(), *all = json_array();

	for (size_t i = 0; i < paths->n; i++) {
		json_array_append_new(all, json_string(paths->items[i].path));
		if (changed[i])
			json_array_append_new(files, json_string(paths->items[i].path));
	}
	if (!json_array_size(files))
		json_array_extend(files, all);
	json_decref(all);
	return json_pack("{s:o}", "files", files);
}

void follow_sync(struct agent *agent)
{
	CLEANUP_AUDIT_VIEW struct audit_view before = { 0 };
	struct followed_paths *paths = paths_of(agent);
	CLEANUP_FREE bool *changed = calloc(paths->n + 1, sizeof(*changed));

	if (!changed)
		return;
	agent_change_begin(agent);
	for (size_t i = 0; i < paths->n; i++) {
		struct followed_reading reading;

		changed[i] = read_again(agent, &paths->items[i], &reading);
		if (changed[i])
			followed_take(&paths->items[i], &reading);
		if (changed[i] && paths->watch)
			follow_watch_add(paths->watch, &paths->items[i]);
	}
	audit_begin(agent, NULL, &before);
	settle(agent, changed);
	audit_end(agent, &before, changed_by(paths, changed), "policy files");
	agent_change_end(agent);
}

void follow_wake(struct agent *agent)
{
	struct followed_paths *paths = paths_of(agent);

	if (paths->watch)
		follow_watch_wake(paths->watch);
	else
		jobs_add(agent, follow_sync);
}

static bool any_failed(const struct followed_paths *paths)
{
	for (size_t i = 0; i < paths->n; i++)
		if (json_array_size(paths->items[i].errors))
			return true;
	return false;
}

void follow_retry(struct agent *agent)
{
	bool wanted;

	agent_lock(agent);
	wanted = any_failed(paths_of(agent));
	agent_unlock(agent);
	if (wanted)
		jobs_add(agent, follow_sync);
}

static bool is_followed(const struct followed_paths *paths, const char *path)
{
	for (size_t i = 0; i < paths->n; i++)
		if (strcmp(paths->items[i].path, path) == 0)
			return true;
	return false;
}

/* What earlier agents followed. */
static void log_gone(const struct agent *agent)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = agent->state.servers[slot];
		json_t *object;
		size_t i;

		json_array_foreach (server ? policy_objects(server) : NULL, i, object) {
			const char *path = policy_object_followed(object);
			char label[POLICY_LABEL];

			if (!path || is_followed(paths_of(agent), path))
				continue;
			policy_object_label(object, label);
			log_warning("policy files: server \"%s\": %s goes: %s is not followed any more", server->name,
				    label, path);
		}
	}
}

int follow_open(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	struct followed_paths *paths = calloc(1, sizeof(*paths));
	struct error why;

	if (paths)
		paths->items = calloc(options->n_policies + 1, sizeof(*paths->items));
	if (!paths || !paths->items) {
		free(paths);
		return error_set(err, -ENOMEM, "out of memory");
	}
	for (; paths->n < options->n_policies; paths->n++)
		paths->items[paths->n] = (struct followed){
			.path = options->policies[paths->n],
			.errors = json_array(),
		};
	if (paths->n && follow_watch_open(&paths->watch, agent, &why))
		log_warning("policy files: changes are seen late: %s", why.text);
	agent_lock(agent);
	agent->followed = paths;
	log_gone(agent);
	agent_unlock(agent);
	return 0;
}

void follow_close(struct agent *agent)
{
	struct followed_paths *paths = agent->followed;

	if (!paths)
		return;
	follow_watch_close(paths->watch);
	for (size_t i = 0; i < paths->n; i++)
		followed_clear(&paths->items[i]);
	free(paths->items);
	free(paths);
	agent->followed = NULL;
}
