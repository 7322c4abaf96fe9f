/* SPDX-License-Identifier: GPL-2.0 */
#include "state_identity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "weir/groups.h"

#include "identity_file.h"

#define USER_HEADER "x-remote-user"
#define GROUP_HEADER "x-remote-group"
#define EXEMPT_GROUP "system:masters"

static void texts_clear(struct texts *texts)
{
	for (size_t i = 0; i < texts->n; i++)
		free(texts->items[i]);
	free(texts->items);
	*texts = (struct texts){ 0 };
}

void identity_settings_clear(struct identity_settings *settings)
{
	texts_clear(&settings->exempt_groups);
	texts_clear(&settings->exempt_users);
	texts_clear(&settings->addresses);
	free(settings->token_file);
	free(settings->address_file);
}

static json_t *texts_to_json(const struct texts *texts)
{
	json_t *array = json_array();

	for (size_t i = 0; i < texts->n; i++)
		json_array_append_new(array, json_string(texts->items[i]));
	return array;
}

json_t *identity_settings_to_json(const struct identity_settings *settings)
{
	return json_pack("{s:s, s:s, s:o, s:o, s:s?, s:s?, s:o}", "user_header", settings->user_header, "group_header",
			 settings->group_header, "exempt_groups", texts_to_json(&settings->exempt_groups),
			 "exempt_users", texts_to_json(&settings->exempt_users), "token_file", settings->token_file,
			 "address_file", settings->address_file, "addresses", texts_to_json(&settings->addresses));
}

/* The canonical form of one text, for the caller to free. */
typedef int make_text(const char *text, char **out, struct error *err);

static int copy_text(const char *text, char **out, struct error *err)
{
	*out = strdup(text);
	return *out ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int group_text(const char *text, char **out, struct error *err)
{
	return parse_subject_name(text, err) ?: copy_text(text, out, err);
}

static int user_text(const char *text, char **out, struct error *err)
{
	struct subject subject;
	int ret = parse_subject(WEIR_LIMIT_USER, text, &subject, err);

	return ret ?: copy_text(subject.text, out, err);
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
		return error_set(err, -EINVAL, "%s: must be an absolute path", key);
	return copy_text(path, out, err);
}

static int texts_from_json(json_t *array, const char *key, make_text *make, struct texts *out, struct error *err)
{
	struct error why = { 0 };
	json_t *item;
	size_t i;

	if (!json_is_array(array))
		return error_set(err, -EINVAL, "%s: must be a list", key);
	if (json_array_size(array) == 0)
		return 0;
	out->items = calloc(json_array_size(array), sizeof(*out->items));
	if (!out->items)
		return error_set(err, -ENOMEM, "out of memory");
	json_array_foreach (array, i, item) {
		if (!json_is_string(item))
			return error_set(err, -EINVAL, "%s: must be a list of strings", key);
		if (make(json_string_value(item), &out->items[out->n], &why))
			return error_set(err, -EINVAL, "%s: %s", key, why.text);
		out->n++;
	}
	return 0;
}

/* The members of the object, borrowed; NULL: not given. */
struct members {
	const char *user_header, *group_header;
	json_t *exempt_groups, *exempt_users, *token_file, *address_file, *addresses;
};

static int headers_read(const struct members *m, struct identity_settings *out, struct error *err)
{
	struct error why = { 0 };

	if (parse_header(m->user_header ?: USER_HEADER, out->user_header, &why))
		return error_set(err, -EINVAL, "user_header: %s", why.text);
	if (parse_header(m->group_header ?: GROUP_HEADER, out->group_header, &why))
		return error_set(err, -EINVAL, "group_header: %s", why.text);
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
		ret = error_set(err, -E2BIG, "exempt_groups: %zu groups are named, %d at most can be",
				out->exempt_groups.n, WEIR_GROUPS_MAX - 1);
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
	struct members m = { 0 };
	json_error_t why;

	if (json && json_unpack_ex(json, &why, 0, "{s?s, s?s, s?o, s?o, s?o, s?o, s?o !}", "user_header",
				   &m.user_header, "group_header", &m.group_header, "exempt_groups", &m.exempt_groups,
				   "exempt_users", &m.exempt_users, "token_file", &m.token_file, "address_file",
				   &m.address_file, "addresses", &m.addresses))
		return error_set(err, -EINVAL, "identity: %s", why.text);
	if (!m.exempt_groups) {
		json_t *masters = json_pack("[s]", EXEMPT_GROUP);
		int ret = texts_from_json(masters, "exempt_groups", group_text, &out->exempt_groups, err);

		json_decref(masters);
		if (ret)
			return ret;
	}
	return headers_read(&m, out, err) ?: exempt_read(&m, out, err) ?: principals_read(&m, out, err);
}
