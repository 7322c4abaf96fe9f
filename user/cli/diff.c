/* SPDX-License-Identifier: GPL-2.0 */
/* What applying policy files would change, as diff(1) shows it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/policy.h"

#define ERROR_OF_DIFF 2 /* as kubectl has it: 1 is a difference */

const struct argp_option cli_diff_options[] = { POLICY_FILE_OPTION, POLICY_SERVER_OPTION, { 0 } };

static int write_documents(const char *directory, const char *name, json_t *documents)
{
	CLEANUP_FREE char *path = NULL;
	CLEANUP_FCLOSE FILE *out = NULL;
	json_t *document;
	size_t i;
	int ret = 0;

	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	out = fopen(path, "we");
	if (!out)
		return -errno;
	json_array_foreach (documents, i, document) {
		fputs("---\n", out);
		ret = ret ?: output_yaml(out, document);
	}
	return ret ?: fflush(out);
}

static int run_diff(const char *directory)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (chdir(directory) == 0)
			execlp("diff", "diff", "-u", "in-force", "applied", NULL);
		_exit(ERROR_OF_DIFF);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return ERROR_OF_DIFF;
	return WEXITSTATUS(status);
}

static void remove_files(const char *directory)
{
	static const char *const names[] = { "in-force", "applied" };

	for (size_t i = 0; i < 2; i++) {
		CLEANUP_FREE char *path = NULL;

		if (asprintf(&path, "%s/%s", directory, names[i]) >= 0)
			unlink(path);
	}
	rmdir(directory);
}

/* The caller frees it; NULL: it could not be made. */
static char *make_directory(void)
{
	const char *parent = getenv("TMPDIR");
	char *path;

	if (asprintf(&path, "%s/weir-diff-XXXXXX", parent && *parent ? parent : P_tmpdir) < 0)
		return NULL;
	if (mkdtemp(path))
		return path;
	free(path);
	return NULL;
}

static int show_difference(json_t *before, json_t *after)
{
	CLEANUP_FREE char *directory = NULL;
	int ret = ERROR_OF_DIFF;

	if (json_equal(before, after))
		return 0;
	directory = make_directory();
	if (!directory)
		return ERROR_OF_DIFF;
	if (!write_documents(directory, "in-force", before) && !write_documents(directory, "applied", after))
		ret = run_diff(directory);
	remove_files(directory);
	return ret;
}

int cli_diff(const struct command *command, int argc, char **argv)
{
	CLEANUP_POLICY_WORDS struct policy_words words = policy_words();
	CLEANUP_JSON json_t *result = NULL;
	json_t *before, *after;

	cli_parse(command, policy_parse_option, &words, argc, argv);
	policy_add_home(words.arguments);
	result = policy_call("diff", &words);
	if (!result)
		return ERROR_OF_DIFF;
	before = json_object_get(result, "before");
	after = json_object_get(result, "after");
	if (cli.format == OUTPUT_TABLE)
		return show_difference(before, after);
	return cli_print(result, NULL) ? ERROR_OF_DIFF : !json_equal(before, after);
}
