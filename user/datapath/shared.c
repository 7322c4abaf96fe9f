/* SPDX-License-Identifier: GPL-2.0 */
/* What all servers of a namespace share, and what is of none of them. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "weir/abi/answer.h"

#include "datapath/listens.h"
#include "datapath/map_cursor.h"
#include "sys/object_id.h"
#include "sys/pins.h"

/* --- pins */

/* The directory may be gone, and with it the lock, which was on that one; or the bpffs was unmounted, or is read-only now. */
int datapath_directory_sync(struct datapath *dp, struct error *err)
{
	struct stat mine, there;
	int ret = pins_writable(dp->dir, err);

	if (ret)
		return ret;
	if (!fstat(dp->dir_fd, &mine) && !stat(dp->dir, &there) && mine.st_dev == there.st_dev &&
	    mine.st_ino == there.st_ino)
		return 0;
	if (pins_mount(dp->dir, NULL))
		return error_set(
			err, -ENOENT,
			"%s is on no bpffs any more, so what is in force ends with the agent: mount one there again "
			"(mount -t bpf bpf DIR), and the agent pins all anew",
			dp->dir);
	ret = pins_directory(dp->dir, err) ?: datapath_directory_lock(dp, err);
	if (!ret)
		dp->written.of[DATAPATH_pins].added++;
	return ret;
}

static int pin_sync(struct datapath *dp, const char *name, int fd, struct error *err)
{
	struct datapath_changes *written = &dp->written.of[DATAPATH_pins];
	char path[PATH_MAX];
	int ret;

	pins_path(path, dp->dir, "%s", name);
	CLEANUP_CLOSE int there = bpf_obj_get(path);
	/* Without a free descriptor the agent cannot look: that does not mean that somebody has changed it. */
	if (there == -EMFILE || there == -ENFILE)
		return error_set(err, there, "reading %s: %s", path, strerror(-there));
	if (there >= 0 && object_id(there) == object_id(fd))
		return 0;
	*(there >= 0 ? &written->changed : &written->added) += 1;
	ret = pins_replace(fd, dp->dir, name);
	return ret ? error_set(err, ret, "pinning %s: %s", path, strerror(-ret)) : 0;
}

static int pins_sync(struct datapath *dp, struct error *err)
{
	const struct {
		const char *name;
		int fd;
	} maps[] = {
#define X(name) { #name, dp->maps.name },
		DATAPATH_MAPS(X)
#undef X
	};
	int ret = datapath_directory_sync(dp, err);

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps) && !ret; i++)
		ret = pin_sync(dp, maps[i].name, maps[i].fd, err);
	for (int i = 0; i < DATAPATH_PROGRAMS_COUNT && !ret; i++)
		ret = dp->programs[i] < 0 ? 0 : pin_sync(dp, datapath_program_pin(i), dp->programs[i], err);
	return ret;
}

/* --- entries of no server */

struct strangers {
	const struct datapath_servers *servers;
	__u64 *dropped;
};

static bool is_stranger(const struct strangers *strangers, __u32 server)
{
	bool stranger = server >= WEIR_MAX_SERVERS || !strangers->servers->has[server];

	*strangers->dropped += stranger;
	return stranger;
}

static bool is_strange_listener(const void *key, const void *value, const void *arg)
{
	(void)key;
	return is_stranger(arg, *(const __u32 *)value);
}

static bool is_strange_network(const void *key, const void *value, const void *arg)
{
	(void)value;
	return is_stranger(arg, ((const struct weir_proxy_key *)key)->server);
}

static bool is_strange_subject(const void *key, const void *value, const void *arg)
{
	(void)value;
	return is_stranger(arg, ((const struct weir_subject_key *)key)->server);
}

static bool is_strange_override(const void *key, const void *value, const void *arg)
{
	(void)value;
	return is_stranger(arg, ((const struct weir_override_key *)key)->limit / WEIR_SERVER_LIMITS);
}

static bool is_strange_limit(const void *key, const void *value, const void *arg)
{
	(void)value;
	return is_stranger(arg, *(const __u32 *)key / WEIR_SERVER_LIMITS);
}

static bool is_strange_rule(const void *key, const void *value, const void *arg)
{
	(void)value;
	return is_stranger(arg, ((const struct weir_rules_key *)key)->server);
}

static bool is_strange_vector(const void *key, const void *value, const void *arg)
{
	(void)value;
	return is_stranger(arg, ((const struct weir_vector_key *)key)->server);
}

static bool is_strange_source(const void *key, const void *value, const void *arg)
{
	(void)value;
	return is_stranger(arg, ((const struct weir_source_key *)key)->server);
}

/* What of a port is of others stays. */
static int ports_clear(struct datapath *dp, const struct datapath_servers *servers)
{
	const struct strangers strangers = { servers, &dp->written.of[DATAPATH_ports].dropped };
	CLEANUP_PORTS const struct weir_port *ports = ports_map(dp);
	int ret = ports ? 0 : error_errno();

	for (__u32 port = 0; port < WEIR_PORTS && !ret; port++) {
		struct weir_port entry = ports[port];

		if (!entry.any || !is_stranger(&strangers, entry.any - 1))
			continue;
		entry.any = 0;
		ret = bpf_map_update_elem(dp->maps.ports, &port, &entry, BPF_ANY);
	}
	return ret;
}

static int maps_clear(struct datapath *dp, const struct datapath_servers *servers, struct error *err)
{
	const struct {
		enum datapath_part part;
		int fd;
		__u32 key_size, value_size;
		map_test *goes;
		bool trie;
	} maps[] = {
#define MAP(name, key, value, goes, trie) { DATAPATH_##name, dp->maps.name, sizeof(key), sizeof(value), goes, trie }
		MAP(listeners, struct weir_listener, __u32, is_strange_listener, false),
		MAP(proxies, struct weir_proxy_key, __u8, is_strange_network, true),
		MAP(balancers, struct weir_proxy_key, __u8, is_strange_network, true),
		MAP(addresses, struct weir_proxy_key, struct weir_principal, is_strange_network, true),
		MAP(groups, struct weir_subject_key, __u32, is_strange_subject, false),
		MAP(tokens, struct weir_subject_key, struct weir_principal, is_strange_subject, false),
		MAP(overrides, struct weir_override_key, struct weir_amount, is_strange_override, false),
		MAP(limits, __u32, struct weir_limit, is_strange_limit, false),
		MAP(refusals, __u32, struct weir_refusal, is_strange_limit, false),
		MAP(rules, struct weir_rules_key, struct weir_rules, is_strange_rule, false),
		MAP(vectors, struct weir_vector_key, struct weir_vector, is_strange_vector, false),
		MAP(sources, struct weir_source_key, struct weir_vector, is_strange_source, true),
#undef MAP
	};

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) {
		const struct strangers strangers = { servers, &dp->written.of[maps[i].part].dropped };
		int ret = (maps[i].trie ? map_drop_of_trie_if : map_drop_if)(
			maps[i].fd, maps[i].key_size, maps[i].value_size, maps[i].goes, &strangers);

		if (ret)
			return datapath_map_failed(err, ret, datapath_part_name(maps[i].part));
	}
	return 0;
}

static int strangers_clear(struct datapath *dp, const struct datapath_servers *servers, struct error *err)
{
	static const struct weir_server none;
	int ret = ports_clear(dp, servers);

	if (ret)
		return datapath_map_failed(err, ret, "ports");
	ret = maps_clear(dp, servers, err);
	for (__u32 slot = 0; slot < WEIR_MAX_SERVERS && !ret; slot++) {
		if (!servers->has[slot])
			ret = datapath_server_write(dp, slot, &none, err);
	}
	return ret;
}

int datapath_shared_sync(struct datapath *dp, const struct datapath_servers *servers, struct error *err)
{
	return datapath_settings_sync(dp, err)	      ?:
		       datapath_answers_fill(dp, err) ?:
		       pins_sync(dp, err)	      ?:
							strangers_clear(dp, servers, err);
}
