/* SPDX-License-Identifier: GPL-2.0 */
#include "model/identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weir/base/groups.h"

#include "base/rate.h"
#include "model/identity_file.h"

#define USER_HEADER "x-remote-user"
#define GROUP_HEADER "x-remote-group"
#define EXEMPT_GROUP "system:masters"
#define NEWCOMERS "1000"
#define NEWCOMERS_S 10

void identity_settings_clear(struct identity_settings *settings)
{
	texts_clear(&settings->exempt_groups);
	texts_clear(&settings->exempt_users);
	texts_clear(&settings->rule_groups);
	texts_clear(&settings->addresses);
	free(settings->token_file);
	free(settings->address_file);
}

/* The burst that goes with a rate alone: what it gains in NEWCOMERS_S seconds. */
static __u64 usual_burst(__u64 per_ns)
{
	__u64 qps = (per_ns + WEIR_QPS - 1) / WEIR_QPS;

	return qps < WEIR_BURST_MAX / NEWCOMERS_S ? qps * NEWCOMERS_S : WEIR_BURST_MAX;
}

int newcomers_parse(const char *text, __u64 *per_ns, __u32 *burst, struct error *err)
{
	const char *colon = strchrnul(text, ':');
	char qps[WEIR_QPS_TEXT] = "";
	__u64 rate, tokens;

	if (colon - text < (ptrdiff_t)sizeof(qps))
		memcpy(qps, text, colon - text);
	if (weir_qps_parse(qps, &rate))
		return error_set(err, -EINVAL, "\"%s\" is not QPS or QPS:BURST: the rate is a decimal from 0 to %u",
				 text, WEIR_QPS_MAX);
	tokens = usual_burst(rate);
	if (*colon && weir_burst_parse(colon + 1, &tokens))
		return error_set(err, -EINVAL, "\"%s\" is not QPS or QPS:BURST: the burst is a whole number up to %u",
				 text, WEIR_BURST_MAX);
	*per_ns = rate;
	*burst = tokens;
	return 0;
}

#define NEWCOMERS_TEXT (WEIR_QPS_TEXT + 16)

static void newcomers_format(const struct identity_settings *settings, char text[static NEWCOMERS_TEXT])
{
	char qps[WEIR_QPS_TEXT];

	weir_qps_format(settings->newcomers_per_ns, qps, sizeof(qps));
	snprintf(text, NEWCOMERS_TEXT, "%s:%u", qps, settings->newcomers);
}

json_t *identity_settings_to_json(const struct identity_settings *settings)
{
	char newcomers[NEWCOMERS_TEXT];

	newcomers_format(settings, newcomers);
	return json_pack("{s:s, s:s, s:o, s:o, s:s?, s:s?, s:o, s:s}", "user_header", settings->user_header,
			 "group_header", settings->group_header, "exempt_groups",
			 texts_to_json(&settings->exempt_groups), "exempt_users",
			 texts_to_json(&settings->exempt_users), "token_file", settings->token_file, "address_file",
			 settings->address_file, "addresses", texts_to_json(&settings->addresses), "new_subjects",
			 newcomers);
}

static int no_address(const struct address_row *row, void *context)
{
	(void)row;
	(void)context;
	return 0;
}

static int address_text(const char *text, char **out, struct error *err)
{
	return address_text_read(text, no_address, NULL, err) ?: copy_text(text, out, err);
}

/* The agent's working directory is another one than that of who gave the path. */
static int path_from_json(json_t *json, const char *key, char **out, struct error *err)
{
	const char *path = json_string_value(json);

	if (!json || json_is_null(json))
		return 0;
	if (!path || *path != '/')
		return error_set_field(err, -EINVAL, key, NULL, "must be an absolute path");
	return copy_text(path, out, err);
}

/* The members of the object, borrowed; NULL: not given. */
struct members {
	const char *user_header, *group_header, *new_subjects;
	json_t *exempt_groups, *exempt_users, *token_file, *address_file, *addresses;
};

static int headers_read(const struct members *m, struct identity_settings *out, struct error *err)
{
	struct error why = { 0 };

	if (parse_header(m->user_header ?: USER_HEADER, out->user_header, &why))
		return error_set_field(err, -EINVAL, "user_header", NULL, "%s", why.text);
	if (parse_header(m->group_header ?: GROUP_HEADER, out->group_header, &why))
		return error_set_field(err, -EINVAL, "group_header", NULL, "%s", why.text);
	if (strcmp(out->user_header, out->group_header) == 0)
		return error_set(err, -EINVAL, "\"%s\" cannot name both the user and groups", out->user_header);
	return 0;
}

/* Beside groups there is one bit for all the users who are exempt. */
static int exempt_read(const struct members *m, struct identity_settings *out, struct error *err)
{
	int ret = 0;

	if (m->exempt_groups)
		ret = texts_from_json(m->exempt_groups, "exempt_groups", group_text, &out->exempt_groups, err);
	if (!ret && m->exempt_users)
		ret = texts_from_json(m->exempt_users, "exempt_users", user_text, &out->exempt_users, err);
	if (!ret && out->exempt_groups.n >= WEIR_GROUPS_MAX)
		ret = error_set_field(err, -E2BIG, "exempt_groups", NULL,
				      "there are %zu groups, at most %d are possible", out->exempt_groups.n,
				      WEIR_GROUPS_MAX - 1);
	return ret;
}

static int principals_read(const struct members *m, struct identity_settings *out, struct error *err)
{
	int ret = path_from_json(m->token_file, "token_file", &out->token_file, err) ?:
			  path_from_json(m->address_file, "address_file", &out->address_file, err);

	if (!ret && m->addresses)
		ret = texts_from_json(m->addresses, "addresses", address_text, &out->addresses, err);
	return ret;
}

int identity_settings_from_json(json_t *json, struct identity_settings *out, struct error *err)
{
	struct error newcomers_err = { 0 };
	struct members m = { 0 };
	json_error_t why;

	if (json && json_unpack_ex(json, &why, 0, "{s?s, s?s, s?o, s?o, s?o, s?o, s?o, s?s !}", "user_header",
				   &m.user_header, "group_header", &m.group_header, "exempt_groups", &m.exempt_groups,
				   "exempt_users", &m.exempt_users, "token_file", &m.token_file, "address_file",
				   &m.address_file, "addresses", &m.addresses, "new_subjects", &m.new_subjects))
		return error_set_field(err, -EINVAL, "identity", NULL, "%s", why.text);
	if (!m.exempt_groups) {
		json_t *masters = json_pack("[s]", EXEMPT_GROUP);
		int ret = texts_from_json(masters, "exempt_groups", group_text, &out->exempt_groups, err);

		json_decref(masters);
		if (ret)
			return ret;
	}
	if (newcomers_parse(m.new_subjects ?: NEWCOMERS, &out->newcomers_per_ns, &out->newcomers, &newcomers_err))
		return error_set_field(err, -EINVAL, "new_subjects", NULL, "%s", newcomers_err.text);
	return headers_read(&m, out, err) ?: exempt_read(&m, out, err) ?: principals_read(&m, out, err);
}
