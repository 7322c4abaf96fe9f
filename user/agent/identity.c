/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How a server's requests are identified, put in force. Its files are read when the server is brought up and on `reload`;
 * one that cannot be read, or is wrong anywhere, leaves in force what was there before.
 */
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/servers.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "rules/identity.h"
#include "sys/secret.h"

static void read_clear(struct identity_read *read)
{
	free(read->tokens);
	free(read->addresses);
	*read = (struct identity_read){ 0 };
}

void identity_forget(struct agent *agent, int slot)
{
	read_clear(&agent->servers[slot].read);
}

static int read_files(const struct net *net, const struct server *server, struct identity_read *read, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	read->n_tokens = identity_tokens(&server->identity, net->dp, &read->tokens, err);
	if (read->n_tokens < 0)
		return read->n_tokens;
	read->n_addresses = identity_addresses(&server->identity, net->dp, &read->addresses, err);
	if (read->n_addresses < 0)
		return read->n_addresses;
	read->done = true;
	return 0;
}

/* The maps are those of all servers of the namespace. */
static int check_room(const struct agent *agent, const struct server *server, size_t tokens, size_t addresses,
		      struct error *err)
{
	for (int i = 0; i < WEIR_MAX_SERVERS; i++) {
		const struct server *other = agent->state.servers[i];

		if (!other || other == server || other->netns_cookie != server->netns_cookie)
			continue;
		tokens += agent->servers[i].read.n_tokens;
		addresses += agent->servers[i].read.n_addresses;
	}
	if (tokens > WEIR_MAX_TOKENS || addresses > WEIR_MAX_ADDRESSES)
		return error_set(err, -ENOSPC,
				 "%zu token%s and %zu address%s in one network namespace: it has room for %d and %d",
				 tokens, tokens == 1 ? "" : "s", addresses, addresses == 1 ? "" : "es", WEIR_MAX_TOKENS,
				 WEIR_MAX_ADDRESSES);
	return 0;
}

static int put_in_force(struct net *net, int slot, const struct identity_read *read, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_tokens_set(net->dp, slot, read->tokens, read->n_tokens, err) ?:
		       datapath_addresses_set(net->dp, slot, read->addresses, read->n_addresses, err);
}

/* Both files are read before either is put in force. */
static int load(struct agent *agent, int slot, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct net *net = server_net(agent, server);
	struct identity_read read = { 0 };
	int ret = read_files(net, server, &read, err)					  ?:
			  check_room(agent, server, read.n_tokens, read.n_addresses, err) ?:
			  put_in_force(net, slot, &read, err);

	if (ret) {
		read_clear(&read);
		return ret;
	}
	identity_forget(agent, slot);
	agent->servers[slot].read = read;
	return 0;
}

static int size_up(struct agent *agent, const struct server *server, size_t *tokens, size_t *addresses,
		   struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return identity_size(&server->identity, tokens, addresses, err);
}

int identity_check(struct agent *agent, const struct server *server, struct error *err)
{
	size_t tokens, addresses;
	int ret = size_up(agent, server, &tokens, &addresses, err);

	return ret ?: check_room(agent, server, tokens, addresses, err);
}

int identity_sync(struct net *net, int slot, struct error *err)
{
	const struct identity_read *read = &net->agent->servers[slot].read;

	return read->done ? put_in_force(net, slot, read, err) : 0;
}

static bool is_open(struct agent *agent, const char *path)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return secret_is_open(path);
}

static bool has_no_token(const struct agent *agent, int slot)
{
	return agent->state.servers[slot]->identity.token_file && agent->servers[slot].read.done &&
	       !agent->servers[slot].read.n_tokens;
}

/* Said once, and again when it was mended meanwhile. */
static void warn_of_tokens(struct agent *agent, int slot)
{
	const struct server *server = agent->state.servers[slot];
	struct error *warning = &agent->servers[slot].warning, before = *warning;
	const char *path = server->identity.token_file;

	warning->text[0] = '\0';
	if (has_no_token(agent, slot))
		error_set(warning, 0, "the token file %s has no tokens: no user is known by one", path);
	else if (path && is_open(agent, path))
		error_set(warning, 0, "the token file %s is readable by others than its owner: chmod 600", path);
	if (warning->text[0] && strcmp(warning->text, before.text) != 0)
		log_warning("server \"%s\": %s", server->name, warning->text);
}

const char *identity_tokenless(const struct agent *agent, int slot)
{
	return has_no_token(agent, slot) ? agent->servers[slot].warning.text : NULL;
}

int identity_load(struct agent *agent, int slot, struct identity_count *count, struct error *err)
{
	struct error why = { 0 };
	int ret = load(agent, slot, &why);

	agent->servers[slot].identity_err = why;
	warn_of_tokens(agent, slot);
	if (ret)
		return error_set(err, ret, "%s", why.text);
	*count = (struct identity_count){ agent->servers[slot].read.n_tokens, agent->servers[slot].read.n_addresses };
	return 0;
}
