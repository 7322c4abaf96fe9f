/* SPDX-License-Identifier: GPL-2.0 */
#include "replay/replay.h"

#include <errno.h>
#include <stdlib.h>

#include "replay/private.h"
#include "rules/put.h"

static int put_server(struct replay *replay, const struct policy *policy, const struct policy_object *throttle,
		      struct error *err)
{
	__u32 slot = replay->n_servers;
	struct server *server;
	int ret;

	if (slot >= WEIR_MAX_SERVERS)
		return error_set(err, -ENOSPC, "at most %d servers", WEIR_MAX_SERVERS);
	ret = policy_throttle_server(policy, throttle, &replay->servers[slot], err);
	if (ret)
		return ret;
	replay->n_servers++;
	server = replay->servers[slot];
	/* Nobody comes to its ports, where two servers may not have the same one. */
	server->n_listens = 0;
	return server_put_settings(replay->dp, slot, server, server_own_flags(server), err) ?:
		       server_put_limits(replay->dp, slot, server, err);
}

static int put_servers(struct replay *replay, const struct policy *policy, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < policy->n && !ret; i++)
		if (policy->objects[i].kind->id == POLICY_THROTTLE)
			ret = put_server(replay, policy, &policy->objects[i], err);
	if (!ret && !replay->n_servers)
		return error_set(err, -EINVAL,
				 "the policy has no Throttle: it says which server's requests are judged");
	return ret;
}

int replay_open(struct replay **out, const struct policy *policy, struct error *err)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	int ret;

	if (!replay)
		return error_set(err, -ENOMEM, "out of memory");
	ret = datapath_open_alone(&replay->dp, err)	    ?:
		      datapath_replay_open(replay->dp, err) ?:
							      put_servers(replay, policy, err);
	if (ret) {
		replay_close(replay);
		return ret;
	}
	*out = replay;
	return 0;
}

void replay_close(struct replay *replay)
{
	if (!replay)
		return;
	tally_clear(&replay->tally);
	for (__u32 i = 0; i < replay->n_servers; i++)
		server_free(replay->servers[i]);
	datapath_close(replay->dp);
	free(replay);
}
