/* SPDX-License-Identifier: GPL-2.0 */
/* Policy files put in force and taken out of force; what is in force, as such files. */
#include "cli/policy.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/large_pages.h"
#include "base/output.h"

const struct argp_option cli_apply_options[] = {
	POLICY_FILE_OPTION,
	POLICY_SERVER_OPTION,
	{ "prune", POLICY_KEY_PRUNE, NULL, 0,
	  "delete what was applied before and is not in these files; with --server, of that server alone", 0 },
	{ 0 },
};

const struct argp_option cli_delete_options[] = {
	POLICY_FILE_OPTION,
	POLICY_SERVER_OPTION,
	{ "ignore-not-found", POLICY_KEY_IGNORE, NULL, 0, "do not fail if something is not there", 0 },
	{ 0 },
};

const struct argp_option cli_export_options[] = { CLI_ANY_SERVER_OPTION(POLICY_KEY_SERVER), { 0 } };

/* --- what the commands share */

struct policy_words policy_words(void)
{
	return (struct policy_words){ .files = json_array(), .arguments = json_object() };
}

void policy_words_clear(struct policy_words *words)
{
	json_decref(words->files);
	json_decref(words->arguments);
}

static void add_file(const struct argp_state *state, struct policy_words *words, char *arg)
{
	json_array_append_new(words->files, json_string(cli_path(state, "--filename", arg)));
}

error_t policy_parse_option(int key, char *arg, struct argp_state *state)
{
	struct policy_words *words = state->input;

	switch (key) {
	case 'f':
		add_file(state, words, arg);
		return 0;
	case POLICY_KEY_SERVER:
		json_object_set_new(words->arguments, "server", json_string(cli_server_name(state, arg)));
		return 0;
	case POLICY_KEY_PRUNE:
		json_object_set_new(words->arguments, "prune", json_true());
		return 0;
	case POLICY_KEY_IGNORE:
		json_object_set_new(words->arguments, "ignore_not_found", json_true());
		return 0;
	case ARGP_KEY_ARG:
		cli_word_for(state, arg, "a file is named by -f");
		return 0;
	case ARGP_KEY_END:
		if (!json_array_size(words->files))
			cli_refuse(state, "-f FILE is missing");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

#define BYTES_OF_BYTE 20 /* of memory for what a file holds */

static void expect_large(const char *path)
{
	struct stat info;

	if (!stat(path, &info) && S_ISREG(info.st_mode) && info.st_size > POLICY_LARGE)
		large_pages_expect(info.st_size * BYTES_OF_BYTE);
}

static int read_one(struct policy *policy, const char *path, struct error *err)
{
	cli_await_input(path);
	return policy_read(policy, path, err);
}

static int read_all(const struct policy_words *words, struct policy *policy, struct error *err)
{
	json_t *file;
	size_t i;
	int ret = 0;

	json_array_foreach (words->files, i, file)
		expect_large(json_string_value(file));
	json_array_foreach (words->files, i, file)
		ret = ret ?: read_one(policy, json_string_value(file), err);
	return ret;
}

/* Files and directories, as they were named. */
static void say_nothing_in(const struct policy_words *words, const struct policy *policy)
{
	CLEANUP_FREE char *names = NULL;
	struct error err;
	json_t *file;
	size_t i, size;
	FILE *out = open_memstream(&names, &size);

	if (!out)
		return;
	json_array_foreach (words->files, i, file)
		fprintf(out, "%s%s", i ? ", " : "", json_string_value(file));
	fclose(out);
	error_set(
		&err, -EINVAL,
		policy->n_files ?
			"there is no object in %s" :
			"there is no policy file in %s: of a directory, files are read whose names end in .yaml, .yml or .json",
		names ?: "the files");
	cli_fail(&err);
}

int policy_load(const struct policy_words *words, struct policy *policy)
{
	struct error err;
	int ret = read_all(words, policy, &err);

	if (ret) {
		cli_fail(&err);
		return ret;
	}
	policy_check(policy);
	problems_print(&policy->problems, stderr);
	if (policy->problems.errors)
		return -EINVAL;
	if (policy->n)
		return 0;
	say_nothing_in(words, policy);
	return -EINVAL;
}

json_t *policy_call(const char *request, const struct policy_words *words)
{
	/* What may be very large goes with the process, which ends next: nobody waits for it to be freed bit by bit. */
	static struct policy policy;

	if (policy_load(words, &policy))
		return NULL;
	json_object_set_new(words->arguments, "objects", policy_to_json(&policy));
	return cli_call(request, json_incref(words->arguments));
}

static void print_level(json_t *level)
{
	const char *server = cli_text(level, "server");
	long long seats = cli_number(level, "seats"), of = cli_number(level, "of");
	long long lists = cli_number(level, "lists"), wide = cli_number(level, "wide_lists");

	if (*server)
		printf("server \"%s\": ", server);
	printf("priority level \"%s\": %lld of %lld seat%s: %lld LIST%s at once", cli_text(level, "level"), seats, of,
	       of == 1 ? "" : "s", lists, lists == 1 ? "" : "s");
	if (wide != lists)
		printf(", or %lld wide one%s", wide, wide == 1 ? "" : "s");
	printf("\n");
}

void policy_print_levels(json_t *levels)
{
	json_t *level;
	size_t i;

	json_array_foreach (levels, i, level)
		print_level(level);
}

/* --- apply and delete */

/* What becomes of the server whose Throttle goes. */
static void print_server_is(json_t *change)
{
	const char *name = cli_text(change, "server"), *is = cli_text(change, "server_is");
	long long draining = cli_number(change, "draining");

	if (!strcmp(is, "attached"))
		printf("; the server stays attached with what commands have set (\"weir detach %s\" ends it)", name);
	else if (draining)
		printf("; the server is draining: %lld translated connection%s to end first (\"weir detach %s --force\" resets %s)",
		       draining, draining == 1 ? " has" : "s have", name, draining == 1 ? "it" : "them");
	else if (*is)
		printf("; the server is %s", is);
}

static void print_change(json_t *change)
{
	printf("server \"%s\": %s %s", cli_text(change, "server"), cli_text(change, "object"),
	       cli_text(change, "change"));
	print_server_is(change);
	putchar('\n');
}

static int print_changes(json_t *result)
{
	json_t *change, *server;
	size_t i;

	json_array_foreach (json_object_get(result, "changes"), i, change)
		print_change(change);
	json_array_foreach (json_object_get(result, "inside"), i, server)
		cli_print_inside(server);
	policy_print_levels(json_object_get(result, "levels"));
	return ferror(stdout);
}

void policy_add_home(json_t *arguments)
{
	struct stat self;

	if (stat("/proc/self/ns/net", &self) == 0)
		json_object_set_new(arguments, "netns_inode", json_integer(self.st_ino));
}

int cli_apply(const struct command *command, int argc, char **argv)
{
	CLEANUP_POLICY_WORDS struct policy_words words = policy_words();
	CLEANUP_JSON json_t *result = NULL;

	cli_parse(command, policy_parse_option, &words, argc, argv);
	policy_add_home(words.arguments);
	if (!policy_call_as_is("apply", &words, &result))
		result = policy_call("apply", &words);
	cli_warn(result, "");
	return result ? cli_print(result, print_changes) : 1;
}

int cli_delete(const struct command *command, int argc, char **argv)
{
	CLEANUP_POLICY_WORDS struct policy_words words = policy_words();
	CLEANUP_JSON json_t *result = NULL;

	cli_parse(command, policy_parse_option, &words, argc, argv);
	result = policy_call("delete", &words);
	cli_warn(result, "");
	return result ? cli_print(result, print_changes) : 1;
}

/* --- export */

static error_t parse_export(int key, char *arg, struct argp_state *state)
{
	if (key == ARGP_KEY_ARG)
		cli_word_for(state, arg, CLI_SERVER_NAMED);
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
	CLEANUP_POLICY_WORDS struct policy_words words = policy_words();
	CLEANUP_JSON json_t *result = NULL;

	cli_parse(command, parse_export, &words, argc, argv);
	result = cli_call("export", json_incref(words.arguments));
	return result ? cli_print(result, print_documents) : 1;
}
