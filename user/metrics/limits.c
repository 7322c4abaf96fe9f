/* SPDX-License-Identifier: GPL-2.0 */
/* What limits have counted, and what they are: all with the same labels. */
#include "metrics/metrics.h"

enum family {
	REQUESTS,
	IN_FLIGHT,
	IN_FLIGHT_HIGHEST,
	IN_FLIGHT_MAX,
	QPS,
	BURST,
	DRY_RUN,
	FAMILIES,
};

static const struct {
	const char *name, *type, *help;
} families_of[FAMILIES] = {
	[REQUESTS] = { "weir_limit_requests_total", "counter",
		       "Requests, or new connections, by limit and by that limit's outcome." },
	[IN_FLIGHT] = { "weir_limit_in_flight", "gauge",
			"Requests in flight, or open connections, under the limit, over all subjects. With very many subjects up to half a minute old." },
	[IN_FLIGHT_HIGHEST] = { "weir_limit_in_flight_highest", "gauge",
				"The most requests in flight, or open connections, that one subject of the limit ever had." },
	[IN_FLIGHT_MAX] = { "weir_limit_in_flight_max", "gauge",
			    "The most requests in flight, or open connections, that the limit allows a subject by default." },
	[QPS] = { "weir_limit_qps", "gauge", "The limit's default rate, in requests or new connections a second." },
	[BURST] = { "weir_limit_burst", "gauge", "The limit's default burst." },
	[DRY_RUN] = { "weir_limit_dry_run", "gauge",
		      "1: what the limit would refuse passes, by its own dry run or its server's." },
};

struct limit_families {
	json_t *samples[FAMILIES];
};

static json_t *labels_of(const struct metrics_server *server, const struct metrics_limit *limit)
{
	return json_pack("{s:s, s:s}", "server", server->name, "limit", limit->name);
}

static void add_outcomes(json_t *samples, const struct metrics_server *server, const struct metrics_limit *limit)
{
	const struct {
		const char *outcome;
		__u64 value;
	} outcomes[] = {
		{ "admitted", limit->counts.admitted },
		{ "refused", limit->counts.refused },
		{ "dry_run_refused", limit->counts.dry_run_refused },
	};

	for (size_t i = 0; i < sizeof(outcomes) / sizeof(*outcomes); i++) {
		json_t *labels = labels_of(server, limit);

		json_object_set_new(labels, "outcome", json_string(outcomes[i].outcome));
		metrics_add_sample(samples, labels, json_integer(outcomes[i].value));
	}
}

static void add_in_flight(struct limit_families *families, const struct metrics_limit *limit, json_t *labels)
{
	metrics_add_sample(families->samples[IN_FLIGHT], json_incref(labels), json_integer(limit->taken));
	metrics_add_sample(families->samples[IN_FLIGHT_HIGHEST], json_incref(labels),
			   json_integer(limit->counts.highest));
	if (limit->configured)
		metrics_add_sample(families->samples[IN_FLIGHT_MAX], json_incref(labels), json_integer(limit->burst));
}

static void add_rate(struct limit_families *families, const struct metrics_limit *limit, json_t *labels)
{
	metrics_add_sample(families->samples[QPS], json_incref(labels), json_real(limit->qps));
	metrics_add_sample(families->samples[BURST], json_incref(labels), json_integer(limit->burst));
}

static void add_limit(struct limit_families *families, const struct metrics_server *server,
		      const struct metrics_limit *limit)
{
	json_t *labels = labels_of(server, limit);

	add_outcomes(families->samples[REQUESTS], server, limit);
	metrics_add_sample(families->samples[DRY_RUN], json_incref(labels), json_integer(limit->dry_run));
	if (limit->in_flight)
		add_in_flight(families, limit, labels);
	else if (limit->configured)
		add_rate(families, limit, labels);
	json_decref(labels);
}

void metrics_add_limits(json_t *families, const struct metrics_server *servers, size_t n)
{
	struct limit_families of;

	for (int i = 0; i < FAMILIES; i++)
		of.samples[i] = metrics_add_family(families, families_of[i].name, families_of[i].type,
						   families_of[i].help);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < servers[i].n_limits; k++)
			add_limit(&of, &servers[i], &servers[i].limits[k]);
}
