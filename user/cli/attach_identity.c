/* SPDX-License-Identifier: GPL-2.0 */
/* The options of `attach` that say how requests are identified. What they give goes into the member "identity". */
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "model/identity.h"
#include "model/identity_file.h"
#include "model/parse.h"

enum {
	KEY_USER_HEADER = 0x300,
	KEY_GROUP_HEADER,
	KEY_EXEMPT_GROUP,
	KEY_EXEMPT_USER,
	KEY_TOKEN_FILE,
	KEY_ADDRESS,
	KEY_ADDRESS_FILE,
	KEY_NEW_SUBJECTS,
	KEY_LAST = KEY_NEW_SUBJECTS,
};

static const struct argp_option options[] = {
	{ NULL, 0, NULL, 0, "Identity:", 5 },
	{ "user-header", KEY_USER_HEADER, "NAME", 0,
	  "header in which trusted proxies name the user, up to 24 bytes (default: X-Remote-User)", 5 },
	{ "group-header", KEY_GROUP_HEADER, "NAME", 0,
	  "header in which trusted proxies name a group; a request may have several (default: X-Remote-Group)", 5 },
	{ "token-file", KEY_TOKEN_FILE, "FILE", 0, "CSV file of bearer tokens: token,user,uid,\"group1,group2\"", 5 },
	{ "address", KEY_ADDRESS, "ROW", 0,
	  "user for a network: CIDR,user,\"group1,group2\",namespace (the last two are optional). Repeatable", 5 },
	{ "address-file", KEY_ADDRESS_FILE, "FILE", 0, "CSV file of such rows", 5 },
	{ "new-subjects", KEY_NEW_SUBJECTS, "QPS[:BURST]", 0,
	  "rate at which new subjects of a limit get a bucket of their own; the others share one (default: 1000:10000; 0: no bound)",
	  5 },
	{ "exempt-group", KEY_EXEMPT_GROUP, "NAME", 0,
	  "group that is exempt from all limits. Repeatable (default: system:masters; '': none)", 5 },
	{ "exempt-user", KEY_EXEMPT_USER, "NAME", 0, "user or address that is exempt from all limits. Repeatable", 5 },
	{ 0 },
};

static json_t *member(json_t *object, const char *key, json_t *otherwise)
{
	json_t *found = json_object_get(object, key);

	if (found) {
		json_decref(otherwise);
		return found;
	}
	json_object_set_new(object, key, otherwise);
	return otherwise;
}

static void set_header(const struct argp_state *state, json_t *identity, const char *key, const char *option,
		       const char *arg)
{
	char name[PARSE_HEADER_SIZE];
	struct error err;

	cli_check(state, parse_header(arg, name, &err), option, &err);
	json_object_set_new(identity, key, json_string(name));
}

static void add_exempt_group(const struct argp_state *state, json_t *identity, const char *arg)
{
	json_t *groups = member(identity, "exempt_groups", json_array());
	struct error err;

	if (!*arg)
		return;
	cli_check(state, parse_subject_name(arg, &err), "--exempt-group", &err);
	json_array_append_new(groups, json_string(arg));
}

static void add_exempt_user(const struct argp_state *state, json_t *identity, const char *arg)
{
	struct subject subject;
	struct error err;

	cli_check(state, parse_subject(WEIR_KEY_USER, arg, &subject, &err), "--exempt-user", &err);
	json_array_append_new(member(identity, "exempt_users", json_array()), json_string(subject.text));
}

/* The agent has another working directory. */
static void set_file(const struct argp_state *state, json_t *identity, const char *key, const char *option, char *arg)
{
	CLEANUP_FREE char *cwd = *arg == '/' ? NULL : getcwd(NULL, 0);

	cli_path(state, option, arg);
	json_object_set_new(identity, key, cwd ? json_sprintf("%s/%s", cwd, arg) : json_string(arg));
}

static int no_address(const struct address_row *row, void *context)
{
	(void)row;
	(void)context;
	return 0;
}

static void add_address(const struct argp_state *state, json_t *identity, const char *arg)
{
	struct error err;

	cli_check(state, address_text_read(arg, no_address, NULL, &err), "--address", &err);
	json_array_append_new(member(identity, "addresses", json_array()), json_string(arg));
}

static void set_new_subjects(const struct argp_state *state, json_t *identity, const char *arg)
{
	struct error err;
	__u64 per_ns;
	__u32 burst;

	cli_check(state, newcomers_parse(arg, &per_ns, &burst, &err), "--new-subjects", &err);
	json_object_set_new(identity, "new_subjects", json_string(arg));
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	json_t *identity;

	if (key < KEY_USER_HEADER || key > KEY_LAST)
		return ARGP_ERR_UNKNOWN;
	identity = member(state->input, "identity", json_object());
	switch (key) {
	case KEY_USER_HEADER:
		set_header(state, identity, "user_header", "--user-header", arg);
		break;
	case KEY_GROUP_HEADER:
		set_header(state, identity, "group_header", "--group-header", arg);
		break;
	case KEY_EXEMPT_GROUP:
		add_exempt_group(state, identity, arg);
		break;
	case KEY_EXEMPT_USER:
		add_exempt_user(state, identity, arg);
		break;
	case KEY_TOKEN_FILE:
		set_file(state, identity, "token_file", "--token-file", arg);
		break;
	case KEY_ADDRESS:
		add_address(state, identity, arg);
		break;
	case KEY_ADDRESS_FILE:
		set_file(state, identity, "address_file", "--address-file", arg);
		break;
	case KEY_NEW_SUBJECTS:
		set_new_subjects(state, identity, arg);
		break;
	}
	return 0;
}

const struct argp cli_attach_identity = { .options = options, .parser = parse };
