/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/log.h"
#include "agent/private.h"
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

/* That the programs are there has been seen already. */
void net_probe_all(struct net *net)
{
	const char *no_hold = datapath_no_hold(net->dp);

	probe_read(&net->probe, net->fd, net->agent->options->pin_dir);
	probe_set(&net->probe, PROBE_PROGRAMS, PROBE_YES, "%s", "");
	probe_set(&net->probe, PROBE_HOLD_PROGRAM, *no_hold ? PROBE_NO : PROBE_YES, "%s", no_hold);
	tell(net);
}
