/* SPDX-License-Identifier: GPL-2.0 */
/* A row of who makes the load, by name. */
#include "agent/net.h"
#include "base/cleanup.h"
#include "commands/top.h"
#include "model/parse.h"
#include "show/verbs.h"

const char *const top_bys[WEIR_HEAVY_BYS] = {
	[WEIR_HEAVY_USER] = "user",	    [WEIR_HEAVY_NAMESPACE] = "namespace",   [WEIR_HEAVY_VERB] = "verb",
	[WEIR_HEAVY_RESOURCE] = "resource", [WEIR_HEAVY_SOURCE] = "source",	    [WEIR_HEAVY_LIMIT] = "refusal",
	[WEIR_HEAVY_REQUEST] = "request",   [WEIR_HEAVY_CONNECTION] = "connection",
};

static void set_name(struct net *net, json_t *row, const char *key, __u64 subject)
{
	CLEANUP_FREE char *name = subject ? net_name(net, subject) : NULL;

	json_object_set_new(row, key, name ? json_string(name) : json_null());
}

static void set_resource(struct net *net, json_t *row, const struct weir_heavy_what *what, __u64 subject)
{
	CLEANUP_FREE char *name = subject ? net_name(net, subject) : NULL;

	json_object_set_new(row, "resource", what->is_path ? json_sprintf("/%s", name ?: "") : json_pack("s?", name));
}

static void set_verb(json_t *row, const struct weir_heavy_what *what)
{
	json_object_set_new(row, "verb", json_string(verb_name(what->verb)));
}

static void set_address(json_t *row, const struct weir_heavy_what *what)
{
	char address[PARSE_ADDRESS_TEXT];

	format_address(what->address, address);
	json_object_set_new(row, "source",
			    json_sprintf("%s%s", address, weir_address_is_ipv4(what->address) ? "" : "/64"));
}

static void set_limit(const struct server *server, json_t *row, const struct weir_heavy_what *what)
{
	char name[SLOT_NAME_SIZE];

	server_numbered_name(server, what->slot, what->subjects[1], name);
	json_object_set_new(row, "limit", json_string(*name ? name : "(deleted)"));
}

/* The members that say of whom the row is: those that the kind has. */
static void set_what(struct net *net, const struct server *server, json_t *row, const struct weir_heavy_what *what)
{
	switch (what->by) {
	case WEIR_HEAVY_USER:
		return set_name(net, row, "user", what->subjects[0]);
	case WEIR_HEAVY_NAMESPACE:
		return set_name(net, row, "namespace", what->subjects[0]);
	case WEIR_HEAVY_VERB:
		return set_verb(row, what);
	case WEIR_HEAVY_RESOURCE:
		return set_resource(net, row, what, what->subjects[0]);
	case WEIR_HEAVY_SOURCE:
	case WEIR_HEAVY_CONNECTION:
		return set_address(row, what);
	case WEIR_HEAVY_LIMIT:
		set_limit(server, row, what);
		return set_name(net, row, "user", what->subjects[0]);
	default:
		set_name(net, row, "user", what->subjects[0]);
		set_verb(row, what);
		set_name(net, row, "namespace", what->subjects[1]);
		return set_resource(net, row, what, what->subjects[2]);
	}
}

json_t *top_row_json(struct net *net, const struct server *server, const struct weir_heavy_row *row)
{
	json_t *object = top_counts_json(&row->counts);

	json_object_set_new(object, "server", json_string(server->name));
	set_what(net, server, object, &row->what);
	return object;
}

json_t *top_counts_json(const struct weir_heavy_counts *counts)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "requests", (json_int_t)counts->requests, "refused",
			 (json_int_t)counts->refused, "dry_run", (json_int_t)counts->dry_run, "held",
			 (json_int_t)counts->held);
}
