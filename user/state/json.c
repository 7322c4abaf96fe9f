/* SPDX-License-Identifier: GPL-2.0 */
/* Servers as JSON. Unknown members are errors: a misspelt one must not be silently without effect. */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "weir/inside/share.h"
#include "weir/inside/turn.h"

#include "base/cleanup.h"
#include "base/json_read.h"
#include "state/state.h"

#define SERVER_CONCURRENCY 600 /* seats: what kube-apiserver has by default */

/* The text of item i of something with n of them. */
typedef void format_item(const struct server *server, size_t i, char text[static PARSE_LISTEN_TEXT]);

static void listen_item(const struct server *server, size_t i, char text[static PARSE_LISTEN_TEXT])
{
	format_listen(&server->listens[i], text);
}

static void proxy_item(const struct server *server, size_t i, char text[static PARSE_LISTEN_TEXT])
{
	format_cidr(&server->proxies[i], text);
}

static void balancer_item(const struct server *server, size_t i, char text[static PARSE_LISTEN_TEXT])
{
	format_cidr(&server->balancers[i], text);
}

static void interface_item(const struct server *server, size_t i, char text[static PARSE_LISTEN_TEXT])
{
	strcpy(text, server->interfaces[i]);
}

static json_t *items_to_json(const struct server *server, size_t n, format_item *format)
{
	json_t *array = json_array();
	char text[PARSE_LISTEN_TEXT];

	for (size_t i = 0; i < n; i++) {
		format(server, i, text);
		json_array_append_new(array, json_string(text));
	}
	return array;
}

static json_t *limits_to_json(const struct server *server)
{
	json_t *array = json_array();

	for (size_t i = 0; i < server->n_limits; i++)
		json_array_append_new(array, limit_to_json(&server->limits[i]));
	return array;
}

/* limits and policy are taken over; NULL: the server's JSON has no such member. */
static json_t *to_json(const struct server *server, json_t *limits, json_t *policy)
{
	char namespace_from[TENANCY_TEXT];

	namespace_from_format(&server->tenancy, namespace_from);
	return json_pack(
		"{s:s, s:o, s:s?, s:I, s:s?, s:o, s:o, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:b, s:I, s:s, s:s, s:s, s:I, s:I, s:b, s:b, s:b, s:o, s:o*, s:I, "
		"s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o*}",
		"name", server->name, "listen", items_to_json(server, server->n_listens, listen_item), "netns",
		server->netns, "netns_cookie", (json_int_t)server->netns_cookie, "cgroup", server->cgroup,
		"trusted_proxies", items_to_json(server, server->n_proxies, proxy_item), "proxy_protocol",
		items_to_json(server, server->n_balancers, balancer_item), "interfaces",
		items_to_json(server, server->n_interfaces, interface_item), "loopback",
		loopback_modes.words[server->loopback], "framing", framing_modes.words[server->framing], "bodies",
		bodies_modes.words[server->bodies], "paths", paths_modes.words[server->tenancy.paths], "namespace_from",
		namespace_from, "hold", hold_modes.words[server->hold], "when_full",
		full_modes.words[server->when_full], "inside", inside_modes.words[server->inside], "inside_share",
		(json_int_t)server->inside_share, "write_memory", server->write_memory, "hold_max",
		(json_int_t)server->hold_max, "refusals", refusals_modes.words[server->refusals], "xdp",
		xdp_modes.words[server->xdp], "syn_cookies", syn_cookies_modes.words[server->syn_cookies],
		"max_retry_after", (json_int_t)server->max_retry_after, "keys", (json_int_t)server->keys, "dry_run",
		server->dry_run, "paused", server->paused, "draining", server->draining, "identity",
		identity_settings_to_json(&server->identity), "limits", limits, "last_number",
		(json_int_t)server->last_number, "priority_levels", priority_levels_to_json(&server->priorities),
		"flow_schemas", flow_schemas_to_json(&server->priorities), "concurrency",
		(json_int_t)server->concurrency, "list_width", (json_int_t)server->list_width, "list_object_bytes",
		(json_int_t)server->list_object_bytes, "exempt", rule_list_to_json(server->exempt, server->n_exempt),
		"groups", texts_to_json(&server->identity.rule_groups), "policy", policy);
}

json_t *server_to_json(const struct server *server)
{
	return to_json(server, limits_to_json(server), json_incref(server->policy));
}

json_t *server_settings_to_json(const struct server *server)
{
	return to_json(server, NULL, NULL);
}

static int text_of(json_t *json, const char **text, struct error *err)
{
	*text = json_string_value(json);
	return *text ? 0 : error_set(err, -EINVAL, "must be a list of strings");
}

static int listen_read(json_t *json, void *place, struct error *err)
{
	const char *text;

	return text_of(json, &text, err) ?: parse_listen(text, place, err);
}

static int network_read(json_t *json, void *place, struct error *err)
{
	const char *text;

	return text_of(json, &text, err) ?: parse_cidr(text, place, err);
}

static int interface_read(json_t *json, void *place, struct error *err)
{
	const char *text;
	int ret = text_of(json, &text, err) ?: parse_interface(text, err);

	if (!ret)
		strcpy(place, text);
	return ret;
}

static int limit_item(json_t *json, void *place, struct error *err)
{
	struct limit *limit = place;
	int ret = limit_from_json(json, limit, err);

	if (!ret)
		ret = limit_check_amounts(limit, err);
	if (ret)
		limit_clear(limit);
	return ret;
}

/* The members of a server, borrowed; NULL: not given. */
struct members {
	const char *name;
	const char *loopback, *framing, *bodies, *paths, *namespace_from, *hold, *when_full, *inside, *refusals, *xdp,
		*syn_cookies;
	json_t *listen, *netns, *netns_cookie, *cgroup, *trusted_proxies, *proxy_protocol, *interfaces, *keys, *dry_run,
		*paused, *draining, *identity, *limits, *last_number, *priority_levels, *flow_schemas, *concurrency,
		*list_width, *list_object_bytes, *exempt, *groups, *policy, *max_retry_after, *inside_share,
		*write_memory, *hold_max;
};

static int members_find(json_t *json, struct members *m, struct error *err)
{
	json_error_t why;

	*m = (struct members){ 0 };
	if (json_unpack_ex(
		    json, &why, 0,
		    "{s:s, s:o, s?s, s?s, s?s, s?s, s?s, s?s, s?s, s?s, s?s, s?s, s?s, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, "
		    "s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o !}",
		    "name", &m->name, "listen", &m->listen, "loopback", &m->loopback, "framing", &m->framing, "bodies",
		    &m->bodies, "paths", &m->paths, "namespace_from", &m->namespace_from, "hold", &m->hold, "when_full",
		    &m->when_full, "inside", &m->inside, "refusals", &m->refusals, "xdp", &m->xdp, "syn_cookies",
		    &m->syn_cookies, "max_retry_after", &m->max_retry_after, "netns", &m->netns, "netns_cookie",
		    &m->netns_cookie, "cgroup", &m->cgroup, "trusted_proxies", &m->trusted_proxies, "proxy_protocol",
		    &m->proxy_protocol, "interfaces", &m->interfaces, "keys", &m->keys, "dry_run", &m->dry_run,
		    "paused", &m->paused, "draining", &m->draining, "identity", &m->identity, "limits", &m->limits,
		    "last_number", &m->last_number, "priority_levels", &m->priority_levels, "flow_schemas",
		    &m->flow_schemas, "concurrency", &m->concurrency, "list_width", &m->list_width, "list_object_bytes",
		    &m->list_object_bytes, "exempt", &m->exempt, "groups", &m->groups, "policy", &m->policy,
		    "inside_share", &m->inside_share, "write_memory", &m->write_memory, "hold_max", &m->hold_max))
		return error_set(err, -EINVAL, "server: %s", why.text);
	return 0;
}

int server_check_limits(const struct server *server, struct error *err)
{
	char name[SLOT_NAME_SIZE];

	for (size_t i = 0; i < server->n_limits; i++) {
		const struct limit *limit = &server->limits[i];

		if (server_limit(server, limit->name) != limit)
			return error_set_field(err, -EINVAL, "limits", NULL, "\"%s\" is there twice", limit->name);
		server_slot_name(server, limit_slot(limit), name);
		if (limit->number && strcmp(name, limit->name) != 0)
			return error_set(err, -EINVAL, "number: %u of %s is in the place of %s", limit->number,
					 limit->name, name);
	}
	return 0;
}

static int read_limits(const struct members *m, struct server *server, struct error *err)
{
	int ret;

	server->concurrency = SERVER_CONCURRENCY;
	ret = list_from_json(m->limits, "limits", limit_item, sizeof(*server->limits), &server->limits, &server->n_limits, err) ?:
		      number_from_json(m->last_number, "last_number", UINT32_MAX, &server->last_number, err)	 ?:
		      priorities_from_json(m->priority_levels, m->flow_schemas, &server->priorities, err)	 ?:
		      number_from_json(m->concurrency, "concurrency", WEIR_BURST_MAX, &server->concurrency, err) ?:
		      number_from_json(m->list_width, "list_width", WEIR_SEATS_MAX, &server->list_width, err)	 ?:
		      number_from_json(m->list_object_bytes, "list_object_bytes", STATE_OBJECT_BYTES_MAX, &server->list_object_bytes, err) ?:
		      rule_list_from_json(m->exempt, "exempt", &server->exempt, &server->n_exempt, err);
	if (!ret && m->groups)
		ret = texts_from_json(m->groups, "groups", copy_text, &server->identity.rule_groups, err);
	return ret ?: server_check_limits(server, err);
}

static int read_lists(const struct members *m, struct server *server, struct error *err)
{
	int ret;

	ret = list_from_json(m->listen, "listen", listen_read, sizeof(*server->listens), &server->listens,
			     &server->n_listens, err);
	if (!ret)
		ret = list_from_json(m->trusted_proxies, "trusted_proxies", network_read, sizeof(*server->proxies),
				     &server->proxies, &server->n_proxies, err);
	if (!ret)
		ret = list_from_json(m->proxy_protocol, "proxy_protocol", network_read, sizeof(*server->balancers),
				     &server->balancers, &server->n_balancers, err);
	if (!ret)
		ret = list_from_json(m->interfaces, "interfaces", interface_read, sizeof(*server->interfaces),
				     &server->interfaces, &server->n_interfaces, err);
	if (!ret)
		ret = read_limits(m, server, err);
	if (!ret && server->n_listens == 0)
		ret = error_set_field(err, -EINVAL, "listen", NULL, "a server needs at least one port");
	return ret;
}

/* What is not said stays as it is. */
static int read_modes(const struct members *m, struct server *server, struct error *err)
{
	const struct {
		const struct choice *choice;
		const char *text;
		unsigned int *mode; /* an enum, which is one of these */
	} modes[] = {
		{ &loopback_modes, m->loopback, &server->loopback },
		{ &framing_modes, m->framing, &server->framing },
		{ &bodies_modes, m->bodies, &server->bodies },
		{ &paths_modes, m->paths, &server->tenancy.paths },
		{ &hold_modes, m->hold, &server->hold },
		{ &full_modes, m->when_full, &server->when_full },
		{ &inside_modes, m->inside, &server->inside },
		{ &refusals_modes, m->refusals, &server->refusals },
		{ &xdp_modes, m->xdp, &server->xdp },
		{ &syn_cookies_modes, m->syn_cookies, &server->syn_cookies },
	};

	server->xdp = XDP_AUTO;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		int found = modes[i].text ? choice_parse(modes[i].choice, modes[i].text, err) : (int)*modes[i].mode;

		if (found < 0)
			return found;
		*modes[i].mode = found;
	}
	return 0;
}

static int read_options(const struct members *m, struct server *server, struct error *err)
{
	int ret;

	ret = text_from_json(m->netns, "netns", &server->netns, err);
	if (!ret)
		ret = text_from_json(m->cgroup, "cgroup", &server->cgroup, err);
	if (!ret)
		ret = read_modes(m, server, err);
	if (!ret && m->namespace_from)
		ret = namespace_from_parse(m->namespace_from, &server->tenancy, err);
	if (!ret)
		ret = number_from_json(m->inside_share, "inside_share", WEIR_INSIDE_ALL, &server->inside_share, err);
	if (!ret)
		ret = flag_from_json(m->write_memory, "write_memory", &server->write_memory, err);
	if (!ret)
		ret = number_from_json(m->hold_max, "hold_max", WEIR_TURN_HOLD_LIMIT_S, &server->hold_max, err);
	if (!ret)
		ret = number_from_json(m->max_retry_after, "max_retry_after", WEIR_RETRY_MAX_S,
				       &server->max_retry_after, err);
	if (!ret)
		ret = number_from_json(m->keys, "keys", PARSE_KEYS_MAX, &server->keys, err);
	if (!ret)
		ret = flag_from_json(m->dry_run, "dry_run", &server->dry_run, err);
	if (!ret)
		ret = flag_from_json(m->paused, "paused", &server->paused, err);
	if (!ret)
		ret = flag_from_json(m->draining, "draining", &server->draining, err);
	if (!ret)
		ret = identity_settings_from_json(m->identity, &server->identity, err);
	if (!ret)
		server->netns_cookie = json_integer_value(m->netns_cookie);
	if (!ret && m->policy && !json_is_object(m->policy))
		ret = error_set_field(err, -EINVAL, "policy", NULL, "must be an object");
	if (!ret && m->policy)
		server->policy = json_incref(m->policy);
	return ret;
}

/* One header cannot say two things. */
static int check_headers(const struct server *server, struct error *err)
{
	const char *header = server->tenancy.header;

	if (strcmp(header, server->identity.user_header) != 0 && strcmp(header, server->identity.group_header) != 0)
		return 0;
	return error_set_field(err, -EINVAL, "namespace_from", NULL,
			       "\"%s\" cannot name the namespace: it names the user or groups", header);
}

static int server_read(json_t *json, struct server *server, struct error *err)
{
	struct members m;
	int ret;

	ret = members_find(json, &m, err);
	if (!ret)
		ret = parse_server_name(m.name, err);
	if (ret)
		return ret;
	strcpy(server->name, m.name);
	ret = read_options(&m, server, err);
	return ret ?: check_headers(server, err) ?: read_lists(&m, server, err);
}

int server_from_json(json_t *json, struct server **out, struct error *err)
{
	CLEANUP_SERVER struct server *server = calloc(1, sizeof(*server));
	int ret;

	if (!server)
		return error_set(err, -ENOMEM, "out of memory");
	ret = server_read(json, server, err);
	if (ret)
		return ret;
	*out = server;
	server = NULL;
	return 0;
}
