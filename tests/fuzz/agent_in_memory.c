/* SPDX-License-Identifier: GPL-2.0 */
#include "agent_in_memory.h"
#include "agent/net.h"
#include "agent/servers.h"

#include <assert.h>
#include <event2/event.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit/agent/fake_datapath.h"
#include "audit/file.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "commands/history.h"
#include "saved/saved.h"

static char state_dir[] = P_tmpdir "/weir-fuzz-XXXXXX", pin_dir[] = P_tmpdir "/weir-fuzz-XXXXXX";
static const struct agent_options options = { .state_dir = state_dir, .pin_dir = pin_dir };

/* In place of the log. */
void log_event(const char *level, const char *format, ...)
{
	(void)level;
	(void)format;
}

/* The disk is not what is looked at. */
int fsync(int fd)
{
	(void)fd;
	return 0;
}

static void remove_directories(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/state.json", state_dir);
	unlink(path);
	audit_remove(state_dir);
	rmdir(state_dir);
	rmdir(pin_dir);
}

void agent_begin(struct agent *agent)
{
	static bool begun;
	struct error err;

	if (!begun) {
		if (!mkdtemp(state_dir) || !mkdtemp(pin_dir) || atexit(remove_directories))
			abort();
		signal(SIGPIPE, SIG_IGN);
		begun = true;
	}
	remove_directories();
	if (mkdir(state_dir, 0700) || mkdir(pin_dir, 0700))
		abort();
	fake_reset();
	agent_init(agent, &options);
	agent->base = event_base_new();
	assert(!state_load(&agent->state, state_dir, &err) && !history_open(agent, &err));
}

void agent_finish(struct agent *agent)
{
	nets_close(agent);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		identity_forget(agent, slot);
	history_close(agent);
	state_clear(&agent->state);
	event_base_free(agent->base);
	agent_destroy(agent);
}

char *agent_servers(const struct agent *agent)
{
	CLEANUP_JSON json_t *servers = json_array();

	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (agent->state.servers[slot])
			json_array_append_new(servers, server_to_json(agent->state.servers[slot]));
	return json_dumps(servers, JSON_SORT_KEYS);
}
