/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What was asked for: which servers are attached and what limits them, as plain structs and as JSON. user/saved keeps it in
 * state.json. A server's slot is its place in state.servers, and its id in the maps of its namespace.
 */
#ifndef WEIR_USER_STATE_STATE_H
#define WEIR_USER_STATE_STATE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "datapath/datapath.h"
#include "model/identity.h"
#include "model/limit.h"
#include "model/parse.h"
#include "model/priority.h"
#include "model/tenancy.h"
#include "state/modes.h"

#define STATE_OBJECT_BYTES_MAX (1U << 30)

struct server {
	char name[PARSE_NAME_SIZE];
	char *netns; /* path; NULL: the agent's own namespace */
	__u64 netns_cookie;
	char *cgroup;
	struct datapath_listen *listens;
	size_t n_listens;
	struct datapath_cidr *proxies;
	size_t n_proxies;
	struct datapath_cidr
		*balancers; /* each connection begins with a PROXY protocol preamble; theirs are believed */
	size_t n_balancers; /* 0: none begins with one */
	char (*interfaces)[PARSE_INTERFACE_SIZE]; /* NULL: all */
	size_t n_interfaces;
	struct limit *limits;
	size_t n_limits;
	__u32 last_number; /* the latest that was given to a limit or a priority level (limit.h) */
	struct priorities priorities;
	__u32 concurrency; /* seats, of which the priority levels have their shares */
	__u32 list_width; /* seats that a LIST takes; 0: as many as its list is known to be wide (weir/limit/width.h) */
	__u32 list_object_bytes; /* of an answer to a LIST; 0: WEIR_OBJECT_BYTES */
	struct rule *exempt;	 /* requests that no limit is for, beside those of exempt groups and users */
	size_t n_exempt;
	struct identity_settings identity;
	enum loopback_mode loopback;
	enum framing_mode framing;
	enum bodies_mode bodies;
	struct tenancy tenancy;
	enum hold_mode hold;
	enum full_mode when_full;
	enum inside_mode inside;
	__u32 inside_share; /* percent of connections of which requests are refused; 0: all */
	bool write_memory;  /* where registers cannot be written, requests are refused by memory */
	__u32 hold_max;	    /* seconds; 0: WEIR_TURN_HOLD_MAX_S */
	enum refusals_mode refusals;
	enum xdp_asked xdp;
	enum syn_cookies syn_cookies;
	__u32 max_retry_after; /* seconds; 0: WEIR_RETRY_MAX_S */
	__u32 keys;	       /* buckets kept for each limit; 0: WEIR_DEFAULT_KEYS */
	bool dry_run;
	bool paused;
	bool draining;	/* detached; stays until its translated connections have ended */
	json_t *policy; /* the objects that are applied (server.c); NULL: none */
	struct {
		json_t *of; /* owned: the policy whose text it is */
		char *text;
	} policy_text; /* as the state's file has it; NULL: not made yet */
};

struct state {
	struct server *servers[WEIR_MAX_SERVERS]; /* owned; NULL: the slot is free */
	const char
		*persist_dir; /* borrowed: where what commands have set outlives the machine's restart; NULL: nowhere */
	struct {
		size_t size; /* of each of its files, which say the same; 0: that is not known, or they do not */
		size_t room; /* for lines behind the state (saved/lines.h) */
		bool lines;  /* there are some */
	} saved;
};

void server_free(struct server *server);
static inline void cleanup_server(struct server **server)
{
	server_free(*server);
}
#define CLEANUP_SERVER __attribute__((cleanup(cleanup_server)))

/* The whole server, limits included; NULL without memory. A new reference. */
json_t *server_to_json(const struct server *server);
/* The same without limits and policy, of which there may be very much. */
json_t *server_settings_to_json(const struct server *server);
/*
 * Of these its name, ports and cgroup, and what differs from a server for which nothing was chosen: a version that knows fewer settings
 * refuses those that it does not know, but reads every server that does not use them.
 */
json_t *server_settings_chosen(const struct server *server);

/*
 * What a server has, when it is attached, of which nothing is said. In what is saved, and in the settings that are kept beside policies,
 * nothing means what it meant in the versions that had no such default.
 */
void server_attach_defaults(json_t *json);

/* Checks every value. Caller owns *out (server_free). */
int server_from_json(json_t *json, struct server **out, struct error *err);

/* One name is one limit's, and one place in the kernel: -EINVAL. server_from_json() has checked that. */
int server_check_limits(const struct server *server, struct error *err);
/* The limit of this name, or NULL. */
struct limit *server_limit(const struct server *server, const char *name);
/* Takes over what the limit points to on success; -ENOMEM. */
int server_limit_add(struct server *server, const struct limit *limit);
void server_limit_remove(struct server *server, struct limit *limit);

/* Numbers the limits and priority levels that have none yet. -ENOSPC. */
int server_give_numbers(struct server *server, struct error *err);
#define SLOT_NAME_SIZE 272
/* What has a slot: a limit's name, or "level/" and a priority level's; "" for nothing. */
void server_slot_name(const struct server *server, __u32 slot, char name[static SLOT_NAME_SIZE]);
/* The same of what had the slot when its number was this one; 0: a built-in limit. */
void server_numbered_name(const struct server *server, __u32 slot, __u32 number, char name[static SLOT_NAME_SIZE]);

/*
 * Brings the groups that rules name (identity_settings.rule_groups) up to date: those that are still named keep their bits.
 * Returns whether that changed anything; -E2BIG.
 */
int server_name_groups(struct server *server, struct error *err);

/* The slot of a name; -ENOENT. */
int state_find(const struct state *state, const char *name);
/* -ENOENT, and which one may be meant, or which there are. */
int state_unknown(const struct state *state, const char *name, struct error *err);
/* -EBUSY, and the way out: one that is draining cannot be changed, or attached anew. */
int state_draining(const struct server *server, struct error *err);
/* The slot of the only server, besides such as are draining; err lists the servers otherwise. */
int state_find_only(const struct state *state, struct error *err);
/* May this server stand beside the others? -EEXIST names both when two have one name or one listener; -EBUSY: state_draining(). */
int state_check(const struct state *state, const struct server *server, struct error *err);
void state_clear(struct state *state);

#endif
