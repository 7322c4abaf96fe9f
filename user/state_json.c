/* SPDX-License-Identifier: GPL-2.0 */
/* Servers and limits as JSON. Unknown members are errors: a misspelt one must not be silently without effect. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cleanup.h"
#include "rate.h"
#include "state.h"

static json_t *limit_to_json(const struct limit *limit)
{
	char qps[WEIR_QPS_TEXT];

	weir_qps_format(limit->per_ns, qps, sizeof(qps));
	return json_pack("{s:s, s:s?, s:s, s:I, s:I}", "type", limit_type_name(limit->type), "subject", limit->subject,
			 "qps", qps, "burst", (json_int_t)limit->burst, "keys", (json_int_t)limit->keys);
}

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

static json_t *texts_to_json(const struct server *server, size_t n, format_item *format)
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

json_t *server_to_json(const struct server *server)
{
	char namespace_from[TENANCY_TEXT];

	namespace_from_format(&server->tenancy, namespace_from);
	return json_pack(
		"{s:s, s:o, s:s?, s:I, s:s?, s:o, s:o, s:o, s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:b, s:b, s:b, s:o, s:o}",
		"name", server->name, "listen", texts_to_json(server, server->n_listens, listen_item), "netns",
		server->netns, "netns_cookie", (json_int_t)server->netns_cookie, "cgroup", server->cgroup,
		"trusted_proxies", texts_to_json(server, server->n_proxies, proxy_item), "proxy_protocol",
		texts_to_json(server, server->n_balancers, balancer_item), "interfaces",
		texts_to_json(server, server->n_interfaces, interface_item), "loopback",
		loopback_mode_name(server->loopback), "framing", framing_mode_name(server->framing), "paths",
		paths_name(server->tenancy.paths), "namespace_from", namespace_from, "hold",
		hold_mode_name(server->hold), "when_full", full_mode_name(server->when_full), "keys",
		(json_int_t)server->keys, "dry_run", server->dry_run, "paused", server->paused, "draining",
		server->draining, "identity", identity_settings_to_json(&server->identity), "limits",
		limits_to_json(server));
}

/* NULL or JSON null: *out becomes NULL. */
static int text_from_json(json_t *json, const char *key, char **out, struct error *err)
{
	if (!json || json_is_null(json))
		return 0;
	if (!json_is_string(json))
		return error_set(err, -EINVAL, "%s: must be a string", key);
	*out = strdup(json_string_value(json));
	return *out ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int flag_from_json(json_t *json, const char *key, bool *out, struct error *err)
{
	if (json && !json_is_boolean(json))
		return error_set(err, -EINVAL, "%s: must be true or false", key);
	*out = json_is_true(json);
	return 0;
}

static int number_from_json(json_t *json, const char *key, __u32 max, __u32 *out, struct error *err)
{
	json_int_t value = json_integer_value(json);

	if (!json)
		return 0;
	if (!json_is_integer(json) || value < 0 || value > max)
		return error_set(err, -EINVAL, "%s: must be a whole number up to %u", key, max);
	*out = value;
	return 0;
}

/* Parses one text of an array into a place of `size` bytes. */
typedef int parse_item(const char *text, void *place, struct error *err);

static int listen_parse(const char *text, void *place, struct error *err)
{
	return parse_listen(text, place, err);
}

static int proxy_parse(const char *text, void *place, struct error *err)
{
	return parse_cidr(text, place, err);
}

static int interface_parse(const char *text, void *place, struct error *err)
{
	int ret = parse_interface(text, err);

	if (!ret)
		strcpy(place, text);
	return ret;
}

/* *out points to n places of `size` bytes, NULL for none; the caller frees it, on failure too. */
static int texts_from_json(json_t *array, const char *key, parse_item *parse, size_t size, void *out, size_t *n,
			   struct error *err)
{
	struct error why = { 0 };
	json_t *item;
	size_t i;
	char *places;

	if (!array || (json_is_array(array) && json_array_size(array) == 0))
		return 0;
	if (!json_is_array(array))
		return error_set(err, -EINVAL, "%s: must be a list", key);
	places = calloc(json_array_size(array), size);
	if (!places)
		return error_set(err, -ENOMEM, "out of memory");
	*(void **)out = places;
	json_array_foreach (array, i, item) {
		if (!json_is_string(item))
			return error_set(err, -EINVAL, "%s: must be a list of strings", key);
		if (parse(json_string_value(item), places + i * size, &why))
			return error_set(err, -EINVAL, "%s: %s", key, why.text);
	}
	*n = json_array_size(array);
	return 0;
}

static int subject_from_json(json_t *json, enum weir_limit_type type, char **out, struct error *err)
{
	CLEANUP_FREE char *text = NULL;
	struct subject subject;
	int ret;

	ret = text_from_json(json, "subject", &text, err);
	if (ret || !text)
		return ret;
	ret = parse_subject(type, text, &subject, err);
	if (ret)
		return ret;
	*out = strdup(subject.text);
	return *out ? 0 : error_set(err, -ENOMEM, "out of memory");
}

static int limit_read(json_t *json, struct limit *limit, struct error *err)
{
	const char *type, *qps;
	json_t *subject = NULL, *burst, *keys = NULL;
	json_error_t why;
	int ret;

	if (json_unpack_ex(json, &why, 0, "{s:s, s:s, s:o, s?o, s?o !}", "type", &type, "qps", &qps, "burst", &burst,
			   "subject", &subject, "keys", &keys))
		return error_set(err, -EINVAL, "limit: %s", why.text);
	ret = parse_limit_type(type, &limit->type, err);
	if (!ret)
		ret = subject_from_json(subject, limit->type, &limit->subject, err);
	if (!ret)
		ret = number_from_json(burst, "burst", WEIR_BURST_MAX, &limit->burst, err);
	if (!ret)
		ret = number_from_json(keys, "keys", PARSE_KEYS_MAX, &limit->keys, err);
	if (ret)
		return ret;
	if (weir_qps_parse(qps, &limit->per_ns))
		return error_set(err, -EINVAL, "qps: \"%s\" is not a rate (a decimal from 0 to %u)", qps, WEIR_QPS_MAX);
	return 0;
}

int limit_from_json(json_t *json, struct limit *out, struct error *err)
{
	struct limit limit = { 0 };
	int ret;

	ret = limit_read(json, &limit, err);
	if (ret)
		limit_clear(&limit);
	else
		*out = limit;
	return ret;
}

static int limits_from_json(json_t *array, struct server *server, struct error *err)
{
	json_t *item;
	size_t i;

	if (array && !json_is_array(array))
		return error_set(err, -EINVAL, "limits: must be a list");
	json_array_foreach (array, i, item) {
		struct limit limit;
		int ret;

		ret = limit_from_json(item, &limit, err);
		if (ret)
			return ret;
		if (server_limit_add(server, &limit)) {
			limit_clear(&limit);
			return error_set(err, -ENOMEM, "out of memory");
		}
	}
	return 0;
}

/* The members of a server, borrowed; NULL: not given. */
struct members {
	const char *name;
	const char *loopback, *framing, *paths, *namespace_from, *hold, *when_full;
	json_t *listen, *netns, *netns_cookie, *cgroup, *trusted_proxies, *proxy_protocol, *interfaces, *keys, *dry_run,
		*paused, *draining, *identity, *limits;
};

static int members_find(json_t *json, struct members *m, struct error *err)
{
	json_error_t why;

	*m = (struct members){ 0 };
	if (json_unpack_ex(
		    json, &why, 0,
		    "{s:s, s:o, s?s, s?s, s?s, s?s, s?s, s?s, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o, s?o !}",
		    "name", &m->name, "listen", &m->listen, "loopback", &m->loopback, "framing", &m->framing, "paths",
		    &m->paths, "namespace_from", &m->namespace_from, "hold", &m->hold, "when_full", &m->when_full,
		    "netns", &m->netns, "netns_cookie", &m->netns_cookie, "cgroup", &m->cgroup, "trusted_proxies",
		    &m->trusted_proxies, "proxy_protocol", &m->proxy_protocol, "interfaces", &m->interfaces, "keys",
		    &m->keys, "dry_run", &m->dry_run, "paused", &m->paused, "draining", &m->draining, "identity",
		    &m->identity, "limits", &m->limits))
		return error_set(err, -EINVAL, "server: %s", why.text);
	return 0;
}

static int read_lists(const struct members *m, struct server *server, struct error *err)
{
	int ret;

	ret = texts_from_json(m->listen, "listen", listen_parse, sizeof(*server->listens), &server->listens,
			      &server->n_listens, err);
	if (!ret)
		ret = texts_from_json(m->trusted_proxies, "trusted_proxies", proxy_parse, sizeof(*server->proxies),
				      &server->proxies, &server->n_proxies, err);
	if (!ret)
		ret = texts_from_json(m->proxy_protocol, "proxy_protocol", proxy_parse, sizeof(*server->balancers),
				      &server->balancers, &server->n_balancers, err);
	if (!ret)
		ret = texts_from_json(m->interfaces, "interfaces", interface_parse, sizeof(*server->interfaces),
				      &server->interfaces, &server->n_interfaces, err);
	if (!ret)
		ret = limits_from_json(m->limits, server, err);
	if (!ret && server->n_listens == 0)
		ret = error_set(err, -EINVAL, "listen: a server needs at least one port");
	return ret;
}

static int read_options(const struct members *m, struct server *server, struct error *err)
{
	int ret;

	ret = text_from_json(m->netns, "netns", &server->netns, err);
	if (!ret)
		ret = text_from_json(m->cgroup, "cgroup", &server->cgroup, err);
	if (!ret && m->loopback)
		ret = loopback_mode_parse(m->loopback, &server->loopback, err);
	if (!ret && m->framing)
		ret = framing_mode_parse(m->framing, &server->framing, err);
	if (!ret && m->paths)
		ret = paths_parse(m->paths, &server->tenancy.paths, err);
	if (!ret && m->namespace_from)
		ret = namespace_from_parse(m->namespace_from, &server->tenancy, err);
	if (!ret && m->hold)
		ret = hold_mode_parse(m->hold, &server->hold, err);
	if (!ret && m->when_full)
		ret = full_mode_parse(m->when_full, &server->when_full, err);
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
	return ret;
}

/* One header cannot say two things. */
static int check_headers(const struct server *server, struct error *err)
{
	const char *header = server->tenancy.header;

	if (strcmp(header, server->identity.user_header) != 0 && strcmp(header, server->identity.group_header) != 0)
		return 0;
	return error_set(err, -EINVAL, "\"%s\" cannot name the namespace: it names the user or groups", header);
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
