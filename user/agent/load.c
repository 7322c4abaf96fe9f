/* SPDX-License-Identifier: GPL-2.0 */
/* The state that an agent starts with. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "agent/leftovers.h"
#include "agent/unsaved.h"
#include "base/log.h"
#include "saved/saved.h"

/* Most likely the machine was rebooted, and the state directory with it. */
static void tell_new(const struct agent_options *options)
{
	char path[PATH_MAX] = "";

	if (options->persisted)
		snprintf(path, sizeof(path), "%s/state.json", options->persisted);
	if (*path && !access(path, F_OK))
		log_warning(
			"starting without servers: %s, which an agent with --persist has saved, is read with --persist only",
			path);
	else
		log_info("starting without servers: what commands set is forgotten when the machine is rebooted, "
			 "because --persist is not used");
}

static int load_state(struct agent *agent, struct error *err)
{
	const struct agent_options *options = agent->options;
	int origin = state_begin(&agent->state, options->state_dir, options->persist_dir, err);

	if (origin == STATE_PERSISTED)
		log_info("the machine was rebooted: what commands had set is read from %s", options->persist_dir);
	if (origin == STATE_OUTDATED)
		log_warning(
			"the machine was rebooted: what commands had set is forgotten, because --persist was not used");
	if (origin == STATE_NEW && !options->persist_dir)
		tell_new(options);
	if (origin < 0)
		return origin;
	unsaved_take_up(agent);
	leftovers_look(agent);
	if (options->persist_dir)
		agent_save_first(agent);
	return 0;
}

int agent_load(struct agent *agent, struct error *err)
{
	int ret;

	agent_work_begin(agent);
	ret = load_state(agent, err);
	agent_work_end(agent);
	return ret;
}
