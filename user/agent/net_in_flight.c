/* SPDX-License-Identifier: GPL-2.0 */
/* The requests in flight of a namespace, as its tables have them. */
#include "agent/net.h"
#include "base/clock.h"

#define TIMES 10

/*
 * The table of connections may be large, and whoever looks each second must not keep the agent from its other jobs. So a reading is used
 * for ten times as long as it took.
 */
int net_read_in_flight(struct net *net, int by, struct error *err)
{
	__u64 began_ns = clock_ns(CLOCK_MONOTONIC), ended_ns;
	CLEANUP_RETAKE struct agent *released = NULL;
	struct open_requests requests;
	int ret;

	if (net->open.by == by && began_ns < net->open.until_ns)
		return 0;
	released = agent_release(net->agent);
	ret = datapath_open_requests(net->dp, by, &requests, err);
	if (ret)
		return ret;
	open_requests_clear(&net->open.requests);
	net->open.requests = requests;
	net->open.by = by;
	ended_ns = clock_ns(CLOCK_MONOTONIC);
	net->open.read_ns = began_ns;
	net->open.until_ns = ended_ns + TIMES * (ended_ns - began_ns);
	return 0;
}
