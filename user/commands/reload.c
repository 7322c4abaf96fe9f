/* SPDX-License-Identifier: GPL-2.0 */
/* The files of tokens and addresses, read again. */
#include <errno.h>

#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "commands/commands.h"

static int reload(struct agent *agent, int slot, json_t *list, struct error *err)
{
	const char *name = agent->state.servers[slot]->name;
	struct identity_count count = { 0 };
	struct error why;
	int ret = identity_load(agent, slot, &count, &why);

	if (ret)
		return error_set(err, ret, "server \"%s\" keeps what it had: %s", name, why.text);
	log_info("server \"%s\": %d token%s and %d address%s were read", name, count.tokens,
		 count.tokens == 1 ? "" : "s", count.addresses, count.addresses == 1 ? "" : "es");
	json_array_append_new(list, json_pack("{s:s, s:i, s:i}", "name", name, "tokens", count.tokens, "addresses",
					      count.addresses));
	return 0;
}

static int reload_one(struct agent *agent, int slot, json_t *list, struct error *err)
{
	if (agent->servers[slot].in_force)
		return reload(agent, slot, list, err);
	return error_set(err, -EAGAIN, "server \"%s\" is not in force: %s", agent->state.servers[slot]->name,
			 agent->servers[slot].problem.text);
}

/* A server that is being brought in force reads its files then, and one that drains needs none. */
static bool is_to_be_read(const struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];

	return server && !server->draining && (agent->servers[slot].in_force || agent->servers[slot].tried);
}

int servers_reload(struct agent *agent, json_t *list, struct error *err)
{
	int ret = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		struct error why;
		int one = is_to_be_read(agent, slot) ? reload_one(agent, slot, list, &why) : 0;

		if (one && !ret)
			ret = error_set(err, one, "%s", why.text);
	}
	return ret;
}

/* There must be one, as for pause and resume. */
static int reload_all(struct agent *agent, json_t *list, struct error *err)
{
	int ret = servers_reload(agent, list, err), slot;

	if (ret)
		return error_after(list, ret, err);
	slot = json_array_size(list) ? 0 : server_named(agent, NULL, err);
	return slot < 0 ? slot : 0;
}

int agent_reload(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_JSON json_t *list = json_array();
	const char *name = NULL;
	json_error_t why;
	int slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s !}", "name", &name))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	slot = name ? server_named(agent, name, err) : 0;
	if (slot < 0)
		return slot;
	ret = name ? reload_one(agent, slot, list, err) : reload_all(agent, list, err);
	if (!ret)
		*result = json_pack("{s:O}", "servers", list);
	return ret;
}
