/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bit 0 is that of all exempt users; then come those of `rule_groups`. The groups of `exempt_groups` have the last bits, from the
 * end. So rules and exemptions come and go without a bit that means the one and then the other.
 */
#include "rules/identity.h"

#include "base/cleanup.h"
#include "model/identity_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ACCOUNTS "system:serviceaccounts"
#define ACCOUNT "system:serviceaccount"

void identity_reading(const struct identity_settings *settings, struct weir_reading *how)
{
	weir_reading_default(how);
	weir_reading_name(how, WEIR_HEADER_USER, settings->user_header, strlen(settings->user_header));
	weir_reading_name(how, WEIR_HEADER_TOKEN, "authorization", settings->token_file ? strlen("authorization") : 0);
	weir_reading_name(how, WEIR_HEADER_GROUP, settings->group_header, strlen(settings->group_header));
}

#define USERS_BIT 0

static __u32 rule_bit(size_t i)
{
	return USERS_BIT + 1 + i;
}

static __u32 exempt_bit(size_t i)
{
	return WEIR_GROUPS_MAX - 1 - i;
}

static int find_group(const struct texts *groups, const char *name, size_t length)
{
	for (size_t i = 0; i < groups->n; i++)
		if (strlen(groups->items[i]) == length && memcmp(groups->items[i], name, length) == 0)
			return i;
	return -ENOENT;
}

static int group_bit(const struct identity_settings *settings, const char *name, size_t length)
{
	int place = find_group(&settings->exempt_groups, name, length);

	if (!length)
		return place;
	if (place >= 0)
		return exempt_bit(place);
	place = find_group(&settings->rule_groups, name, length);
	return place < 0 ? place : (int)rule_bit(place);
}

int identity_group_bit(const struct identity_settings *settings, const char *name)
{
	return group_bit(settings, name, strlen(name));
}

static const char *name_among(const struct texts *groups, const struct datapath *dp, __u64 subject)
{
	for (size_t i = 0; i < groups->n; i++) {
		const char *name = groups->items[i];

		if (*name && datapath_subject(dp, WEIR_NAME_GROUP, name, strlen(name)) == subject)
			return name;
	}
	return NULL;
}

const char *identity_group_name(const struct identity_settings *settings, const struct datapath *dp, __u64 subject)
{
	return name_among(&settings->exempt_groups, dp, subject) ?: name_among(&settings->rule_groups, dp, subject);
}

/* Adds the bit of a group, if it has one. */
static void add_group_named(const struct identity_settings *settings, const char *name, size_t length,
			    struct weir_groups *groups)
{
	int bit = group_bit(settings, name, length);

	if (bit >= 0)
		weir_groups_add(groups, bit);
}

static void add_group(const struct identity_settings *settings, const char *name, struct weir_groups *groups)
{
	add_group_named(settings, name, strlen(name), groups);
}

static void add_lengths(const struct texts *groups, struct weir_known_groups *known)
{
	for (size_t i = 0; i < groups->n; i++)
		if (*groups->items[i])
			known->lengths |= weir_length_bit(strlen(groups->items[i]));
}

void identity_known_groups(const struct identity_settings *settings, struct weir_known_groups *known)
{
	*known = (struct weir_known_groups){ 0 };
	add_group(settings, "system:authenticated", &known->authenticated);
	add_group(settings, "system:unauthenticated", &known->unauthenticated);
	add_group(settings, ACCOUNTS, &known->service_accounts);
	for (size_t i = 0; i < settings->exempt_groups.n; i++)
		weir_groups_add(&known->exempt, exempt_bit(i));
	if (settings->exempt_users.n)
		weir_groups_add(&known->exempt, USERS_BIT);
	add_lengths(&settings->exempt_groups, known);
	add_lengths(&settings->rule_groups, known);
}

void identity_exempt_join(struct weir_known_groups *known, const struct identity_settings *before)
{
	struct weir_known_groups also;

	identity_known_groups(before, &also);
	weir_groups_join(&known->exempt, &also.exempt);
	known->lengths |= also.lengths;
}

static void append_names(const struct texts *names, __u32 (*bit)(size_t i), const struct weir_groups *groups,
			 json_t *list)
{
	for (size_t i = 0; i < names->n; i++)
		if (*names->items[i] && weir_groups_have(groups, bit(i)))
			json_array_append_new(list, json_string(names->items[i]));
}

json_t *identity_group_names(const struct identity_settings *settings, const struct weir_groups *groups)
{
	json_t *list = json_array();

	append_names(&settings->exempt_groups, exempt_bit, groups, list);
	append_names(&settings->rule_groups, rule_bit, groups, list);
	return list;
}

/* Of system:serviceaccounts:NAMESPACE, what its accounts' names begin with (request_header.h). Or NULL. */
static char *account_prefix(const char *group)
{
	const char *namespace = group + strlen(ACCOUNTS);
	char *prefix;

	if (strncmp(group, ACCOUNTS ":", strlen(ACCOUNTS ":")) != 0 || !namespace[1])
		return NULL;
	return asprintf(&prefix, ACCOUNT "%s", namespace) < 0 ? NULL : prefix;
}

static __u64 user_subject(const struct datapath *dp, const char *text)
{
	struct subject subject;
	const void *bytes;
	size_t length;

	parse_subject(WEIR_KEY_USER, text, &subject, NULL);
	bytes = subject_bytes(&subject, &length);
	return datapath_subject(dp, subject.kind, bytes, length);
}

/* Returns how many. */
static int add_keys(const struct texts *groups, __u32 (*bit)(size_t i), const struct datapath *dp,
		    struct datapath_group *keys)
{
	int n = 0;

	for (size_t i = 0; i < groups->n; i++) {
		const char *name = groups->items[i];
		CLEANUP_FREE char *prefix = account_prefix(name);

		if (*name)
			keys[n++] = (struct datapath_group){ datapath_subject(dp, WEIR_NAME_GROUP, name, strlen(name)),
							     bit(i) };
		if (prefix)
			keys[n++] = (struct datapath_group){
				datapath_subject(dp, WEIR_NAME_USER, prefix, strlen(prefix)), bit(i)
			};
	}
	return n;
}

int identity_group_keys(const struct identity_settings *settings, const struct datapath *dp,
			struct datapath_group **out)
{
	const struct texts *exempt = &settings->exempt_groups, *users = &settings->exempt_users;
	const struct texts *named = &settings->rule_groups;
	struct datapath_group *keys = calloc(2 * (exempt->n + named->n) + users->n + 1, sizeof(*keys));
	int n;

	if (!keys)
		return -ENOMEM;
	n = add_keys(exempt, exempt_bit, dp, keys);
	n += add_keys(named, rule_bit, dp, keys + n);
	for (size_t i = 0; i < users->n; i++)
		keys[n++] = (struct datapath_group){ user_subject(dp, users->items[i]), USERS_BIT };
	*out = keys;
	return n;
}

/* The groups that the name of a service account implies (request_header.h has the same for a header's value). */
static void add_account_groups(const struct identity_settings *settings, const char *user, struct weir_groups *groups)
{
	const char *namespace, *name;
	char group[PARSE_SUBJECT_MAX + 2];

	if (strncmp(user, ACCOUNT ":", strlen(ACCOUNT ":")) != 0)
		return;
	namespace = user + strlen(ACCOUNT ":");
	name = strchrnul(namespace, ':');
	if (name == namespace || !*name || !name[1] || strchr(name + 1, ':') || strpbrk(user, " \t"))
		return;
	add_group(settings, ACCOUNTS, groups);
	snprintf(group, sizeof(group), ACCOUNTS ":%.*s", (int)(name - namespace), namespace);
	add_group(settings, group, groups);
}

static __u64 name_set(const struct datapath *dp, enum weir_name_kind kind, const char *text, struct weir_name *name)
{
	size_t length = strlen(text);

	name->kind = kind;
	name->whole = length;
	name->length = length < WEIR_NAME_TEXT ? length : WEIR_NAME_TEXT;
	memcpy(name->text, text, name->length);
	return datapath_subject(dp, kind, text, length);
}

/* What is read, entry by entry. */
struct collection {
	const struct identity_settings *settings;
	const struct datapath *dp;
	void *items;
	size_t n;
};

/* A place of `size` bytes behind the others, all zero; NULL without memory. The array doubles when it is full. */
static void *collect(struct collection *c, size_t size)
{
	if ((c->n & (c->n - 1)) == 0) {
		void *grown = reallocarray(c->items, c->n ? c->n * 2 : 1, size);

		if (!grown)
			return NULL;
		c->items = grown;
	}
	return memset((char *)c->items + c->n++ * size, 0, size);
}

static void principal_set(const struct collection *c, const char *user, const char *groups,
			  struct weir_principal *principal)
{
	struct weir_known_groups known;
	const char *name;
	size_t length;

	principal->user = name_set(c->dp, WEIR_NAME_USER, user, &principal->user_name);
	identity_known_groups(c->settings, &known);
	principal->groups = known.authenticated;
	while (group_next(&groups, &name, &length))
		add_group_named(c->settings, name, length, &principal->groups);
	add_account_groups(c->settings, user, &principal->groups);
}

static int take_token(const struct token_row *row, void *context)
{
	struct collection *c = context;
	struct datapath_token *token = collect(c, sizeof(*token));

	if (!token)
		return -ENOMEM;
	token->subject = datapath_subject(c->dp, WEIR_NAME_TOKEN, row->token, strlen(row->token));
	principal_set(c, row->user, row->groups, &token->principal);
	return 0;
}

static int take_address(const struct address_row *row, void *context)
{
	struct collection *c = context;
	struct datapath_address *address = collect(c, sizeof(*address));
	struct weir_principal *principal;

	if (!address)
		return -ENOMEM;
	address->cidr = row->cidr;
	principal = &address->principal;
	principal_set(c, row->user, row->groups, principal);
	if (*row->namespace)
		principal->namespace = name_set(c->dp, WEIR_NAME_NAMESPACE, row->namespace, &principal->namespace_name);
	return 0;
}

int identity_tokens(const struct identity_settings *settings, const struct datapath *dp, struct datapath_token **out,
		    struct error *err)
{
	struct collection c = { .settings = settings, .dp = dp };
	int ret = settings->token_file ? token_file_read(settings->token_file, take_token, &c, err) : 0;

	if (ret) {
		free(c.items);
		return ret;
	}
	*out = c.items;
	return c.n;
}

static int each_address(const struct identity_settings *settings, address_each *each, void *context, struct error *err)
{
	int ret = settings->address_file ? address_file_read(settings->address_file, each, context, err) : 0;

	for (size_t i = 0; i < settings->addresses.n && !ret; i++)
		ret = address_text_read(settings->addresses.items[i], each, context, err);
	return ret;
}

int identity_addresses(const struct identity_settings *settings, const struct datapath *dp,
		       struct datapath_address **out, struct error *err)
{
	struct collection c = { .settings = settings, .dp = dp };
	int ret = each_address(settings, take_address, &c, err);

	if (ret) {
		free(c.items);
		return ret;
	}
	*out = c.items;
	return c.n;
}

static int count_token(const struct token_row *row, void *context)
{
	(void)row;
	++*(size_t *)context;
	return 0;
}

static int count_address(const struct address_row *row, void *context)
{
	(void)row;
	++*(size_t *)context;
	return 0;
}

int identity_size(const struct identity_settings *settings, size_t *tokens, size_t *addresses, struct error *err)
{
	size_t n_tokens = 0, n_addresses = 0;
	int ret = settings->token_file ? token_file_read(settings->token_file, count_token, &n_tokens, err) : 0;

	if (!ret)
		ret = each_address(settings, count_address, &n_addresses, err);
	if (ret)
		return ret;
	*tokens = n_tokens;
	*addresses = n_addresses;
	return 0;
}
