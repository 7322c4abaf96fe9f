/* SPDX-License-Identifier: GPL-2.0 */
/* Which server owns which port and address. */
#include <errno.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "datapath/map_sync.h"
#include "weir/admission/box.h"
#include "weir/inside/turn.h"

static struct weir_listener listener_key(const struct datapath_listen *listen)
{
	struct weir_listener key = { .port = listen->port };

	memcpy(key.address, listen->address, sizeof(key.address));
	return key;
}

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

	whole.newcomers_seal = weir_newcomers_seal(&whole.newcomers, slot);
	/* Whether a server is traced is said by datapath_trace_until() alone, perhaps just now. */
	if (whole.flags)
		whole.trace_until_ns = there.trace_until_ns;
	if (ret || !memcmp(&whole, &there, sizeof(there)))
		return ret;
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

/* --- listeners and ports */

static bool any_wanted(__u16 port, const struct datapath_listen *listens, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (listens[i].any && listens[i].port == port)
			return true;
	}
	return false;
}

static bool is_listener_of(const void *key, const void *owner, const void *slot)
{
	(void)key;
	return *(const __u32 *)owner == *(const __u32 *)slot;
}

/* Those of an address of their own; the others stand in `ports` alone. */
static int listeners_sync(struct datapath *dp, __u32 slot, const struct datapath_listen *listens, size_t n)
{
	const struct map_range range = { .part = DATAPATH_listeners,
					 .fd = dp->maps.listeners,
					 .key_size = sizeof(struct weir_listener),
					 .value_size = sizeof(slot),
					 .ours = is_listener_of,
					 .arg = &slot };
	CLEANUP_FREE struct weir_listener *keys = calloc(n + 1, sizeof(*keys));
	CLEANUP_FREE __u32 *owners = calloc(n + 1, sizeof(*owners));
	size_t wanted = 0;

	if (!keys || !owners)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (listens[i].any)
			continue;
		keys[wanted] = listener_key(&listens[i]);
		owners[wanted++] = slot;
	}
	return map_sync(dp, &range, &(struct map_entries){ keys, owners, wanted });
}

/* Counted anew each time, so that a count can not go wrong for good. */
static int port_addresses(struct datapath *dp, __u16 port, __u32 *addresses)
{
	CLEANUP_CURSOR struct map_cursor cursor = {};
	int ret = map_cursor_open(&cursor, dp->maps.listeners, sizeof(struct weir_listener), sizeof(__u32));
	__u32 n = 0;

	if (ret)
		return ret;
	while ((ret = map_cursor_next(&cursor)) > 0) {
		const struct weir_listener *keys = cursor.keys;

		for (__u32 i = 0; i < cursor.n; i++)
			n += keys[i].port == port;
	}
	if (!ret)
		*addresses = n;
	return ret;
}

const struct weir_port *ports_map(const struct datapath *dp)
{
	void *ports = mmap(NULL, WEIR_PORTS * sizeof(struct weir_port), PROT_READ, MAP_SHARED, dp->maps.ports, 0);

	return ports == MAP_FAILED ? NULL : ports;
}

void ports_unmap(const struct weir_port **ports)
{
	if (*ports)
		munmap((void *)*ports, WEIR_PORTS * sizeof(**ports));
}

static bool port_is_used(const struct weir_port *entry)
{
	return entry->any || entry->addresses;
}

/* Brings one port's entry in line with the listeners and with what the slot wants of it. */
static int port_refresh(struct datapath *dp, __u32 slot, __u32 port, bool any)
{
	struct datapath_changes *written = &dp->written.of[DATAPATH_ports];
	struct weir_port old = {}, entry;
	int ret;

	bpf_map_lookup_elem(dp->maps.ports, &port, &old);
	entry = old;
	if (any)
		entry.any = slot + 1;
	else if (old.any == slot + 1)
		entry.any = 0;
	ret = port_addresses(dp, port, &entry.addresses);
	if (ret || !memcmp(&entry, &old, sizeof(entry)))
		return ret;
	if (!port_is_used(&old))
		written->added++;
	else
		*(port_is_used(&entry) ? &written->changed : &written->dropped) += 1;
	return bpf_map_update_elem(dp->maps.ports, &port, &entry, BPF_ANY);
}

static int ports_refresh(struct datapath *dp, __u32 slot, const struct datapath_listen *listens, size_t n)
{
	CLEANUP_PORTS const struct weir_port *ports = ports_map(dp);
	int ret = ports ? 0 : error_errno();

	for (size_t i = 0; i < n && !ret; i++)
		ret = port_refresh(dp, slot, listens[i].port, any_wanted(listens[i].port, listens, n));
	for (__u32 port = 0; port < WEIR_PORTS && !ret; port++) {
		if (port_is_used(&ports[port]))
			ret = port_refresh(dp, slot, port, any_wanted(port, listens, n));
	}
	return ret;
}

/* A port that is taken as a whole is so before the addresses go that it was taken by. */
static int listens_set(struct datapath *dp, __u32 slot, const struct datapath_listen *listens, size_t n,
		       struct error *err)
{
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++)
		ret = listens[i].any ? port_refresh(dp, slot, listens[i].port, true) : 0;
	if (ret)
		return datapath_map_failed(err, ret, "ports");
	ret = listeners_sync(dp, slot, listens, n);
	if (ret)
		return datapath_map_failed(err, ret, "listeners");
	ret = ports_refresh(dp, slot, listens, n);
	return ret ? datapath_map_failed(err, ret, "ports") : 0;
}

/* --- servers */

static int listens_check(struct datapath *dp, __u32 slot, const struct datapath_listen *listens, size_t n,
			 struct error *err)
{
	for (size_t i = 0; i < n; i++) {
		struct weir_listener key = listener_key(&listens[i]);
		__u32 number = listens[i].port, owner = slot;
		struct weir_port port = {};

		bpf_map_lookup_elem(dp->maps.ports, &number, &port);
		bpf_map_lookup_elem(dp->maps.listeners, &key, &owner);
		if ((listens[i].any && port.any && port.any != slot + 1) || (!listens[i].any && owner != slot))
			return error_set(err, -EADDRINUSE, "port %u belongs to another server", listens[i].port);
	}
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
		       datapath_server_write(dp, slot, &whole, err);
}

void datapath_wait_for_programs(void)
{
	/* It waits for a grace period of RCU. It fails only with nohz_full CPUs: a tick or two are long enough there. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(20000);
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
		       datapath_heavy_clear(dp, slot, err)			 ?:
										   datapath_counters_clear(dp, slot, err);
}
