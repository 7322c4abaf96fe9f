/* SPDX-License-Identifier: GPL-2.0 */
/* Limits as JSON. Unknown members are errors: a misspelt one must not be silently without effect. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_read.h"
#include "base/twice.h"
#include "model/amount_json.h"
#include "model/backoff_text.h"
#include "model/key.h"
#include "model/limit.h"

static const char *const modes[] = { "enforce", "dry-run" };
static const char *const overs[] = { "drop", "reset" };

/* --- overrides */

static json_t *overrides_to_json(const struct limit *limit)
{
	json_t *array = json_array();

	for (size_t i = 0; i < limit->n_overrides; i++) {
		json_t *override = json_pack("{s:s}", "subject", limit->overrides[i].subject);

		amount_to_json(&limit->overrides[i].amount, limit->kind, override);
		json_array_append_new(array, override);
	}
	return array;
}

/*
 * What is denied is of any kind; all other amounts are of one. *kinded: there was one already, and the kind is its; of a limit without
 * a default the first override's is.
 */
static int override_read(json_t *json, struct limit *limit, bool *kinded, struct error *err)
{
	static const char *const members[] = { "subject", "qps", "burst", "in_flight", "open", "deny", NULL };
	static const char *const kinds[] = {
		[WEIR_LIMIT_RATE] = "a rate: it has qps and burst",
		[WEIR_LIMIT_IN_FLIGHT] = "requests in flight: it has in_flight",
		[WEIR_LIMIT_CONNECTION_RATE] = "new connections: it has qps and burst",
		[WEIR_LIMIT_OPEN] = "connections that are open: it has open",
	};
	const char *subject = json_string_value(json_object_get(json, "subject"));
	enum weir_limit_kind kind = limit->kind;
	struct datapath_amount amount = { 0 };
	char canonical[KEY_SUBJECT_TEXT];
	int ret;

	ret = members_check(json, "an override", members, err);
	if (!ret && !subject)
		ret = error_set(err, -EINVAL, "the subject of an override is missing");
	if (!ret)
		ret = key_subject_parse(limit->key, subject, canonical, err);
	if (!ret)
		ret = amount_from_json(json, &amount, &kind, err);
	if (!ret && !amount.set)
		ret = error_set(err, -EINVAL, "\"%s\": qps and burst, open, in_flight or deny are missing", subject);
	if (!ret && *kinded && !amount.deny && kind != limit->kind)
		ret = error_set(err, -EINVAL, "\"%s\": the limit is of %s", subject, kinds[limit->kind]);
	if (ret)
		return ret;
	limit->kind = kind;
	*kinded |= !amount.deny;
	return limit_override_add(limit, canonical, &amount) ? error_set(err, -ENOMEM, "out of memory") : 0;
}

/* Two spellings of one subject are that subject twice. */
static int check_twice(const struct limit *limit, struct error *err)
{
	CLEANUP_FREE const char **subjects = calloc(limit->n_overrides + 1, sizeof(*subjects));
	const char *twice = NULL;
	int ret;

	if (!subjects)
		return error_set(err, -ENOMEM, "out of memory");
	for (size_t i = 0; i < limit->n_overrides; i++)
		subjects[i] = limit->overrides[i].subject;
	ret = twice_find(subjects, limit->n_overrides, &twice);
	if (ret)
		return error_set(err, ret, "overrides: %s", strerror(-ret));
	return twice ? error_set(err, -EINVAL, "overrides: \"%s\" is there twice", twice) : 0;
}

static int overrides_read(json_t *array, struct limit *limit, struct error *err)
{
	bool kinded = limit->amount.set && !limit->amount.deny;
	json_t *item;
	size_t i;

	if (array && !json_is_array(array))
		return error_set(err, -EINVAL, "overrides: must be a list");
	json_array_foreach (array, i, item) {
		struct error why = { 0 };
		int ret = override_read(item, limit, &kinded, &why);

		if (ret)
			return error_set(err, ret, "overrides: %s", why.text);
	}
	return check_twice(limit, err);
}

/* --- the whole */

json_t *limit_settings_to_json(const struct limit *limit)
{
	struct limit alone = *limit;

	alone.n_overrides = 0;
	return limit_to_json(&alone);
}

json_t *limit_to_json(const struct limit *limit)
{
	json_t *json = json_pack("{s:s}", "name", limit->name);
	char key[KEY_TEXT], penalty[BACKOFF_TEXT];

	if (!limit_is_builtin(limit)) {
		key_format(limit->key, key);
		json_object_set_new(json, "key", json_string(key));
		json_object_set_new(json, "number", json_integer(limit->number));
	}
	amount_to_json(&limit->amount, limit->kind, json);
	if (weir_limit_is_of_connections(limit->kind)) {
		json_object_set_new(json, "connections", json_true());
		json_object_set_new(json, "over", json_string(overs[limit->reset]));
	}
	if (limit->n_rules)
		json_object_set_new(json, "rules", rule_list_to_json(limit->rules, limit->n_rules));
	if (limit->n_overrides)
		json_object_set_new(json, "overrides", overrides_to_json(limit));
	json_object_set_new(json, "mode", json_string(modes[limit->dry_run]));
	if (limit->penalty.parts) {
		backoff_format(&limit->penalty, penalty);
		json_object_set_new(json, "penalty", json_string(penalty));
	}
	json_object_set_new(json, "keys", json_integer(limit->keys));
	if (limit->file)
		json_object_set_new(json, "file", json_string(limit->file));
	return json;
}

/* Of a built-in limit they are given by its name. */
static int key_read(json_t *json, struct limit *limit, struct error *err)
{
	static const char *const others[] = { "key", "in_flight", "open", "connections", "over", "rules", "number" };
	json_t *key = json_object_get(json, "key");
	bool builtin = !limit_builtin_key(limit->name, &limit->key);
	struct error why;

	for (size_t i = 0; builtin && i < sizeof(others) / sizeof(*others); i++)
		if (json_object_get(json, others[i]))
			return error_set(err, -EINVAL,
					 "%s: every server has this limit, for all requests, with a rate: for another "
					 "one choose another name",
					 others[i]);
	if (builtin)
		return 0;
	if (!json_is_string(key))
		return error_set(err, -EINVAL,
				 key ? "key: must be a text, like \"user\" or \"namespace,user\"" :
				       "the key is missing: total, user, namespace,user, ... (only the limits total, "
				       "namespace, user and source-and-object have none)");
	return key_parse(json_string_value(key), &limit->key, &why) ? error_set(err, -EINVAL, "key: %s", why.text) : 0;
}

static int mode_read(json_t *json, struct limit *limit, struct error *err)
{
	unsigned int mode = words_find(modes, 2, json_string_value(json) ?: "");

	if (!json)
		return 0;
	if (mode == 2)
		return error_set(err, -EINVAL, "mode: must be \"enforce\" or \"dry-run\"");
	limit->dry_run = mode;
	return 0;
}

static int connections_read(json_t *json, enum weir_limit_kind *kind, struct error *err)
{
	bool connections = false;
	int ret = flag_from_json(json, "connections", &connections, err);

	if (connections)
		*kind = WEIR_LIMIT_CONNECTION_RATE;
	return ret;
}

static int over_read(json_t *json, struct limit *limit, struct error *err)
{
	unsigned int over = words_find(overs, 2, json_string_value(json) ?: "");

	if (!json)
		return 0;
	if (over == 2)
		return error_set(err, -EINVAL, "over: must be \"drop\" or \"reset\"");
	if (!weir_limit_is_of_connections(limit->kind))
		return error_set(err, -EINVAL, "over: use it only in a limit on connections");
	limit->reset = over;
	return 0;
}

static int penalty_read(json_t *json, struct weir_backoff *penalty, struct error *err)
{
	struct error why;

	if (!json)
		return 0;
	if (!json_is_string(json))
		return error_set(err, -EINVAL, "penalty: must be a text, like \"exponential:1s..60s\", or \"off\"");
	if (backoff_parse(json_string_value(json), penalty, &why))
		return error_set(err, -EINVAL, "penalty: %s", why.text);
	return 0;
}

/* A count for each group needs groups to count: those that its rules name, or its overrides. */
static int check_groups(const struct limit *limit, struct error *err)
{
	size_t n = 0;

	if (!(limit->key & WEIR_KEY_GROUP))
		return 0;
	for (size_t i = 0; i < limit->n_rules; i++)
		n += limit->rules[i].groups.n;
	if (n || (limit->key == WEIR_KEY_GROUP && limit->n_overrides))
		return 0;
	return error_set(err, -EINVAL, "key: a key with group needs rules that name groups");
}

/* Of a connection nothing is known but who opens it. */
static int check_connections(const struct limit *limit, struct error *err)
{
	if (!weir_limit_is_of_connections(limit->kind))
		return 0;
	if (limit->key & WEIR_KEY_OBJECT)
		return error_set(err, -EINVAL, "key: a connection has no object");
	for (size_t i = 0; i < limit->n_rules; i++)
		if (!rule_of_peers(&limit->rules[i]))
			return error_set(
				err, -EINVAL,
				"rules: of a limit on connections they say users, groups, namespaces and sources alone");
	return 0;
}

static int members_read(json_t *json, struct limit *limit, struct error *err)
{
	int ret;

	ret = connections_read(json_object_get(json, "connections"), &limit->kind, err) ?:
		      amount_from_json(json, &limit->amount, &limit->kind, err)		?:
		      rule_list_from_json(json_object_get(json, "rules"), "rules", &limit->rules, &limit->n_rules, err) ?:
		      overrides_read(json_object_get(json, "overrides"), limit, err)				   ?:
		      over_read(json_object_get(json, "over"), limit, err)					   ?:
		      mode_read(json_object_get(json, "mode"), limit, err)					   ?:
		      penalty_read(json_object_get(json, "penalty"), &limit->penalty, err)			   ?:
		      number_from_json(json_object_get(json, "keys"), "keys", PARSE_KEYS_MAX, &limit->keys, err)   ?:
		      number_from_json(json_object_get(json, "number"), "number", UINT32_MAX, &limit->number, err) ?:
		      text_from_json(json_object_get(json, "file"), "file", &limit->file, err);
	return ret ?: check_groups(limit, err) ?: check_connections(limit, err);
}

static int limit_read(json_t *json, struct limit *limit, struct error *err)
{
	static const char *const members[] = { "name",	  "key",	 "qps",	   "burst",	"in_flight", "open",
					       "deny",	  "connections", "rules",  "overrides", "over",	     "mode",
					       "penalty", "keys",	 "number", "file",	NULL };
	const char *name = json_string_value(json_object_get(json, "name"));
	struct error why = { 0 };
	int ret;

	if (!json_is_object(json) || !name)
		return error_set(err, -EINVAL, "a limit must be an object with a name");
	ret = parse_limit_name(name, err);
	if (ret)
		return ret;
	strcpy(limit->name, name);
	ret = members_check(json, "a limit", members, &why) ?:
		      key_read(json, limit, &why)	    ?:
							      members_read(json, limit, &why);
	return ret ? error_set(err, ret, "limit \"%s\": %s", name, why.text) : 0;
}

int limit_from_json(json_t *json, struct limit *out, struct error *err)
{
	struct limit limit = { 0 };
	int ret = limit_read(json, &limit, err);

	if (ret)
		limit_clear(&limit);
	else
		*out = limit;
	return ret;
}

int limit_check_amounts(const struct limit *limit, struct error *err)
{
	if (limit->amount.set || limit->n_overrides)
		return 0;
	return error_set(err, -EINVAL, "limit \"%s\": qps and burst, open, in_flight or deny are missing", limit->name);
}
