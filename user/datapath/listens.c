/* SPDX-License-Identifier: GPL-2.0 */
/* Which server owns which port and address. */
#include "datapath/listens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "datapath/map_sync.h"

static struct weir_listener listener_key(const struct datapath_listen *listen)
{
	struct weir_listener key = { .port = listen->port };

	memcpy(key.address, listen->address, sizeof(key.address));
	return key;
}

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

/* Counted anew each time, so that a count cannot go wrong for good. */
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

/* A port for all addresses is taken before its single addresses are given up: so no packet finds it without a server. */
int listens_set(struct datapath *dp, __u32 slot, const struct datapath_listen *listens, size_t n, struct error *err)
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

int listens_check(struct datapath *dp, __u32 slot, const struct datapath_listen *listens, size_t n, struct error *err)
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
