/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <time.h>

#include "agent/audit.h"
#include "audit/file.h"
#include "base/cleanup.h"
#include "commands/commands.h"

static int read_changes(struct agent *agent, const char *since, const char *server, json_t **out, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(agent);

	return audit_read(audit_dir(agent), since, server, out, err);
}

/* One that is gone may be asked for: what was done to it stays. */
static int check_known(struct agent *agent, const char *name, struct error *err)
{
	CLEANUP_JSON json_t *ever = NULL;
	int ret = state_find(&agent->state, name) >= 0 ? 0 : read_changes(agent, "", name, &ever, err);

	return ret || !ever || json_array_size(ever) ? ret : state_unknown(&agent->state, name, err);
}

int agent_audit(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	struct timespec since = { .tv_sec = time(NULL) };
	CLEANUP_JSON json_t *changes = NULL;
	const char *name = NULL;
	json_int_t back = 0;
	char text[AUDIT_TIME] = "";
	json_error_t why;
	int ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s?I !}", "name", &name, "since", &back))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	since.tv_sec -= back;
	if (back)
		audit_time(&since, text);
	ret = read_changes(agent, text, name, &changes, err);
	if (!ret && name && !json_array_size(changes))
		ret = check_known(agent, name, err);
	if (!ret)
		*result = json_pack("{s:O}", "changes", changes);
	return ret;
}
