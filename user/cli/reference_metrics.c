/* SPDX-License-Identifier: GPL-2.0 */
/* The metrics, as an agent with one of everything serves them, and the reasons that are their labels. */
#include <string.h>

#include "agent/agent.h"
#include "agent/reconcile.h"
#include "base/cleanup.h"
#include "cli/reference.h"
#include "follow/follow.h"

static json_t *example_families(void)
{
	static struct agent agent;
	struct server server = { .name = "web" };
	struct followed followed = { .path = "/etc/weir" };
	const struct followed_paths paths = { .items = &followed, .n = 1 };
	const struct probe probe = { 0 };
	const struct metrics_net net = { .probe = &probe };
	const struct metrics_limit limits[] = { { .name = "user", .in_flight = true, .configured = true },
						{ .name = "user", .configured = true } };
	const struct metrics_server measured = { .name = server.name, .limits = limits, .n_limits = 2 };
	const struct metrics_snapshot snapshot = {
		.nets = &net, .n_nets = 1, .servers = &measured, .n_servers = 1, .n_counted = 1, .version = ""
	};
	json_t *families = metrics_families(&snapshot);

	agent.state.servers[0] = &server;
	agent.top.servers = json_pack("{s:{s:{}}}", server.name, "alice");
	metrics_top_families(&agent.top, families);
	json_decref(agent.top.servers);
	reconcile_metrics(&agent, families);
	follow_measure(&paths, families);
	return families;
}

static void print_labels(FILE *out, json_t *family)
{
	json_t *sample = json_array_get(json_object_get(family, "samples"), 0), *value;
	const char *name, *separator = "{";

	json_object_foreach (json_object_get(sample, "labels"), name, value) {
		if (strcmp(name, "le") == 0)
			continue;
		fprintf(out, "%s%s", separator, name);
		separator = ",";
	}
	if (*separator == ',')
		fputc('}', out);
}

void reference_metrics(FILE *out)
{
	CLEANUP_JSON json_t *families = example_families();
	json_t *family;
	size_t i;

	reference_title(out, "Metrics");
	fputs("The agent serves Prometheus metrics on `http://127.0.0.1:9790/metrics` (`weir agent --metrics`). `weir metrics` prints them once.\n"
	      "`/livez` and `/healthz` answer `ok` while the agent runs. `/readyz` does once it has brought its servers into force, and 503 before.\n\n"
	      "The label values are in [reasons](reasons.md). Alerts are in [Monitor weir](../howto/monitor.md).\n\n"
	      "| Metric | Type | |\n| --- | --- | --- |\n",
	      out);
	json_array_foreach (families, i, family) {
		fprintf(out, "| `%s", cli_text(family, "name"));
		print_labels(out, family);
		fprintf(out, "` | %s | ", cli_text(family, "type"));
		reference_cell(out, cli_text(family, "help"));
		fputs(" |\n", out);
	}
}

static void print_reasons(FILE *out, const struct metrics_group_family *family)
{
	fprintf(out, "## %s{%s}\n\n%s\n\n| `%s` | Meaning |\n| --- | --- |\n", family->name, family->label,
		family->help, family->label);
	for (int reason = 0; reason < WEIR_REASON_COUNT; reason++) {
		if (metrics_reasons[reason].group != family->group)
			continue;
		fprintf(out, "| `%s` | ", metrics_reasons[reason].label);
		reference_cell(out, metrics_reason_help(reason));
		fputs(" |\n", out);
	}
	fputc('\n', out);
}

void reference_reasons(FILE *out)
{
	reference_title(out, "Reasons");
	fputs("Every outcome has a name. The same name is the label of a [metric](metrics.md), a key of `weir status --json` and a "
	      "word in the log.\n\n"
	      "These words are in many rows:\n\n"
	      "- **Shed**: refused by a limit, and answered 429.\n"
	      "- **Rejected**: answered 400, or the connection was closed, because the HTTP is ambiguous.\n"
	      "- **Held**: weir cannot read the connection. Over a limit its packets [wait](../internals/reading.md#held-traffic).\n"
	      "- **Translated**: a connection that stayed open after a 429. weir changes its TCP sequence numbers, because the server did "
	      "not send that 429.\n"
	      "- **Dropped**: the packet was not delivered. TCP sends it again, in most cases.\n\n",
	      out);
	for (const struct metrics_group_family *family = metrics_group_families; family->name; family++)
		print_reasons(out, family);
}
