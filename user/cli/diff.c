/* SPDX-License-Identifier: GPL-2.0 */
/* What applying policy files would change, as diff(1) shows it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/policy.h"

#define ERROR_OF_DIFF 2 /* as kubectl has it: 1 is a difference */

const struct argp_option cli_diff_options[] = { POLICY_FILE_OPTION, POLICY_SERVER_OPTION, { 0 } };

static const char *const sides[] = { "in-force", "applied" };

/* It is there when the file is closed, or not at all. */
static int write_documents(const char *path, json_t *documents)
{
	CLEANUP_FCLOSE FILE *out = fopen(path, "we");
	json_t *document;
	size_t i;
	int ret = 0;

	if (!out)
		return -errno;
	json_array_foreach (documents, i, document) {
		fputs("---\n", out);
		ret = ret ?: output_yaml(out, document);
	}
	return ret ?: output_flush(out);
}

static int write_side(const char *directory, const char *name, json_t *documents, struct error *err)
{
	CLEANUP_FREE char *path = NULL;
	int ret = asprintf(&path, "%s/%s", directory, name) < 0 ? -ENOMEM : write_documents(path, documents);

	return ret ? error_set(err, ret, "writing %s/%s: %s", directory, name, strerror(-ret)) : 0;
}

/* In the child: the parent sees its exit status. */
static void become_diff(const char *directory)
{
	if (chdir(directory) == 0)
		execlp("diff", "diff", "-u", sides[0], sides[1], NULL);
	dprintf(STDERR_FILENO, "weir: running diff: %s. Install it, or use --json\n", strerror(errno));
	_exit(ERROR_OF_DIFF);
}

static int run_diff(const char *directory)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		become_diff(directory);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		return ERROR_OF_DIFF;
	return WEXITSTATUS(status);
}

static void remove_files(const char *directory)
{
	for (size_t i = 0; i < 2; i++) {
		CLEANUP_FREE char *path = NULL;

		if (asprintf(&path, "%s/%s", directory, sides[i]) >= 0)
			unlink(path);
	}
	rmdir(directory);
}

/* The caller frees it. NULL with err filled in: it cannot be made. */
static char *make_directory(struct error *err)
{
	const char *parent = getenv("TMPDIR");
	char *path;

	if (!parent || !*parent)
		parent = P_tmpdir;
	if (asprintf(&path, "%s/weir-diff-XXXXXX", parent) < 0) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	if (mkdtemp(path))
		return path;
	error_set(err, -errno, "making a directory in %s (TMPDIR): %s", parent, strerror(errno));
	free(path);
	return NULL;
}

static int show_difference(json_t *before, json_t *after)
{
	CLEANUP_FREE char *directory = NULL;
	struct error err;
	int ret;

	if (json_equal(before, after))
		return 0;
	directory = make_directory(&err);
	if (!directory) {
		cli_fail(&err);
		return ERROR_OF_DIFF;
	}
	ret = write_side(directory, sides[0], before, &err) ?: write_side(directory, sides[1], after, &err);
	if (ret)
		cli_fail(&err);
	ret = ret ? ERROR_OF_DIFF : run_diff(directory);
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
