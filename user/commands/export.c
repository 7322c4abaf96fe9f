/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "commands/commands.h"
#include "policy/policy.h"

/* Kubernetes' own documents have no name of a server: with those of several, what is exported could not be applied. */
int agent_export(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent); /* what is there is only read */
	CLEANUP_JSON json_t *items = json_array();
	bool nameless = false;
	const char *name = NULL;
	json_error_t why;
	int n = 0;

	if (json_unpack_ex(arguments, &why, 0, "{s?s !}", "server", &name))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	if (name && state_find(&agent->state, name) < 0)
		return state_unknown(&agent->state, name, err);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = agent->state.servers[slot];
		CLEANUP_JSON json_t *documents = NULL;

		if (!server || server->draining || (name && strcmp(name, server->name) != 0))
			continue;
		documents = policy_export(server);
		nameless |= json_array_size(documents) > 1;
		json_array_extend(items, documents);
		n++;
	}
	if (n > 1 && nameless)
		return error_set(
			err, -EINVAL,
			"EventRateLimit, FlowSchemas and PriorityLevelConfigurations do not say which of the %d "
			"servers they are for: export one at a time, with --server",
			n);
	*result = json_pack("{s:s, s:s, s:O}", "apiVersion", "v1", "kind", "List", "items", items);
	return 0;
}
