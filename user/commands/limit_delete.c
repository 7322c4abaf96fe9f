/* SPDX-License-Identifier: GPL-2.0 */
#include <errno.h>
#include <string.h>

#include "agent/limit_counts.h"
#include "agent/limits.h"
#include "agent/servers.h"
#include "agent/unsaved.h"
#include "base/array.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/shared_text.h"
#include "commands/commands.h"
#include "commands/limits.h"
#include "model/key.h"

static int leave_kernel(struct net *net, int slot, const struct limit *limit, struct error *err)
{
	CLEANUP_RETAKE struct agent *released = agent_release(net->agent);

	return rules_apply(net, slot, net->agent->state.servers[slot], err) ?:
		       datapath_limit_delete(net->dp, slot, limit_slot(limit), err);
}

int limit_take_out(struct agent *agent, int slot, const struct limit *limit, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	struct net *net = net_in_force(agent, slot);
	int ret = net ? leave_kernel(net, slot, limit, err) : 0;

	if (ret)
		return ret;
	if (net)
		limits_taken_forget(net);
	/* If this fails, a group that no rule names any more stays known for longer than it has to. Nothing else can go wrong. */
	if (server_name_groups(server, NULL) > 0 && net)
		groups_apply(agent, slot, NULL);
	return 0;
}

/* Into the kernel again, what could be taken out of it half-way. */
static void bring_back(struct agent *agent, int slot, const struct limit *limit)
{
	const struct server *server = agent->state.servers[slot];
	struct net *net = net_in_force(agent, slot);

	if (net && !limit_apply_whole(net, slot, server, limit, NULL))
		rules_apply(net, slot, server, NULL);
}

int limit_remove(struct agent *agent, int slot, struct limit *limit, struct error *err)
{
	struct server *server = agent->state.servers[slot];
	size_t place = limit - server->limits;
	struct limit gone = *limit;
	int saved, ret;

	array_cut(server->limits, server->n_limits--, sizeof(gone), place);
	saved = agent_save(agent, err);
	ret = saved ?: limit_take_out(agent, slot, &gone, err);
	if (!ret) {
		limit_clear(&gone);
		return 0;
	}
	array_uncut(server->limits, server->n_limits++, sizeof(gone), place, &gone);
	if (!saved) {
		bring_back(agent, slot, &server->limits[place]);
		agent_save_back(agent, err);
	}
	return ret;
}

static bool is_the_last(const struct limit *limit)
{
	return !limit->amount.set && limit->n_overrides == 1;
}

static int override_take_out(struct agent *agent, int slot, const struct limit *limit, const struct override *override,
			     struct error *err)
{
	struct net *net = net_in_force(agent, slot);
	int ret = net ? override_unapply(net, slot, limit, override, err) : 0;

	if (!ret && server_name_groups(agent->state.servers[slot], NULL) > 0 && net)
		groups_apply(agent, slot, NULL);
	return ret;
}

static int delete_override(struct agent *agent, int slot, struct limit *limit, struct override *override,
			   struct error *err)
{
	size_t place = override - limit->overrides;
	struct override gone = *override;
	int saved, ret;

	if (is_the_last(limit))
		return limit_remove(agent, slot, limit, err);
	array_cut(limit->overrides, limit->n_overrides--, sizeof(gone), place);
	saved = agent_save(agent, err);
	ret = saved ?: override_take_out(agent, slot, limit, &gone, err);
	if (!ret) {
		shared_text_free(gone.subject);
		return 0;
	}
	array_uncut(limit->overrides, limit->n_overrides++, sizeof(gone), place, &gone);
	if (!saved)
		agent_save_back(agent, err);
	return ret;
}

/* Subjects with an override keep it, and what they have. */
static int delete_default(struct agent *agent, int slot, struct limit *limit, struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct net *net = net_in_force(agent, slot);
	struct datapath_amount before = limit->amount;
	int saved, ret;

	limit->amount = (struct datapath_amount){ 0 };
	saved = agent_save(agent, err);
	ret = saved || !net ? saved : limit_apply(net, slot, server, limit, err);
	if (!ret)
		return 0;
	limit->amount = before;
	if (!saved)
		agent_save_back(agent, err);
	return ret;
}

/* Of a built-in limit the default goes, of another one the whole. */
static int delete_limit(struct agent *agent, int slot, struct limit *limit, struct error *err)
{
	if (limit_is_builtin(limit) && limit->n_overrides && limit->amount.set)
		return delete_default(agent, slot, limit, err);
	if (limit_is_builtin(limit) && limit->n_overrides)
		return error_set(err, -ENOENT, "limit \"%s\" has overrides but no default", limit->name);
	return limit_remove(agent, slot, limit, err);
}

static int limit_unknown(const struct server *server, const char *name, struct error *err)
{
	struct nearest meant = nearest_to(name);

	for (size_t i = 0; i < server->n_limits; i++)
		nearest_try(&meant, server->limits[i].name);
	if (meant.found)
		return error_set(err, -ENOENT, "server \"%s\" has no limit \"%s\": is \"%s\" meant?", server->name,
				 name, meant.found);
	return error_set(err, -ENOENT, "server \"%s\" has no limit \"%s\"", server->name, name);
}

static int delete_from(struct agent *agent, int slot, const char *name, const char *subject,
		       char canonical[static KEY_SUBJECT_TEXT], struct error *err)
{
	const struct server *server = agent->state.servers[slot];
	struct limit *limit = server_limit(server, name);
	struct override *override;
	int ret;

	if (!limit)
		return limit_unknown(server, name, err);
	ret = limit_check_file(server, limit, err);
	if (ret)
		return ret;
	if (!subject)
		return delete_limit(agent, slot, limit, err);
	ret = key_subject_parse(limit->key, subject, canonical, err);
	if (ret)
		return ret;
	override = limit_override(limit, canonical);
	if (!override)
		return error_set(err, -ENOENT, "limit \"%s\" of server \"%s\" has nothing for \"%s\"", name,
				 server->name, canonical);
	return delete_override(agent, slot, limit, override, err);
}

int agent_limit_delete(struct agent *agent, json_t *arguments, json_t **result, struct error *err)
{
	const char *server = NULL, *name, *subject = NULL;
	char canonical[KEY_SUBJECT_TEXT];
	json_error_t why;
	int slot, ret;

	if (json_unpack_ex(arguments, &why, 0, "{s?s, s:s, s?s !}", "server", &server, "limit", &name, "subject",
			   &subject))
		return error_set(err, -EINVAL, "bad arguments: %s", why.text);
	slot = server_named(agent, server, err);
	if (slot < 0)
		return slot;
	ret = delete_from(agent, slot, name, subject, canonical, err);
	if (ret)
		return ret;
	log_info("server \"%s\": limit %s%s%s is deleted", agent->state.servers[slot]->name, name, subject ? " " : "",
		 subject ? canonical : "");
	*result = json_pack("{s:s, s:s, s:s?}", "server", agent->state.servers[slot]->name, "limit", name, "subject",
			    subject ? canonical : NULL);
	server_tell_failed(agent, slot, *result);
	return 0;
}
