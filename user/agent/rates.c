/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/rates.h"

#include <string.h>

#include "agent/agent.h"
#include "agent/servers.h"
#include "base/clock.h"

#define SHORTEST_NS WEIR_NS_PER_S /* of what a rate is made of */

static struct rates_sample sample_of(const __u64 *counters)
{
	return (struct rates_sample){
		.time_ns = clock_ns(CLOCK_MONOTONIC),
		.requests = counters[WEIR_PASSED] + counters[WEIR_SHED] + counters[WEIR_EXEMPT] +
			    counters[WEIR_DRY_RUN_SHED] + counters[WEIR_REJECTED] + counters[WEIR_DRY_RUN_REJECTED],
		.refused = counters[WEIR_SHED],
		.would_refuse = counters[WEIR_DRY_RUN_SHED],
		.records = counters[WEIR_RECORDS_PASSED],
		.inside = counters[WEIR_INSIDE_SEEN],
	};
}

static void look_at(struct agent *agent, int slot)
{
	struct rates *rates = &agent->servers[slot].rates;
	__u64 counters[WEIR_REASON_COUNT];

	if (!agent->servers[slot].in_force ||
	    datapath_counters(server_net(agent, agent->state.servers[slot])->dp, slot, counters, NULL)) {
		memset(rates, 0, sizeof(*rates));
		return;
	}
	rates->before = rates->latest;
	rates->latest = sample_of(counters);
}

void rates_look(struct agent *agent)
{
	agent_lock(agent);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		look_at(agent, slot);
	agent_unlock(agent);
}

/* A second. Counters of a server that took the slot of another one begin anew. */
static json_t *rate(__u64 now, __u64 then, double seconds)
{
	return json_real(now > then ? (now - then) / seconds : 0);
}

json_t *rates_json(const struct rates *rates, const __u64 counters[static WEIR_REASON_COUNT])
{
	const struct rates_sample now = sample_of(counters), *then = &rates->before;
	double seconds;

	if (!then->time_ns)
		then = &rates->latest;
	if (!then->time_ns || now.time_ns < then->time_ns + SHORTEST_NS)
		return json_null();
	seconds = (double)(now.time_ns - then->time_ns) / WEIR_NS_PER_S;
	return json_pack("{s:f, s:o, s:o, s:o, s:o, s:o}", "seconds", seconds, "requests",
			 rate(now.requests, then->requests, seconds), "refused",
			 rate(now.refused, then->refused, seconds), "would_refuse",
			 rate(now.would_refuse, then->would_refuse, seconds), "records",
			 rate(now.records, then->records, seconds), "inside", rate(now.inside, then->inside, seconds));
}
