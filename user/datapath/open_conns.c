/* SPDX-License-Identifier: GPL-2.0 */
/* Requests in flight: those that packets show, as the table of connections has them, and those that are seen inside servers. */
#include <errno.h>
#include <string.h>

#include "weir/conn/conn.h"

#include "datapath/map_cursor.h"
#include "datapath/private.h"

/* What is needed to say whose a connection is. */
struct reading {
	struct datapath *dp;
	enum weir_heavy_by by;
	struct open_requests *open;
	bool inside[WEIR_MAX_SERVERS]; /* what packets do not show is seen there */
};

/* As client_address() in bpf/identify.h has it. */
static void set_address(const struct reading *r, const struct weir_flow *flow, const struct weir_conn *c,
			struct weir_asked *asked)
{
	struct weir_proxy_key peer = { .prefixlen = 32 + 128, .server = c->server };
	const __u8 *from = flow->client;
	__u8 there;

	memcpy(peer.address, flow->client, sizeof(peer.address));
	if (c->preamble.given && !bpf_map_lookup_elem(r->dp->maps.balancers, &peer, &there))
		from = c->preamble.address;
	memcpy(asked->address, from, sizeof(asked->address));
	if (!weir_address_is_ipv4(asked->address))
		memset(asked->address + 8, 0, 8);
	asked->has_address = true;
}

/* What else is asked for, a connection does not keep. */
static bool tells(enum weir_heavy_by by)
{
	return by == WEIR_HEAVY_USER || by == WEIR_HEAVY_NAMESPACE || by == WEIR_HEAVY_SOURCE;
}

/* Requests that cannot be read come from somewhere: of those sources nobody knows what is in flight. */
static bool hides_some(const struct reading *r, const struct weir_conn *c)
{
	return r->by == WEIR_HEAVY_SOURCE && c->phase == WEIR_PHASE_OPAQUE && !weir_conn_ended(c) &&
	       c->server < WEIR_MAX_SERVERS && !r->inside[c->server];
}

static int add_conn(const struct reading *r, const struct weir_flow *flow, const struct weir_conn *c)
{
	const bool has_request = weir_conn_has_request(c);
	struct weir_asked asked = {
		.user = c->user,
		.namespace = c->namespace,
		.server = c->server,
		.slot = WEIR_ASKED_NO_SLOT,
		.is_record = !tells(r->by),
	};

	if (!has_request && !hides_some(r, c))
		return 0;
	set_address(r, flow, c, &asked);
	return open_requests_add(r->open, r->by, &asked, !has_request);
}

static int read_conns(const struct reading *r)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret = map_cursor_open(&cursor, r->dp->maps.conns, sizeof(struct weir_flow), sizeof(struct weir_conn));

	while (!ret && (ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_flow *flows = cursor.keys;
		const struct weir_conn *conns = cursor.values;

		ret = 0;
		for (__u32 i = 0; i < cursor.n && !ret; i++)
			ret = add_conn(r, &flows[i], &conns[i]);
	}
	return ret;
}

static void find_inside(struct reading *r)
{
	for (__u32 slot = 0; slot < WEIR_MAX_SERVERS; slot++) {
		struct weir_server server;

		r->inside[slot] = !bpf_map_lookup_elem(r->dp->maps.servers, &slot, &server) &&
				  (server.flags & WEIR_SERVER_INSIDE);
	}
}

int datapath_open_requests(struct datapath *dp, enum weir_heavy_by by, struct open_requests *out, struct error *err)
{
	struct open_requests open = {};
	struct reading r = { .dp = dp, .by = by, .open = &open };
	int ret = dp->inside ? datapath_look(dp, err) : 0;

	if (ret)
		return ret;
	find_inside(&r);
	ret = read_conns(&r) ?: datapath_inside_open(dp, by, &open);
	if (ret) {
		open_requests_clear(&open);
		return datapath_map_failed(err, ret, "conns");
	}
	open_requests_sort(&open);
	*out = open;
	return 0;
}
