/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/audit.h"
#include "agent/inside.h"
#include "agent/jobs.h"
#include "agent/reconcile.h"
#include "agent/trace.h"
#include "base/cleanup.h"
#include "base/json_text.h"
#include "base/log.h"
#include "commands/commands.h"
#include "commands/history.h"
#include "daemon/request.h"
#include "follow/follow.h"

/*
 * What each command needs. ACCESS_READ is for a command that changes nothing, costs the kernel nothing that lasts, and shows no more of
 * requests than who made them. It is not for trace and events: they show whole request lines, whatever clients have put into them.
 *
 * IN_TURN is for a command that may have to wait: it changes something, has programs loaded, or may be so large that it would keep the event
 * loop.
 */
static const struct command {
	const char *name;
	enum access needs;
	enum turn {
		AT_ONCE,
		IN_TURN
	} turn;
	int (*run)(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
} commands[] = {
	{ "apply", ACCESS_CHANGE, IN_TURN, agent_apply },
	{ "attach", ACCESS_CHANGE, IN_TURN, agent_attach },
	{ "audit", ACCESS_READ, IN_TURN, agent_audit },
	{ "delete", ACCESS_CHANGE, IN_TURN, agent_delete },
	{ "detach", ACCESS_CHANGE, IN_TURN, agent_detach },
	{ "diff", ACCESS_READ, IN_TURN, agent_diff },
	{ "dry-run", ACCESS_CHANGE, IN_TURN, agent_dry_run },
	{ "events", ACCESS_CHANGE, AT_ONCE, agent_events },
	{ "explain", ACCESS_READ, IN_TURN, agent_explain },
	{ "export", ACCESS_READ, IN_TURN, agent_export },
	{ "history", ACCESS_READ, IN_TURN, agent_history },
	{ "limit delete", ACCESS_CHANGE, IN_TURN, agent_limit_delete },
	{ "limit list", ACCESS_READ, IN_TURN, agent_limit_list },
	{ "limit set", ACCESS_CHANGE, IN_TURN, agent_limit_set },
	{ "max-in-flight", ACCESS_CHANGE, IN_TURN, agent_max_in_flight },
	{ "metrics", ACCESS_READ, AT_ONCE, agent_metrics },
	{ "pause", ACCESS_CHANGE, IN_TURN, agent_pause },
	{ "reload", ACCESS_CHANGE, IN_TURN, agent_reload },
	{ "resume", ACCESS_CHANGE, IN_TURN, agent_resume },
	{ "status", ACCESS_READ, AT_ONCE, agent_status },
	{ "top", ACCESS_READ, IN_TURN, agent_top },
	{ "trace", ACCESS_CHANGE, AT_ONCE, agent_trace },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static int check(struct agent *agent, const struct control_client *client, const char *name,
		 const struct command *command, struct error *err)
{
	if (!command)
		return error_set(err, -EINVAL, "the agent has no command \"%s\"", name);
	if (control_client_access(client) >= command->needs)
		return 0;
	agent->access.refused[ACCESS_REFUSED_READER]++;
	return error_set(err, -EACCES, "\"%s\" is for root%s%s: you may only read", name,
			 agent->access.admin.name ? " and members of the group " : "", agent->access.admin.name ?: "");
}

/* An error that nobody has put into words, as there may be without memory. */
static int in_words(int ret, struct error *err)
{
	return ret && !err->text[0] ? error_set(err, ret, "%s", strerror(-ret)) : ret;
}

/* Who may only read is not to fill the log. */
static void count(struct agent *agent, const struct control_client *client, const char *name, int ret,
		  const struct error *err)
{
	agent_lock(agent);
	agent->control_requests++;
	agent->control_errors += ret != 0;
	agent_unlock(agent);
	if (ret && control_client_access(client) == ACCESS_CHANGE)
		log_warning("%s: %s", name, err->text);
}

static int run_at_once(struct agent *agent, struct control_client *client, const struct command *command,
		       json_t *arguments, json_t **result, struct error *err)
{
	int ret;

	agent_lock(agent);
	agent->client = client;
	ret = in_words(command->run(agent, arguments, result, err), err);
	agent_unlock(agent);
	return ret;
}

/* Whose overrides the command may change; NULL: anybody's. */
static const char *subject_of(const struct command *command, json_t *arguments)
{
	return command->run == agent_limit_set ? json_string_value(json_object_get(arguments, "subject")) : NULL;
}

/* What fails half-way was taken back, or so it was tried: what is in force then is looked at soon. */
static int run_in_turn(struct agent *agent, const struct control_client *client, const struct command *command,
		       json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_AUDIT_VIEW struct audit_view before = { 0 };
	bool changes = command->needs == ACCESS_CHANGE;
	int ret;

	agent_change_begin(agent);
	if (changes)
		audit_begin(agent, subject_of(command, arguments), &before);
	ret = in_words(command->run(agent, arguments, result, err), err);
	if (ret && changes)
		reconcile_all(agent);
	if (!ret && changes)
		inside_limits_changed(agent);
	if (changes)
		audit_end(agent, &before, audit_client(client), command->name);
	agent_change_end(agent);
	if (!ret && changes)
		follow_retry(agent);
	return ret;
}

/* --- commands as jobs */

struct request {
	struct agent *agent;
	struct control_client *client;
	const struct command *command;
	json_t *arguments; /* NULL: it was run */
	struct text reply;
};

/* What is asked and what is answered may be large: neither is for the event loop to write or to free. */
static void request_run(void *arg)
{
	struct request *request = arg;
	struct error err = { 0 };
	json_t *result = NULL;
	int ret;

	ret = run_in_turn(request->agent, request->client, request->command, request->arguments, &result, &err);
	count(request->agent, request->client, request->command->name, ret, &err);
	control_reply(&request->reply, ret, result, &err);
	json_decref(request->arguments);
	request->arguments = NULL;
}

static int is_stopping(struct error *err)
{
	return error_set(err, -ESHUTDOWN, "the agent is stopping: nothing was done");
}

static void request_done(void *arg)
{
	struct request *request = arg;
	struct error err;

	if (request->arguments)
		control_reply(&request->reply, is_stopping(&err), NULL, &err);
	control_answer(request->client, &request->reply);
	text_clear(&request->reply);
	json_decref(request->arguments);
	free(request);
}

static int put_off(struct agent *agent, struct control_client *client, const struct command *command, json_t *arguments,
		   struct error *err)
{
	struct request *request = calloc(1, sizeof(*request));
	int ret = -ENOMEM;

	if (request) {
		*request = (struct request){
			.agent = agent,
			.client = client,
			.command = command,
			.arguments = json_incref(arguments),
		};
		ret = jobs_add_call(agent, request_run, request_done, request, command->needs == ACCESS_READ);
	}
	if (!ret)
		return CONTROL_LATER;
	if (request)
		json_decref(request->arguments);
	free(request);
	return ret == -ENOMEM ? error_set(err, ret, "out of memory") : is_stopping(err);
}

int agent_aside(void *context, void (*run)(void *arg), void (*done)(void *arg), void *arg, bool question)
{
	return jobs_add_call(context, run, done, arg, question);
}

int agent_request(void *context, struct control_client *client, const char *name, json_t *arguments, json_t **result,
		  struct error *err)
{
	const struct command *command = find_command(name);
	CLEANUP_JSON json_t *none = json_object();
	struct agent *agent = context;
	int ret = check(agent, client, name, command, err);

	if (!json_is_object(arguments))
		arguments = none;
	if (!ret && command->turn == IN_TURN && agent->jobs)
		return put_off(agent, client, command, arguments, err);
	if (!ret)
		ret = command->turn == IN_TURN ? run_in_turn(agent, client, command, arguments, result, err) :
						 run_at_once(agent, client, command, arguments, result, err);
	count(agent, client, name, ret, err);
	agent_lock(agent);
	trace_flush(agent);
	agent_unlock(agent);
	return ret;
}
