/* SPDX-License-Identifier: GPL-2.0 */
/* Policy files looked at without an agent. */
#include "base/cleanup.h"
#include "cli/policy.h"

const struct argp_option cli_check_options[] = { POLICY_FILE_OPTION, { 0 } };

static int print_checked(json_t *result)
{
	long long n = cli_number(result, "objects");

	printf("%lld object%s right\n", n, n == 1 ? " is" : "s are");
	policy_print_levels(json_object_get(result, "levels"));
	return ferror(stdout);
}

int cli_check_policy(const struct command *command, int argc, char **argv)
{
	CLEANUP_POLICY_WORDS struct policy_words words = policy_words();
	CLEANUP_POLICY struct policy policy = { 0 };
	CLEANUP_JSON json_t *result = NULL;
	int ret;

	cli_parse(command, policy_parse_option, &words, argc, argv);
	ret = policy_load(&words, &policy);
	if (ret && cli.format == OUTPUT_TABLE)
		return 1;
	result = json_pack("{s:I, s:o, s:O*}", "objects", (json_int_t)policy.n, "problems",
			   problems_to_json(&policy.problems), "levels", policy.levels);
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
