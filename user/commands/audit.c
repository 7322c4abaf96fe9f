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

int agent_audit(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	struct timespec since = { .tv_sec = time(NULL) };
	const char *name = NULL;
	json_t *changes = NULL;
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
	if (!ret)
		*result = json_pack("{s:o}", "changes", changes);
	return ret;
}
