/* SPDX-License-Identifier: GPL-2.0 */
/* What a namespace can do for its servers at the time: hold what cannot be read on a device, and translate on loopback. */
#include <string.h>

#include "agent/agent.h"
#include "agent/net.h"
#include "agent/servers.h"
#include "base/log.h"

static bool wants_pace(const struct net *net)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = net_server(net, slot);

		if (server && server->hold != HOLD_DROP)
			return true;
	}
	return false;
}

/* Tells the programs what is asked of the namespace's servers now. */
static void apply_flags(const struct net *net)
{
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (net_server(net, slot))
			server_refresh_flags(net->agent, slot);
}

static int make_device(struct net *net, bool wanted, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_pace(net->dp, wanted, err);
}

/* Packets are sent to the device only while it is there: the servers stop before it goes, and begin when it has come. */
void net_pace(struct net *net)
{
	struct error err = { 0 };
	bool wanted = wants_pace(net), paced;

	if (!wanted && net->paced) {
		net->paced = false;
		apply_flags(net);
	}
	paced = !make_device(net, wanted, &err) && wanted;
	if (err.text[0] && strcmp(err.text, net->pace_err.text) != 0)
		log_info("unreadable traffic is held by dropping: %s", err.text);
	net->pace_err = err;
	if (paced == net->paced)
		return;
	net->paced = paced;
	apply_flags(net);
}

static int is_loopback_tracked(struct net *net, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return datapath_loopback_tracked(net->dp, err);
}

void net_find_tracking(struct net *net)
{
	struct error err = { 0 };
	int tracked;

	tracked = is_loopback_tracked(net, &err);
	if (tracked < 0) {
		log_warning("cannot tell whether conntrack tracks loopback: %s", err.text);
		/* As it was known last: packets get lost, and busy machines are slow. To close is right in either case. */
		tracked = net->loopback_known ? net->loopback_tracked : true;
	} else {
		net->loopback_known = true;
	}
	if (tracked == net->loopback_tracked)
		return;
	net->loopback_tracked = tracked;
	probe_set(&net->probe, PROBE_UNTRACKED, tracked ? PROBE_NO : PROBE_YES, "%s", "");
	log_info("network namespace %llu: conntrack %s loopback connections", net->cookie,
		 tracked ? "tracks" : "no longer tracks");
	apply_flags(net);
}
