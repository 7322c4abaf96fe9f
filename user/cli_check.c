/* SPDX-License-Identifier: GPL-2.0 */
/* Policy files looked at without an agent. */
#include <errno.h>

#include "cleanup.h"
#include "cli_policy.h"

static const struct argp_option options[] = { POLICY_FILE_OPTION, { 0 } };

static void add_file(const struct argp_state *state, struct policy_words *words, const char *arg)
{
	if (!*arg)
		argp_failure(state, CLI_USAGE, 0, "--filename: the name is empty");
	json_array_append_new(words->files, json_string(arg));
}

error_t policy_parse_option(int key, char *arg, struct argp_state *state)
{
	struct policy_words *words = state->input;
	struct error err;

	switch (key) {
	case 'f':
		add_file(state, words, arg);
		return 0;
	case POLICY_KEY_SERVER:
		cli_check(state, parse_server_name(arg, &err), "--server", &err);
		words->server = arg;
		return 0;
	case POLICY_KEY_PRUNE:
		words->prune = true;
		return 0;
	case POLICY_KEY_IGNORE:
		words->ignore_not_found = true;
		return 0;
	case ARGP_KEY_ARG:
		cli_too_many(state, arg);
		return 0;
	case ARGP_KEY_END:
		if (!json_array_size(words->files))
			argp_failure(state, CLI_USAGE, 0, "say which files, with -f");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int read_all(const struct policy_words *words, struct policy *policy, struct error *err)
{
	json_t *file;
	size_t i;
	int ret = 0;

	json_array_foreach (words->files, i, file)
		ret = ret ?: policy_read(policy, json_string_value(file), err);
	return ret;
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
	error_set(&err, -EINVAL, "there is nothing in these files");
	cli_fail(&err);
	return -EINVAL;
}

static int print_checked(json_t *result)
{
	return printf("%lld objects are right\n", cli_number(result, "objects")) < 0;
}

int cli_check_policy(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *files = json_array(), *result = NULL;
	struct policy_words words = { .files = files };
	CLEANUP_POLICY struct policy policy = { 0 };
	int ret;

	cli_parse(command, options, policy_parse_option, &words, argc, argv);
	ret = policy_load(&words, &policy);
	if (ret && cli.format == OUTPUT_TABLE)
		return 1;
	result = json_pack("{s:I, s:o}", "objects", (json_int_t)policy.n, "problems",
			   problems_to_json(&policy.problems));
	return cli_print(result, print_checked) || ret;
}

int cli_schema(const struct command *command, int argc, char **argv)
{
	CLEANUP_JSON json_t *schema = policy_schema();

	cli_parse_plain(command, NULL, argc, argv);
	if (cli.format == OUTPUT_TABLE)
		cli.format = OUTPUT_JSON;
	return cli_print(schema, NULL);
}
