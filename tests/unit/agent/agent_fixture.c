/* SPDX-License-Identifier: GPL-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "agent/net.h"
#include "agent/reconcile.h"
#include "agent/servers.h"
#include "agent/unsaved.h"
#include "agent_fixture.h"
#include "audit/file.h"
#include "base/cleanup.h"
#include "commands/history.h"
#include "daemon/request.h"
#include "fake_datapath.h"
#include "saved/saved.h"

void reconcile(struct fixture *f)
{
	agent_repair_begin(&f->agent);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		if (f->agent.state.servers[slot])
			server_reconcile(&f->agent, slot, &f->err);
	agent_repair_end(&f->agent);
}

void start_agent(struct fixture *f)
{
	agent_init(&f->agent, &f->options);
	f->agent.base = event_base_new();
	assert_int_equal(state_load(&f->agent.state, f->state_dir, &f->err), 0);
	assert_int_equal(history_open(&f->agent, &f->err), 0);
	agent_work_begin(&f->agent);
	unsaved_take_up(&f->agent);
	agent_work_end(&f->agent);
	reconcile(f);
}

void end_agent(struct fixture *f)
{
	nets_close(&f->agent);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		identity_forget(&f->agent, slot);
	history_close(&f->agent);
	state_clear(&f->agent.state);
	event_base_free(f->agent.base);
	agent_destroy(&f->agent);
}

int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	strcpy(f->state_dir, P_tmpdir "/weir-test-XXXXXX");
	strcpy(f->pin_dir, P_tmpdir "/weir-test-XXXXXX");
	assert_non_null(mkdtemp(f->state_dir));
	assert_non_null(mkdtemp(f->pin_dir));
	f->options = (struct agent_options){ .state_dir = f->state_dir, .pin_dir = f->pin_dir };
	fake_reset();
	start_agent(f);
	*state = f;
	return 0;
}

int tear_down(void **state)
{
	struct fixture *f = *state;
	char path[64];

	end_agent(f);
	snprintf(path, sizeof(path), "%s/state.json", f->state_dir);
	unlink(path);
	audit_remove(f->state_dir);
	assert_int_equal(rmdir(f->state_dir), 0);
	assert_int_equal(rmdir(f->pin_dir), 0);
	free(f);
	return 0;
}

json_t *run(struct fixture *f, const char *command, const char *arguments)
{
	CLEANUP_JSON json_t *json = json_loads(arguments, 0, NULL);
	json_t *result = NULL;

	assert_non_null(json);
	f->err.text[0] = '\0';
	if (agent_request(&f->agent, NULL, command, json, &result, &f->err)) {
		assert_null(result);
		assert_string_not_equal(f->err.text, "");
	}
	return result;
}

void succeed(struct fixture *f, const char *command, const char *arguments)
{
	CLEANUP_JSON json_t *result = run(f, command, arguments);

	if (!result)
		fail_msg("%s %s: %s", command, arguments, f->err.text);
}

void refuse(struct fixture *f, const char *command, const char *arguments, const char *word)
{
	CLEANUP_JSON json_t *result = run(f, command, arguments);

	assert_null(result);
	if (!strstr(f->err.text, word))
		fail_msg("%s %s: \"%s\" does not say \"%s\"", command, arguments, f->err.text, word);
}

char *saved_state(const struct fixture *f)
{
	CLEANUP_JSON json_t *servers = json_array();
	struct state saved = { 0 };

	assert_int_equal(state_load(&saved, f->state_dir, NULL), 0);
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++)
		json_array_append_new(servers, saved.servers[slot] ? server_to_json(saved.servers[slot]) : json_null());
	state_clear(&saved);
	return json_dumps(servers, JSON_COMPACT | JSON_SORT_KEYS);
}

void write_file(const char *path, const char *text)
{
	CLEANUP_FCLOSE FILE *out = fopen(path, "we");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
}

void assert_saved(const struct fixture *f, const char *before)
{
	CLEANUP_FREE char *after = saved_state(f);

	assert_string_equal(before, after);
}
