/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/agent.h"
#include "agent/net.h"
#include "base/log.h"
#include "probe/read.h"

static void tell(const struct net *net)
{
	for (int lane = 0; lane < PROBE_LANE_COUNT; lane++) {
		struct probe_result result = probe_lane(&net->probe, lane);

		bool known = !result.why || !*result.why;

		if (result.mode != PROBE_FULL)
			log_info("network namespace %llu: %s is %s (%s): %s%s%s; see \"weir probe\"", net->cookie,
				 probe_lane_name(lane), probe_mode_name(result.mode), result.how, result.reason,
				 known ? "" : ": ", known ? "" : result.why);
	}
}

static void read_facts(struct net *net)
{
	struct probe probe = { 0 };

	{
		CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

		probe_read(&probe, net->fd, net->agent->options->pin_dir);
	}
	net->probe = probe;
}

/* That the programs are there has been seen already. */
void net_probe(struct net *net)
{
	const char *no_hold = datapath_no_hold(net->dp);

	read_facts(net);
	probe_set(&net->probe, PROBE_PROGRAMS, PROBE_YES, "%s", "");
	probe_set(&net->probe, PROBE_HOLD_PROGRAM, *no_hold ? PROBE_NO : PROBE_YES, "%s", no_hold);
	tell(net);
}
