/* SPDX-License-Identifier: GPL-2.0 */
/* What is in force of a server: its entry, what it has of ports and addresses, and the end of all that is its own. */
#include <errno.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "datapath/listens.h"
#include "datapath/map_sync.h"
#include "weir/admission/box.h"
#include "weir/inside/open.h"
#include "weir/inside/turn.h"

static int server_put(struct datapath *dp, __u32 slot, const struct weir_server *server, struct error *err)
{
	if (bpf_map_update_elem(dp->maps.servers, &slot, server, BPF_ANY))
		return datapath_map_failed(err, -errno, "servers");
	return 0;
}

static int write_locked(struct datapath *dp, __u32 slot, const struct weir_server *server, struct error *err)
{
	struct weir_server there, whole = *server;
	int ret = datapath_server_read(dp, slot, &there, err);

	if (ret)
		return ret;
	whole.newcomers_seal = weir_newcomers_seal(&whole.newcomers, slot);
	whole.reading.seal = weir_reading_seal(&whole.reading);
	/* Whether a server is traced, and looked at, is said by datapath_trace_until() and datapath_look() alone, perhaps just now. */
	if (whole.flags) {
		whole.trace_until_ns = there.trace_until_ns;
		whole.look_until_ns = there.look_until_ns;
	}
	if (!memcmp(&whole, &there, sizeof(there)))
		return 0;
	dp->written.of[DATAPATH_servers].changed++;
	return server_put(dp, slot, &whole, err);
}

int datapath_server_write(struct datapath *dp, __u32 slot, const struct weir_server *server, struct error *err)
{
	int ret;

	pthread_mutex_lock(&dp->lock);
	ret = write_locked(dp, slot, server, err);
	pthread_mutex_unlock(&dp->lock);
	return ret;
}

int datapath_server_read(struct datapath *dp, __u32 slot, struct weir_server *server, struct error *err)
{
	if (bpf_map_lookup_elem(dp->maps.servers, &slot, server))
		return datapath_map_failed(err, -errno, "servers");
	return 0;
}

/* From now on no body of this slot's server is known to have been taken for requests. */
static int body_server_clear(struct datapath *dp, __u32 slot, struct error *err)
{
	const __u32 no = 0;

	if (bpf_map_update_elem(dp->maps.body_servers, &slot, &no, BPF_ANY))
		return datapath_map_failed(err, -errno, "body_servers");
	return 0;
}

/* What was found while somebody knew it better is not believed afterwards either: it is found out anew. */
static int body_server_keep(struct datapath *dp, __u32 slot, __u32 before, __u32 flags, struct error *err)
{
	if (!(before & WEIR_SERVER_BODIES_READ) || flags & WEIR_SERVER_BODIES_READ)
		return 0;
	return body_server_clear(dp, slot, err);
}

int datapath_serves_bodies(struct datapath *dp, __u32 slot, bool *found, struct error *err)
{
	__u32 known = 0;

	if (bpf_map_lookup_elem(dp->maps.body_servers, &slot, &known))
		return datapath_map_failed(err, -errno, "body_servers");
	*found = known;
	return 0;
}

int datapath_server_set(struct datapath *dp, __u32 slot, const struct weir_server *server,
			const struct datapath_listen *listens, size_t n_listens, const struct datapath_cidr *proxies,
			size_t n_proxies, struct error *err)
{
	struct weir_server old, quiet = { .swallow_max = server->swallow_max }, whole = *server;
	int ret = datapath_server_read(dp, slot, &old, err);

	/* A server in force owns its ports, even if the maps say otherwise. */
	if (!ret && !(old.flags & WEIR_SERVER_ACTIVE))
		ret = listens_check(dp, slot, listens, n_listens, err);
	if (ret)
		return ret;
	memcpy(whole.reading.seed, dp->seed, sizeof(dp->seed));
	whole.generation = old.generation;
	whole.traits = old.traits;
	/* A server that is in force stays so meanwhile; a new one has no packets before it is whole. */
	if (!(old.flags & WEIR_SERVER_ACTIVE))
		ret = server_put(dp, slot, &quiet, err);
	return ret							       ?:
		       datapath_proxies_set(dp, slot, proxies, n_proxies, err) ?:
		       listens_set(dp, slot, listens, n_listens, err)	       ?:
		       body_server_keep(dp, slot, old.flags, whole.flags, err) ?:
		       datapath_server_write(dp, slot, &whole, err);
}

bool datapath_wait_for_programs(void)
{
	/* It waits for a grace period of RCU. It fails only with nohz_full CPUs: a tick or two are mostly long enough there. */
	bool waited = !syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);

	if (!waited)
		usleep(20000);
	return waited;
}

int datapath_server_flags(struct datapath *dp, __u32 slot, __u32 flags, struct error *err)
{
	struct weir_server server;
	int ret = datapath_server_read(dp, slot, &server, err);

	if (ret || server.flags == flags)
		return ret;
	server.flags = flags;
	ret = datapath_server_write(dp, slot, &server, err);
	datapath_wait_for_programs();
	return ret;
}

int datapath_drain_all(struct datapath *dp, struct error *err)
{
	struct weir_server server;
	int ret = 0;

	for (__u32 slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++) {
		ret = datapath_server_read(dp, slot, &server, err);
		if (!ret && server.flags)
			ret = datapath_server_flags(dp, slot, server.flags | WEIR_SERVER_DRAINING, err);
	}
	return ret;
}

int datapath_known_groups_set(struct datapath *dp, __u32 slot, const struct weir_known_groups *groups,
			      struct error *err)
{
	struct weir_server server;
	int ret = datapath_server_read(dp, slot, &server, err);

	if (ret)
		return ret;
	server.groups = *groups;
	return datapath_server_write(dp, slot, &server, err);
}

int datapath_lists_set(struct datapath *dp, __u32 slot, __u32 width, __u32 object_bytes, struct error *err)
{
	struct weir_server server;
	int ret = datapath_server_read(dp, slot, &server, err);

	if (ret || (server.list_width == width && server.object_bytes == object_bytes))
		return ret;
	server.list_width = width;
	server.object_bytes = object_bytes;
	return datapath_server_write(dp, slot, &server, err);
}

/* A map's entries that are one server's: where its slot is in their keys. */
struct of_server {
	size_t at;
	__u32 slot;
};

static bool is_of_server(const void *key, const void *value, const void *arg)
{
	const struct of_server *of = arg;
	__u32 slot;

	(void)value;
	memcpy(&slot, (const char *)key + of->at, sizeof(slot));
	return slot == of->slot;
}

/* A new server in this slot must not inherit the sizes of lists, the penalty box and the debts of the one before. */
static int known_clear(struct datapath *dp, __u32 slot, struct error *err)
{
	const struct {
		const char *name;
		int fd;
		size_t key, value, at;
	} maps[] = {
		{ "widths", dp->maps.widths, sizeof(struct weir_width_key), sizeof(struct weir_width),
		  offsetof(struct weir_width_key, server) },
		{ "boxes", dp->maps.boxes, sizeof(struct weir_box_key), sizeof(struct weir_box),
		  offsetof(struct weir_box_key, server) },
		{ "hold_turns", dp->maps.hold_turns, sizeof(struct weir_turn_key), sizeof(struct weir_turns),
		  offsetof(struct weir_turn_key, server) },
	};

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		const struct of_server of = { .at = maps[i].at, .slot = slot };
		int ret = map_drop_if(maps[i].fd, maps[i].key, maps[i].value, is_of_server, &of);

		if (ret)
			return datapath_map_failed(err, ret, maps[i].name);
	}
	return 0;
}

int datapath_trace_until(struct datapath *dp, __u32 slot, __u64 until_ns, struct error *err)
{
	struct weir_server server;
	int ret;

	pthread_mutex_lock(&dp->lock);
	ret = datapath_server_read(dp, slot, &server, err);
	if (!ret) {
		server.trace_until_ns = until_ns;
		ret = server_put(dp, slot, &server, err);
	}
	pthread_mutex_unlock(&dp->lock);
	return ret;
}

/* It is not written each time: who looks does so each second. */
static int look_locked(struct datapath *dp, __u32 slot, __u64 now_ns, struct error *err)
{
	struct weir_server server;
	int ret = datapath_server_read(dp, slot, &server, err);

	if (ret || !server.flags || server.look_until_ns > now_ns + WEIR_LOOK_NS / 2)
		return ret;
	server.look_until_ns = now_ns + WEIR_LOOK_NS;
	return server_put(dp, slot, &server, err);
}

int datapath_look(struct datapath *dp, struct error *err)
{
	const __u64 now_ns = clock_ns(CLOCK_MONOTONIC);
	int ret = 0;

	pthread_mutex_lock(&dp->lock);
	for (__u32 slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++)
		ret = look_locked(dp, slot, now_ns, err);
	pthread_mutex_unlock(&dp->lock);
	return ret;
}

int datapath_server_clear(struct datapath *dp, __u32 slot, struct error *err)
{
	const struct weir_server none = {};
	int ret = listens_set(dp, slot, NULL, 0, err)		      ?:
			  datapath_server_write(dp, slot, &none, err) ?:
									datapath_proxies_set(dp, slot, NULL, 0, err);

	datapath_wait_for_programs();
	ret = ret						     ?:
		      datapath_balancers_set(dp, slot, NULL, 0, err) ?:
		      datapath_groups_set(dp, slot, NULL, 0, err)    ?:
		      datapath_tokens_set(dp, slot, NULL, 0, err)    ?:
								       datapath_addresses_set(dp, slot, NULL, 0, err);
	return ret								 ?:
		       datapath_rules_set(dp, slot, NULL, NULL, 0, NULL, 0, err) ?:
		       datapath_limits_clear(dp, slot, err)			 ?:
		       datapath_conns_clear(dp, slot, err)			 ?:
		       known_clear(dp, slot, err)				 ?:
		       body_server_clear(dp, slot, err)				 ?:
		       datapath_heavy_clear(dp, slot, err)			 ?:
										   datapath_counters_clear(dp, slot, err);
}
