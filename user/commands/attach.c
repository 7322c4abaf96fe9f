/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>

#include "agent/inside.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "commands/commands.h"

int agent_attach(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	json_t *description = NULL, *inode = NULL;
	CLEANUP_FREE char *refuses_not = NULL, *inside = NULL;
	CLEANUP_JSON json_t *warnings = NULL;
	struct server *server = NULL;
	const char *tokenless;
	json_error_t why;
	int slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s:o, s?o !}", "server", &description, "netns_inode", &inode))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	server_attach_defaults(description);
	ret = server_from_json(description, &server, err);
	if (ret)
		return ret;
	slot = server_attach(agent, server, inode, err);
	if (slot < 0)
		return slot;
	agent->servers[slot].incomplete = false;
	refuses_not = inside_refuses_not(agent, slot);
	inside = inside_chosen(agent, slot);
	warnings = server_warnings(agent, slot);
	tokenless = identity_tokenless(agent, slot);
	if (tokenless)
		json_array_append_new(warnings, json_string(tokenless));
	*result = json_pack("{s:s, s:s*, s:s*, s:O*}", "name", agent->state.servers[slot]->name, "inside", inside,
			    "refuses_not", refuses_not, "warnings", json_array_size(warnings) ? warnings : NULL);
	return 0;
}
