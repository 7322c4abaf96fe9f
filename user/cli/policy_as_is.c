/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A large file that is JSON goes to the agent as it is. To read it here and write it again would take longer than all that the agent does with
 * it.
 */
#include <errno.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "cli/policy.h"
#include "control/control.h"

/* NULL: there are others, or it is small, or may be read only once. */
static const char *only_large_file(const struct policy_words *words)
{
	const char *path = json_string_value(json_array_get(words->files, 0));
	struct stat info;

	if (json_array_size(words->files) != 1 || stat(path, &info) || !S_ISREG(info.st_mode))
		return NULL;
	return info.st_size > POLICY_LARGE ? path : NULL;
}

/* Another error is the agent's own, and would be the same again. */
static json_t *call(const char *request, json_t *arguments, const char *text)
{
	json_t *result = NULL;
	struct error err;
	int ret = control_call_with(cli.state_dir, request, arguments, text, &result, cli_say_waiting, &err);

	if (ret == -EBADMSG || ret == -E2BIG) /* read, it may be shorter */
		return json_pack("{s:b}", "client_reads", 1);
	if (ret)
		cli_fail(&err);
	return result;
}

bool policy_call_as_is(const char *request, const struct policy_words *words, json_t **result)
{
	CLEANUP_JSON json_t *arguments = json_copy(words->arguments), *answer = NULL;
	CLEANUP_FREE char *text = NULL, *name = NULL;
	const char *path = only_large_file(words);
	size_t length;

	if (!path || policy_file_text(path, &text, &length, &name, NULL) || !policy_is_as_yaml(text, length))
		return false;
	json_object_set_new(arguments, "file", json_string(name));
	answer = call(request, arguments, text);
	if (json_is_true(json_object_get(answer, "client_reads")))
		return false;
	*result = json_incref(answer);
	return true;
}
