/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "agent_log.h"
#include "agent_private.h"
#include "cleanup.h"

static const struct {
	const char *name;
	int (*run)(struct agent *agent, json_t *arguments, json_t **result, struct error *err);
} commands[] = {
	{ "attach", agent_attach },	    { "detach", agent_detach },	      { "pause", agent_pause },
	{ "resume", agent_resume },	    { "limit set", agent_limit_set }, { "limit delete", agent_limit_delete },
	{ "limit list", agent_limit_list }, { "status", agent_status },	      { "metrics", agent_metrics },
	{ "apply", agent_apply },	    { "delete", agent_delete },	      { "export", agent_export },
	{ "reload", agent_reload },	    { "trace", agent_trace },	      { "max-in-flight", agent_max_in_flight },
	{ "explain", agent_explain },
};

static int run(struct agent *agent, const char *command, json_t *arguments, json_t **result, struct error *err)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(commands[i].name, command) == 0)
			return commands[i].run(agent, arguments, result, err);
	return error_set(err, -EINVAL, "the agent has no command \"%s\"", command);
}

int agent_request(void *context, struct control_client *client, const char *command, json_t *arguments, json_t **result,
		  struct error *err)
{
	CLEANUP_JSON json_t *none = json_object();
	struct agent *agent = context;
	int ret;

	agent->client = client;
	ret = run(agent, command, json_is_object(arguments) ? arguments : none, result, err);
	agent->control_requests++;
	agent->control_errors += ret != 0;
	if (ret)
		log_warning("%s: %s", command, err->text);
	return ret;
}
