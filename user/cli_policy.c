/* SPDX-License-Identifier: GPL-2.0 */
/* Policy files put in force, compared, taken out of force. */
#include "cli_policy.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cleanup.h"

#define ERROR_OF_DIFF 2 /* as kubectl has it: 1 is a difference */

#define SERVER_OPTION                                                                                  \
	{                                                                                              \
		"server", POLICY_KEY_SERVER, "NAME", 0,                                                \
			"whose EventRateLimit, FlowSchemas and PriorityLevelConfigurations these are " \
			"(default: the only server there is)",                                         \
			0                                                                              \
	}

static const struct argp_option apply_options[] = {
	POLICY_FILE_OPTION,
	SERVER_OPTION,
	{ "prune", POLICY_KEY_PRUNE, NULL, 0, "take away all that was applied before and is not in these files", 0 },
	{ 0 },
};

static const struct argp_option diff_options[] = { POLICY_FILE_OPTION, SERVER_OPTION, { 0 } };

static const struct argp_option delete_options[] = {
	POLICY_FILE_OPTION,
	SERVER_OPTION,
	{ "ignore-not-found", POLICY_KEY_IGNORE, NULL, 0, "what is not there is no error", 0 },
	{ 0 },
};

static const struct argp_option export_options[] = { CLI_SERVER_OPTION(POLICY_KEY_SERVER), { 0 } };

/* A Throttle that says where a server listens attaches it: in the network namespace of the command, unless it says more. */
static json_t *arguments_of(const struct policy_words *words, const struct policy *policy)
{
	return json_pack("{s:s*, s:o}", "server", words->server, "objects", policy_to_json(policy));
}

static void add_home(json_t *arguments)
{
	struct stat self;

	if (stat("/proc/self/ns/net", &self) == 0)
		json_object_set_new(arguments, "netns_inode", json_integer(self.st_ino));
}

static int print_changes(json_t *result)
{
	json_t *change;
	size_t i;

	json_array_foreach (json_object_get(result, "changes"), i, change)
		printf("server \"%s\": %s %s\n", cli_text(change, "server"), cli_text(change, "object"),
		       cli_text(change, "change"));
	return ferror(stdout);
}

/* Before and after are diff's alone. */
static int print_result(json_t *result)
{
	json_object_del(result, "before");
	json_object_del(result, "after");
	return cli_print(result, print_changes);
}

int cli_apply(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *files = json_array(), *result = NULL;
	struct policy_words words = { .files = files };
	CLEANUP_POLICY struct policy policy = { 0 };
	json_t *arguments;

	cli_parse(command, apply_options, policy_parse_option, &words, argc, argv);
	if (policy_load(&words, &policy))
		return 1;
	arguments = arguments_of(&words, &policy);
	add_home(arguments);
	json_object_set_new(arguments, "prune", json_boolean(words.prune));
	result = cli_call("apply", arguments);
	return result ? print_result(result) : 1;
}

int cli_delete(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *files = json_array(), *result = NULL;
	struct policy_words words = { .files = files };
	CLEANUP_POLICY struct policy policy = { 0 };
	json_t *arguments;

	cli_parse(command, delete_options, policy_parse_option, &words, argc, argv);
	if (policy_load(&words, &policy))
		return 1;
	arguments = arguments_of(&words, &policy);
	json_object_set_new(arguments, "ignore_not_found", json_boolean(words.ignore_not_found));
	result = cli_call("delete", arguments);
	return result ? print_result(result) : 1;
}

/* --- diff */

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

static int show_difference(json_t *before, json_t *after)
{
	char directory[] = "/tmp/weir-diff-XXXXXX";
	int ret = ERROR_OF_DIFF;

	if (json_equal(before, after))
		return 0;
	if (!mkdtemp(directory))
		return ERROR_OF_DIFF;
	if (!write_documents(directory, "in-force", before) && !write_documents(directory, "applied", after))
		ret = run_diff(directory);
	remove_files(directory);
	return ret;
}

int cli_diff(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *files = json_array(), *result = NULL;
	struct policy_words words = { .files = files };
	CLEANUP_POLICY struct policy policy = { 0 };
	json_t *arguments, *before, *after;

	cli_parse(command, diff_options, policy_parse_option, &words, argc, argv);
	if (policy_load(&words, &policy))
		return ERROR_OF_DIFF;
	arguments = arguments_of(&words, &policy);
	json_object_set_new(arguments, "dry_run", json_true());
	result = cli_call("apply", arguments);
	if (!result)
		return ERROR_OF_DIFF;
	before = json_object_get(result, "before");
	after = json_object_get(result, "after");
	if (cli.format == OUTPUT_TABLE)
		return show_difference(before, after);
	return cli_print(result, NULL) ? ERROR_OF_DIFF : !json_equal(before, after);
}

/* --- export */

static error_t parse_export(int key, char *arg, struct argp_state *state)
{
	return key == ARGP_KEY_END ? 0 : policy_parse_option(key, arg, state);
}

/* What is not asked for as JSON is YAML: a document each. */
static int print_documents(json_t *list)
{
	json_t *document;
	size_t i;
	int ret = 0;

	json_array_foreach (json_object_get(list, "items"), i, document) {
		puts("---");
		ret = ret ?: output_yaml(stdout, document);
	}
	return ret;
}

int cli_export(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *result = NULL;
	struct policy_words words = { 0 };

	cli_parse(command, export_options, parse_export, &words, argc, argv);
	result = cli_call("export", json_pack("{s:s*}", "server", words.server));
	return result ? cli_print(result, print_documents) : 1;
}
