/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/log.h"
#include "agent/reconcile.h"
#include "base/cleanup.h"

/*
 * What each command needs. ACCESS_READ is for what changes nothing, costs the kernel nothing that lasts, and shows no more of
 * requests than who made them; trace shows whole request lines, whatever clients have put into them.
 */
static const struct command {
	const char *name;
	enum access needs;
	int (*run)(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
} commands[] = {
	{ "apply", ACCESS_CHANGE, agent_apply },
	{ "attach", ACCESS_CHANGE, agent_attach },
	{ "delete", ACCESS_CHANGE, agent_delete },
	{ "detach", ACCESS_CHANGE, agent_detach },
	{ "diff", ACCESS_READ, agent_diff },
	{ "explain", ACCESS_READ, agent_explain },
	{ "export", ACCESS_READ, agent_export },
	{ "limit delete", ACCESS_CHANGE, agent_limit_delete },
	{ "limit list", ACCESS_READ, agent_limit_list },
	{ "limit set", ACCESS_CHANGE, agent_limit_set },
	{ "max-in-flight", ACCESS_CHANGE, agent_max_in_flight },
	{ "metrics", ACCESS_READ, agent_metrics },
	{ "pause", ACCESS_CHANGE, agent_pause },
	{ "reload", ACCESS_CHANGE, agent_reload },
	{ "resume", ACCESS_CHANGE, agent_resume },
	{ "status", ACCESS_READ, agent_status },
	{ "trace", ACCESS_CHANGE, agent_trace },
};

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

/* What fails half-way was taken back, or so it was tried: what is in force then is looked at soon. */
static int run_changing(struct agent *agent, const struct command *command, json_t *arguments, json_t **result,
			struct error *err)
{
	int ret;

	nets_wait(agent);
	ret = command->run(agent, arguments, result, err);
	if (ret)
		reconcile_all(agent);
	else
		policy_sources_retry(agent);
	return ret;
}

static int run(struct agent *agent, const char *name, json_t *arguments, json_t **result, struct error *err)
{
	const struct command *command = find_command(name);

	if (!command)
		return error_set(err, -EINVAL, "the agent has no command \"%s\"", name);
	if (control_client_access(agent->client) < command->needs) {
		agent->access.refused[ACCESS_REFUSED_READER]++;
		return error_set(err, -EACCES, "\"%s\" is for root%s%s: you may only read", name,
				 agent->access.admin.name ? " and members of the group " : "",
				 agent->access.admin.name ?: "");
	}
	return command->needs == ACCESS_CHANGE ? run_changing(agent, command, arguments, result, err) :
						 command->run(agent, arguments, result, err);
}

int agent_request(void *context, struct control_client *client, const char *command, json_t *arguments, json_t **result,
		  struct error *err)
{
	CLEANUP_JSON json_t *none = json_object();
	struct agent *agent = context;
	int ret;

	agent_lock(agent);
	agent->client = client;
	ret = run(agent, command, json_is_object(arguments) ? arguments : none, result, err);
	agent->control_requests++;
	agent->control_errors += ret != 0;
	/* Who may only read is not to fill the log. */
	if (ret && control_client_access(client) == ACCESS_CHANGE)
		log_warning("%s: %s", command, err->text);
	nets_watch(agent);
	agent_unlock(agent);
	return ret;
}
