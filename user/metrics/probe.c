/* SPDX-License-Identifier: GPL-2.0 */
#include <stdio.h>

#include "metrics/metrics.h"

static void add_facts(json_t *samples, const char *netns, const struct probe *probe)
{
	for (int fact = 0; fact < PROBE_FACT_COUNT; fact++)
		metrics_add_sample(samples,
				   json_pack("{s:s, s:s, s:s}", "netns", netns, "probe", probe_fact_name(fact),
					     "result", probe_answer_name(probe->facts[fact].answer)),
				   json_integer(1));
}

static void add_lanes(json_t *samples, const char *netns, const struct probe *probe)
{
	for (int lane = 0; lane < PROBE_LANE_COUNT; lane++) {
		struct probe_result result = probe_lane(probe, lane);

		metrics_add_sample(samples,
				   json_pack("{s:s, s:s, s:s, s:s, s:s}", "netns", netns, "lane", probe_lane_name(lane),
					     "mode", probe_mode_name(result.mode), "how", result.how, "reason",
					     result.reason ?: ""),
				   json_integer(1));
	}
}

void metrics_add_probes(json_t *families, const struct metrics_net *nets, size_t n)
{
	json_t *facts = metrics_add_family(families, "weir_probe", "gauge",
					   "Facts about the kernel and a network namespace. Always 1.");
	json_t *lanes = metrics_add_family(
		families, "weir_lane", "gauge",
		"What weir can do in a network namespace, and the reason for a lesser mode. Always 1.");
	char netns[32];

	for (size_t i = 0; i < n; i++) {
		snprintf(netns, sizeof(netns), "%llu", nets[i].cookie);
		add_facts(facts, netns, nets[i].probe);
		add_lanes(lanes, netns, nets[i].probe);
	}
}
