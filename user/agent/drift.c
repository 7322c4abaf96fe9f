/* SPDX-License-Identifier: GPL-2.0 */
/* What others have changed in the kernel, as it was found and repaired: counted, and told. */
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/net.h"
#include "agent/reconcile.h"
#include "base/log.h"

static struct datapath_changes difference(const struct datapath_changes *after, const struct datapath_changes *before)
{
	return (struct datapath_changes){ after->added - before->added, after->changed - before->changed,
					  after->dropped - before->dropped };
}

/* Devices and cgroups come and go by themselves: what had come off is drift alone. */
static struct datapath_changes drift_of(enum datapath_part part, const struct datapath_written *after,
					const struct datapath_written *before)
{
	struct datapath_changes drift = difference(&after->of[part], &before->of[part]);

	if (part == DATAPATH_links || part == DATAPATH_named_devices || part == DATAPATH_holds)
		drift.added = drift.dropped = 0;
	return drift;
}

/* "limits: 1 changed; overrides: 2 missing, 1 not weir's" */
static void append(FILE *out, enum datapath_part part, const struct datapath_changes *drift)
{
	const struct {
		__u64 n;
		const char *what;
	} changes[] = { { drift->added, "missing" }, { drift->changed, "changed" }, { drift->dropped, "not weir's" } };
	const char *separator = ":";

	fprintf(out, "%s%s", ftell(out) ? "; " : "", datapath_part_name(part));
	for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
		if (!changes[i].n)
			continue;
		fprintf(out, "%s %llu %s", separator, changes[i].n, changes[i].what);
		separator = ",";
	}
}

void drift_found(struct agent *agent, struct net *net, int slot, const struct datapath_written *before)
{
	char text[512] = "";
	FILE *out = fmemopen(text, sizeof(text) - 1, "w"); /* what does not fit is cut, with its NUL */

	for (int part = 0; part < DATAPATH_N_PARTS && out; part++) {
		struct datapath_changes drift = drift_of(part, datapath_written(net->dp), before);
		__u64 n = drift.added + drift.changed + drift.dropped;

		if (!n)
			continue;
		agent->servers[slot].drift[part] += n;
		append(out, part, &drift);
	}
	if (out)
		fclose(out);
	if (*text)
		log_warning("server \"%s\": changes by others in the kernel were repaired: %s",
			    agent->state.servers[slot]->name, text);
}

/* --- metrics */

static void add_written(struct datapath_written *sum, const struct datapath_written *written)
{
	for (int part = 0; part < DATAPATH_N_PARTS; part++) {
		sum->of[part].added += written->of[part].added;
		sum->of[part].changed += written->of[part].changed;
		sum->of[part].dropped += written->of[part].dropped;
	}
}

static void add_writes(json_t *families, const struct datapath_written *written)
{
	json_t *samples = metrics_add_family(families, "weir_written_total", "counter",
					     "Entries written to or removed from the kernel's maps, by map.");

	for (int part = 0; part < DATAPATH_N_PARTS; part++) {
		const struct datapath_changes *changes = &written->of[part];

		metrics_add_sample(samples, json_pack("{s:s}", "what", datapath_part_name(part)),
				   json_integer(changes->added + changes->changed + changes->dropped));
	}
}

void drift_metrics(const struct agent *agent, json_t *families)
{
	json_t *samples = metrics_add_family(families, "weir_drift_repaired_total", "counter",
					     "Changes by others in the kernel that the agent repaired.");
	struct datapath_written written = agent->written_before;
	const struct net *net;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		for (int part = 0; part < DATAPATH_N_PARTS && agent->state.servers[slot]; part++)
			metrics_add_sample(samples,
					   json_pack("{s:s, s:s}", "server", agent->state.servers[slot]->name, "what",
						     datapath_part_name(part)),
					   json_integer(agent->servers[slot].drift[part]));
	}
	for (net = agent->nets; net; net = net->next)
		add_written(&written, &net->written);
	add_writes(families, &written);
}

void drift_keep_written(struct agent *agent, const struct net *net)
{
	add_written(&agent->written_before, datapath_written(net->dp));
}
