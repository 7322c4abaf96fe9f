/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>

#include "agent/inside.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "commands/commands.h"

int agent_attach(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	json_t *description = NULL, *inode = NULL;
	CLEANUP_FREE char *other_weir = NULL, *refuses_not = NULL, *inside = NULL;
	struct server *server = NULL;
	const struct server_listening *listening;
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
	other_weir = net_other_weir(server_net(agent, agent->state.servers[slot]));
	tokenless = identity_tokenless(agent, slot);
	refuses_not = inside_refuses_not(agent, slot);
	inside = inside_chosen(agent, slot);
	*result = json_pack("{s:s, s:s*, s:s*}", "name", agent->state.servers[slot]->name, "inside", inside,
			    "refuses_not", refuses_not);
	listening = &agent->servers[slot].listening;
	if (listening->nobody || listening->udp || agent->servers[slot].held_elsewhere || other_weir || tokenless)
		json_object_set_new(*result, "warnings",
				    json_pack("[s*, s*, s*, s*, s*]", listening->nobody, listening->udp,
					      agent->servers[slot].held_elsewhere, other_weir, tokenless));
	return 0;
}
