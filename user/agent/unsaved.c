/* SPDX-License-Identifier: GPL-2.0 */
#include "agent/unsaved.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_list.h"
#include "base/log.h"
#include "policy/policy.h"
#include "saved/saved.h"
#include "sys/pins.h"

static const char *const words[UNSAVED_KINDS] = {
	[UNSAVED_PAUSED] = "paused",
	[UNSAVED_DRAINING] = "draining",
	[UNSAVED_ENDED] = "ended",
};

static void note_path(const struct agent *agent, int slot, int how, char path[static PATH_MAX])
{
	pins_path(path, agent->options->pin_dir, "unsaved-%d-%s", slot, words[how]);
}

static void drop_notes(const struct agent *agent)
{
	char path[PATH_MAX];

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		for (int how = 0; how < UNSAVED_KINDS; how++) {
			note_path(agent, slot, how, path);
			rmdir(path);
		}
	}
}

/* Where the last server's pins went, their directory may have, too. */
static int note(const struct agent *agent, int slot, enum unsaved how)
{
	char path[PATH_MAX];

	note_path(agent, slot, how, path);
	mkdir(agent->options->pin_dir, 0700);
	return mkdir(path, 0700) && errno != EEXIST ? -errno : 0;
}

static int save(struct agent *agent, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return state_save(&agent->state, agent->options->state_dir, err);
}

static int save_override(struct agent *agent, int slot, const struct limit *limit, const struct override *override,
			 struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return state_save_override(&agent->state, slot, limit, override, agent->options->state_dir, err);
}

int agent_save(struct agent *agent, struct error *err)
{
	int ret = save(agent, err);

	if (ret || !agent->unsaved.text[0])
		return ret;
	log_info("what could not be saved before is saved");
	agent->unsaved.text[0] = '\0';
	drop_notes(agent);
	return 0;
}

int agent_save_override(struct agent *agent, int slot, const struct limit *limit, const struct override *override,
			struct error *err)
{
	if (agent->unsaved.text[0])
		return agent_save(agent, err);
	return save_override(agent, slot, limit, override, err);
}

void agent_save_first(struct agent *agent)
{
	struct error why;

	if (agent->unsaved.text[0] || !agent_save(agent, &why))
		return;
	error_set(
		&agent->unsaved, 0,
		"what is in force could not be saved: %s. After a reboot what was saved before is in force. The agent tries "
		"to save it every ten seconds",
		why.text);
	log_error("%s", agent->unsaved.text);
}

void agent_save_last(struct agent *agent)
{
	struct error err;

	agent_work_begin(agent);
	if (agent->state.saved.lines && agent_save(agent, &err))
		log_error("%s", err.text);
	agent_work_end(agent);
}

void agent_save_off(struct agent *agent, int slot, const char *name, enum unsaved how)
{
	struct error why;
	int ret;

	if (!agent_save(agent, &why))
		return;
	ret = note(agent, slot, how);
	error_set(&agent->unsaved, 0, "it is off, but this could not be saved: %s. %s", why.text,
		  ret ? "The next agent will turn it on again" :
			"It stays off until the machine is rebooted. The agent tries to save it every ten seconds");
	log_error("server \"%s\": %s", name, agent->unsaved.text);
}

void agent_save_back(struct agent *agent, struct error *err)
{
	struct error failed = err ? *err : (struct error){ 0 }, why;

	if (!agent_save(agent, &why))
		return;
	error_set(
		&agent->unsaved, 0,
		"what failed was taken back, but this could not be saved: %s. An agent that is started now would do it. "
		"This one tries to save it every ten seconds",
		why.text);
	log_error("%s", agent->unsaved.text);
	error_set(err, 0, "%s; %s", failed.text, agent->unsaved.text);
}

void agent_tell_unsaved(const struct agent *agent, json_t *result)
{
	if (agent->unsaved.text[0])
		list_append(result, "warnings", json_string(agent->unsaved.text));
}

void agent_save_again(struct agent *agent)
{
	if (agent->unsaved.text[0])
		agent_save(agent, NULL);
}

static bool noted(const struct agent *agent, int slot, enum unsaved how)
{
	char path[PATH_MAX];

	note_path(agent, slot, how, path);
	return !access(path, F_OK);
}

static void turn_off(struct state *state, int slot, enum unsaved how)
{
	switch (how) {
	case UNSAVED_PAUSED:
		policy_pause(state->servers[slot], true, NULL);
		break;
	case UNSAVED_DRAINING:
		state->servers[slot]->draining = true;
		break;
	default:
		server_free(state->servers[slot]);
		state->servers[slot] = NULL;
	}
}

void unsaved_take_up(struct agent *agent)
{
	bool any = false;

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		for (int how = 0; how < UNSAVED_KINDS; how++) {
			if (!noted(agent, slot, how))
				continue;
			any = true;
			if (!agent->state.servers[slot])
				continue;
			log_info("server \"%s\" is %s: an earlier agent could not save that",
				 agent->state.servers[slot]->name, words[how]);
			turn_off(&agent->state, slot, how);
		}
	}
	if (!any)
		return;
	error_set(&agent->unsaved, 0, "an earlier agent could not save what was turned off");
	agent_save_again(agent);
}
