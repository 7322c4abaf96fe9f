/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a server's requests are identified, put in force. Its files are read when the server is brought up and on `reload`;
 * one that cannot be read, or is wrong anywhere, leaves in force what was there before.
 */
#include <errno.h>
#include <string.h>

#include "agent_log.h"
#include "agent_private.h"
#include "cleanup.h"
#include "identity.h"

int identity_apply(struct net *net, int slot, const struct server *server, struct error *err)
{
	CLEANUP_FREE struct datapath_group *groups = NULL;
	int n = identity_group_keys(&server->identity, net->dp, &groups);

	if (n < 0)
		return error_set(err, n, "out of memory");
	return datapath_groups_set(net->dp, slot, groups, n, err);
}

/* Both files are read before either is put in force. */
static int load(struct net *net, int slot, const struct server *server, struct identity_count *count, struct error *err)
{
	CLEANUP_FREE struct datapath_address *addresses = NULL;
	CLEANUP_FREE struct datapath_token *tokens = NULL;
	int n_tokens, n_addresses, ret;

	n_tokens = identity_tokens(&server->identity, net->dp, &tokens, err);
	if (n_tokens < 0)
		return n_tokens;
	n_addresses = identity_addresses(&server->identity, net->dp, &addresses, err);
	if (n_addresses < 0)
		return n_addresses;
	ret = datapath_tokens_set(net->dp, slot, tokens, n_tokens, err) ?:
		      datapath_addresses_set(net->dp, slot, addresses, n_addresses, err);
	if (!ret)
		*count = (struct identity_count){ n_tokens, n_addresses };
	return ret;
}

int identity_load(struct agent *agent, int slot, struct identity_count *count, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct error why = { 0 };
	int ret = load(server_net(agent, server), slot, server, count, &why);

	agent->servers[slot].identity_err = why;
	return ret ? error_set(err, ret, "%s", why.text) : 0;
}

static int reload(struct agent *agent, int slot, json_t *list, struct error *err)
{
	const char *name = agent->state.servers[slot]->name;
	struct identity_count count = { 0 };
	struct error why;
	int ret = identity_load(agent, slot, &count, &why);

	if (ret)
		return error_set(err, ret, "server \"%s\" keeps what it had: %s", name, why.text);
	log_info("server \"%s\": %d tokens and %d addresses are read", name, count.tokens, count.addresses);
	json_array_append_new(list, json_pack("{s:s, s:i, s:i}", "name", name, "tokens", count.tokens, "addresses",
					      count.addresses));
	return 0;
}

int servers_reload(struct agent *agent, json_t *list, struct error *err)
{
	int ret = 0;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		struct error why;
		int one = agent->servers[slot].in_force ? reload(agent, slot, list, &why) : 0;

		if (one && !ret)
			ret = error_set(err, one, "%s", why.text);
	}
	return ret;
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
	if (!name)
		ret = servers_reload(agent, list, err);
	else if (agent->servers[slot].in_force)
		ret = reload(agent, slot, list, err);
	else
		ret = error_set(err, -EAGAIN, "server \"%s\" is not in force: %s", name,
				agent->servers[slot].problem.text);
	if (!ret)
		*result = json_pack("{s:O}", "servers", list);
	return ret;
}
