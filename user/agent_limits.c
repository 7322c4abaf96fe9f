/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "agent_log.h"
#include "agent_private.h"
#include "cleanup.h"
#include "rate.h"

/* The hash under which the kernel knows a limit's subject. The text is canonical, so it parses. */
static __u64 kernel_subject(struct net *net, const struct limit *limit)
{
	struct subject subject;

	parse_subject(limit->type, limit->subject, &subject, NULL);
	if (subject.kind == WEIR_NAME_ADDRESS)
		return datapath_subject(net->dp, subject.kind, subject.address, sizeof(subject.address));
	return datapath_subject(net->dp, subject.kind, subject.text, strlen(subject.text));
}

static __u32 limit_keys(const struct server *server, const struct limit *limit)
{
	if (limit->type == WEIR_LIMIT_TOTAL)
		return 1;
	return limit->keys ?: server->keys;
}

static int apply_limit(struct net *net, int slot, const struct server *server, const struct limit *limit,
		       struct error *err)
{
	if (limit->subject)
		return datapath_override_set(net->dp, slot, limit->type, kernel_subject(net, limit), limit->per_ns,
					     limit->burst, err);
	return datapath_limit_set(net->dp, slot, limit->type, limit->per_ns, limit->burst, limit_keys(server, limit),
				  err);
}

static int unapply_limit(struct net *net, int slot, const struct limit *limit, struct error *err)
{
	if (limit->subject)
		return datapath_override_delete(net->dp, slot, limit->type, kernel_subject(net, limit), err);
	return datapath_limit_delete(net->dp, slot, limit->type, err);
}

/* Applies the limits that are for single subjects, or those that are defaults. */
static int apply_some(struct net *net, int slot, const struct server *server, bool overrides, struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < server->n_limits && !ret; i++)
		if ((server->limits[i].subject != NULL) == overrides)
			ret = apply_limit(net, slot, server, &server->limits[i], err);
	return ret;
}

/* Defaults first: an override begins with its default's history, and with the number of buckets that goes with it. */
int limits_apply(struct net *net, int slot, const struct server *server, struct error *err)
{
	if (server->draining)
		return 0;
	return apply_some(net, slot, server, false, err) ?: apply_some(net, slot, server, true, err);
}

static json_t *describe(const struct server *server, const struct limit *limit)
{
	char qps[WEIR_QPS_TEXT];

	weir_qps_format(limit->per_ns, qps, sizeof(qps));
	return json_pack("{s:s, s:s, s:s?, s:o, s:I, s:s}", "server", server->name, "type",
			 limit_type_name(limit->type), "subject", limit->subject, "qps",
			 strchr(qps, '.') ? json_real(strtod(qps, NULL)) : json_integer(strtoll(qps, NULL, 10)),
			 "burst", (json_int_t)limit->burst, "source", "command line");
}

static int save(const struct agent *agent, struct error *err)
{
	return state_save(&agent->state, agent->options->state_dir, err);
}

/* Does nothing for a server that is not in force: it gets its limits when it is brought up. */
static int apply_one(struct agent *agent, int slot, const struct limit *limit, struct error *err)
{
	const struct server *server = agent->state.servers[slot];

	return agent->servers[slot].in_force ? apply_limit(server_net(agent, server), slot, server, limit, err) : 0;
}

static int unapply_one(struct agent *agent, int slot, const struct limit *limit, struct error *err)
{
	const struct server *server = agent->state.servers[slot];

	return agent->servers[slot].in_force ? unapply_limit(server_net(agent, server), slot, limit, err) : 0;
}

/* Takes over what the limit points to on success. */
static int add_limit(struct agent *agent, int slot, const struct limit *limit, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	int ret;

	if (server_limit_add(server, limit))
		return error_set(err, -ENOMEM, "out of memory");
	ret = save(agent, err);
	if (!ret)
		ret = apply_one(agent, slot, limit, err);
	if (ret) {
		server->n_limits--; /* it was the last; the caller still owns what it points to */
		save(agent, NULL);
	}
	return ret;
}

static int change_limit(struct agent *agent, int slot, struct limit *limit, const struct limit *wanted,
			struct error *err)
{
	struct limit before = *limit;
	int ret;

	limit->per_ns = wanted->per_ns;
	limit->burst = wanted->burst;
	ret = save(agent, err);
	if (!ret)
		ret = apply_one(agent, slot, limit, err);
	if (ret) {
		*limit = before;
		save(agent, NULL);
	}
	return ret;
}

/* The number of buckets is fixed when a limit's default is first set. */
static int check_keys(const struct server *server, const struct limit *wanted, struct error *err)
{
	const struct limit *limit = server_limit(server, wanted->type, NULL);

	if (!wanted->keys)
		return 0;
	if (wanted->subject || wanted->type == WEIR_LIMIT_TOTAL)
		return error_set(err, -EINVAL,
				 "keys: only a limit's default has a number of buckets, and total has one");
	if (limit && limit->keys != wanted->keys)
		return error_set(err, -EINVAL, "keys: the buckets of limit \"%s\" are made already: delete it first",
				 limit_type_name(wanted->type));
	return 0;
}

static int set_limit(struct agent *agent, int slot, struct limit *wanted, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct limit *limit;
	int ret;

	ret = check_keys(server, wanted, err);
	if (ret)
		return ret;
	limit = server_limit(server, wanted->type, wanted->subject);
	if (limit)
		return change_limit(agent, slot, limit, wanted, err);
	ret = add_limit(agent, slot, wanted, err);
	if (!ret)
		wanted->subject = NULL; /* the server's now */
	return ret;
}

int agent_limit_set(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	CLEANUP_LIMIT struct limit wanted = { 0 };
	CLEANUP_JSON json_t *answer = NULL;
	const char *name = NULL;
	json_t *description;
	json_error_t why;
	int slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s:o !}", "server", &name, "limit", &description))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	ret = limit_from_json(description, &wanted, err);
	if (ret)
		return ret;
	slot = server_named(agent, name, err);
	if (slot < 0)
		return slot;
	name = agent->state.servers[slot]->name;
	answer = json_pack("{s:s, s:s, s:s?}", "server", name, "type", limit_type_name(wanted.type), "subject",
			   wanted.subject);
	ret = set_limit(agent, slot, &wanted, err);
	if (!ret)
		*result = json_incref(answer);
	return ret;
}

static int delete_limit(struct agent *agent, int slot, struct limit *limit, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	int ret;

	ret = unapply_one(agent, slot, limit, err);
	if (ret)
		return ret;
	server_limit_remove(server, limit);
	return save(agent, err);
}

int agent_limit_delete(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	const char *name = NULL, *type_text, *text = NULL;
	struct subject subject;
	enum weir_limit_type type;
	struct limit *limit;
	json_error_t why;
	int slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s:s, s?s !}", "server", &name, "type", &type_text, "subject",
			   &text))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	ret = parse_limit_type(type_text, &type, err);
	if (!ret && text)
		ret = parse_subject(type, text, &subject, err);
	if (ret)
		return ret;
	slot = server_named(agent, name, err);
	if (slot < 0)
		return slot;
	limit = server_limit(agent->state.servers[slot], type, text ? subject.text : NULL);
	if (!limit)
		return error_set(err, -ENOENT, "server \"%s\" has no %s limit%s%s", agent->state.servers[slot]->name,
				 type_text, text ? " for " : "", text ? text : "");
	ret = delete_limit(agent, slot, limit, err);
	if (!ret)
		*result = json_pack("{s:s, s:s, s:s?}", "server", agent->state.servers[slot]->name, "type", type_text,
				    "subject", text ? subject.text : NULL);
	return ret;
}

int agent_limit_list(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	const char *name = NULL;
	json_error_t why;
	json_t *list;

	if (json_unpack_ex(arguments, &why, 0, "{s?s !}", "server", &name))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	if (name && state_find(&agent->state, name) < 0)
		return error_set(err, -ENOENT, "there is no server \"%s\"", name);
	list = json_array();
	for (int slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		const struct server *server = agent->state.servers[slot];

		if (!server || server->draining || (name && strcmp(name, server->name) != 0))
			continue;
		for (size_t i = 0; i < server->n_limits; i++)
			json_array_append_new(list, describe(server, &server->limits[i]));
	}
	*result = json_pack("{s:o}", "limits", list);
	return 0;
}
