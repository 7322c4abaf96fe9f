/* SPDX-License-Identifier: GPL-2.0 */
/* weir probe: needs no agent, and leaves nothing behind. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/slow.h"
#include "probe/read.h"
#include "sys/netns.h"

const struct argp_option cli_probe_options[] = {
	{ "netns", 'n', "PATH", 0, "network namespace: a path, or a name below /run/netns (default: the current one)",
	  0 },
	{ "binary", 'b', "FILE", 0,
	  "instead, show what weir finds in the binary of a Go server (of one that runs: /proc/PID/exe)", 0 },
	{ 0 },
};

struct probe_options {
	const char *netns, *binary;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct probe_options *options = state->input;

	switch (key) {
	case 'n':
		options->netns = cli_path(state, "--netns", arg);
		return 0;
	case 'b':
		options->binary = cli_path(state, "--binary", arg);
		return 0;
	case ARGP_KEY_END:
		if (options->netns && options->binary)
			cli_refuse(state, "--netns and --binary exclude each other");
		return 0;
	case ARGP_KEY_ARG:
		cli_too_many(state, arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void cell_text(struct table *table, const char *text)
{
	table_cell(table, "%s", text && *text ? text : "-");
}

static void lane_row(struct table *table, json_t *lane)
{
	cell_text(table, cli_text(lane, "lane"));
	cell_text(table, cli_text(lane, "mode"));
	cell_text(table, cli_text(lane, "how"));
	cell_text(table, cli_text(lane, "reason"));
}

static int print_lanes(json_t *lanes)
{
	static const char *const heads[] = { "LANE", "MODE", "HOW", "REASON" };
	CLEANUP_TABLE struct table *table = cli_rows(lanes, heads, CLI_COLUMNS(heads), lane_row);

	return cli_print_first(table);
}

static void fact_row(struct table *table, json_t *fact)
{
	cell_text(table, cli_text(fact, "probe"));
	cell_text(table, cli_text(fact, "result"));
	cell_text(table, cli_text(fact, "why"));
}

static int print_facts(json_t *facts)
{
	static const char *const heads[] = { "PROBE", "RESULT", "WHY" };
	CLEANUP_TABLE struct table *table = cli_rows(facts, heads, CLI_COLUMNS(heads), fact_row);

	return cli_print_more(table);
}

/* "cilium > weir_ingress > bpf": in the order in which they run; brackets around what is not there yet. */
static char *join_owners(json_t *owners)
{
	char *text = NULL;
	json_t *owner;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (json_is_null(owners))
		fputs("?", out);
	json_array_foreach (owners, i, owner) {
		bool planned = json_is_true(json_object_get(owner, "planned"));

		fprintf(out, "%s%s%s%s", i ? " > " : "", planned ? "[" : "", cli_text(owner, "program"),
			planned ? "]" : "");
	}
	fclose(out);
	return text;
}

/* "generic: weir_xdp_generic", or "no: auto: it is up, ..." */
static void cell_xdp(struct table *table, json_t *device)
{
	json_t *owners = json_object_get(device, "xdp"), *owner = json_array_get(owners, 0);
	const char *why = cli_text(device, "xdp_why");

	if (owner)
		table_cell(table, "%s: %s", cli_text(owner, "by"), cli_text(owner, "program"));
	else
		table_cell(table, "%s%s", json_is_null(owners) ? "?" : *why ? "no: " : "no", why);
}

static char *join_offloads(json_t *device)
{
	char *text = NULL;
	json_t *name;
	size_t size, i;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	json_array_foreach (json_object_get(device, "offloads"), i, name)
		fprintf(out, "%s%s", i ? " " : "", json_string_value(name));
	if (json_is_true(json_object_get(device, "big_tcp")))
		fputs(" big-tcp", out);
	fclose(out);
	return text;
}

static void device_row(struct table *table, json_t *device)
{
	CLEANUP_FREE char *ingress = join_owners(json_object_get(device, "ingress"));
	CLEANUP_FREE char *egress = join_owners(json_object_get(device, "egress"));
	CLEANUP_FREE char *offloads = join_offloads(device);
	const char *left_out = cli_text(device, "left_out");

	cell_text(table, cli_text(device, "name"));
	table_cell(table, "%s%s", *left_out ? "no: " : "yes", left_out);
	cell_xdp(table, device);
	cell_text(table, ingress);
	cell_text(table, egress);
	cell_text(table, offloads);
}

static int print_devices(json_t *devices)
{
	static const char *const heads[] = { "INTERFACE", "FIT", "XDP", "INGRESS", "EGRESS", "OFFLOADS" };
	CLEANUP_TABLE struct table *table = cli_rows(devices, heads, CLI_COLUMNS(heads), device_row);

	return cli_print_more(table);
}

static int print_probe(json_t *result)
{
	return print_lanes(json_object_get(result, "lanes"))	     ?:
		       print_facts(json_object_get(result, "facts")) ?:
								       print_devices(json_object_get(result, "devices"));
}

static bool all_full(const struct probe *probe)
{
	for (int lane = 0; lane < PROBE_LANE_COUNT; lane++)
		if (probe_lane(probe, lane).mode != PROBE_FULL)
			return false;
	return true;
}

static void find_out(struct probe *probe, int netns_fd)
{
	CLEANUP_SLOW struct slow slow;

	slow_begin(&slow, "trying programs in the kernel");
	probe_read(probe, netns_fd, cli.pin_dir);
	probe_programs(probe);
}

static int probe_kernel(const char *netns)
{
	CLEANUP_JSON json_t *result = NULL, *devices = NULL;
	CLEANUP_CLOSE int fd = -1;
	struct probe probe = { 0 };
	struct error err;
	int ret;

	fd = netns_open(netns, &err);
	if (fd < 0)
		return cli_fail(&err);
	if (probe_devices(netns || !geteuid() ? fd : -1, &devices, &err))
		return cli_fail(&err);
	find_out(&probe, fd);
	result = probe_to_json(&probe);
	json_object_set(result, "devices", devices);
	ret = cli_print(result, print_probe);
	return ret ?: !all_full(&probe);
}

int cli_probe(const struct command *command, int argc, char **argv)
{
	struct probe_options options = { 0 };

	cli_parse(command, parse, &options, argc, argv);
	return options.binary ? cli_probe_binary(options.binary) : probe_kernel(options.netns);
}
