/* SPDX-License-Identifier: GPL-2.0 */
/* Opening: the BPF object on the maps that are pinned already, or on new ones. */
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "weir/conn/conn.h"

#include "datapath/private.h"
#include "sys/libbpf_log.h"
#include "sys/pins.h"
#include "sys/privilege.h"
#include "weir.skel.h"

int datapath_map_failed(struct error *err, int code, const char *map)
{
	return error_set(err, code, "map %s: %s", map, strerror(-code));
}

/* The version is read before anything else: maps of another version may differ in everything. */
static int version_check(const char *dir, int settings_fd, const struct bpf_map_info *info, struct error *err)
{
	struct weir_settings settings = {};
	__u32 zero = 0;

	if (info->value_size == sizeof(settings) && bpf_map_lookup_elem(settings_fd, &zero, &settings))
		return error_set(err, -errno, "reading %s/settings: %s", dir, strerror(errno));
	if (info->value_size == sizeof(settings) && (!settings.abi_version || settings.abi_version == WEIR_ABI_VERSION))
		return 0;
	return error_set(err, -EPROTO,
			 "the maps in %s were made by another version of weir (ABI %u, this one has %u): "
			 "detach with that version, or use \"weir uninstall --force\"",
			 dir, settings.abi_version, WEIR_ABI_VERSION);
}

static int size_check(const struct datapath *dp, const struct bpf_map *map, const struct bpf_map_info *info,
		      struct error *err)
{
	const char *name = bpf_map__name(map);

	if (info->type != bpf_map__type(map) || info->key_size != bpf_map__key_size(map) ||
	    info->value_size != bpf_map__value_size(map) || info->map_flags != bpf_map__map_flags(map))
		return error_set(err, -EPROTO,
				 "the map %s/%s was made by another version of weir: detach with that version, "
				 "or end all at once by \"weir uninstall --force\"",
				 dp->dir, name);
	if (info->max_entries != bpf_map__max_entries(map))
		return error_set(err, -EPROTO,
				 "the map %s/%s holds %u entries, %u are asked for: detach all servers first", dp->dir,
				 name, info->max_entries, bpf_map__max_entries(map));
	return 0;
}

/* The maps that have an entry for each connection, or for one of so many. */
#define CONNS_MAPS(X) X(conns, 1) X(busy, 1) X(resting, 1) X(finished, 1) X(lingering, WEIR_LINGERING_SHARE)

void datapath_conns_max_set(struct weir_bpf *skeleton, __u32 conns_max)
{
#define X(name, share) bpf_map__set_max_entries(skeleton->maps.name, (conns_max + (share)-1) / (share));
	CONNS_MAPS(X)
#undef X
}

static bool is_of_connections(const struct weir_bpf *skeleton, const struct bpf_map *map)
{
#define X(name, share) map == skeleton->maps.name ||
	return CONNS_MAPS(X) false;
#undef X
}

int datapath_map_pinned(const char *dir, const char *name, struct bpf_map_info *info, struct error *err)
{
	struct bpf_map_info there = {};
	__u32 length = sizeof(there);
	char path[PATH_MAX];
	int fd, ret;

	pins_path(path, dir, "%s", name);
	fd = bpf_obj_get(path);
	if (fd == -ENOENT)
		return fd;
	ret = fd < 0 ? fd : bpf_obj_get_info_by_fd(fd, &there, &length);
	if (!ret) {
		*info = there;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return error_set(err, ret, "opening %s: %s", path, strerror(-ret));
}

int datapath_version_check(const char *dir, struct error *err)
{
	struct bpf_map_info info = {};
	CLEANUP_CLOSE int fd = datapath_map_pinned(dir, "settings", &info, err);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	return version_check(dir, fd, &info, err);
}

/* conns_max 0: a pinned map's own size is taken as it is. */
static int map_reuse(struct datapath *dp, struct bpf_map *map, __u32 conns_max, struct error *err)
{
	const char *name = bpf_map__name(map);
	struct bpf_map_info info = {};
	CLEANUP_CLOSE int fd = datapath_map_pinned(dp->dir, name, &info, err);
	int ret;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (map == dp->skeleton->maps.settings) {
		ret = version_check(dp->dir, fd, &info, err);
		if (ret)
			return ret;
	}
	if (is_of_connections(dp->skeleton, map) && !conns_max)
		bpf_map__set_max_entries(map, info.max_entries);
	ret = size_check(dp, map, &info, err);
	if (ret)
		return ret;
	ret = bpf_map__reuse_fd(map, fd);
	return ret ? error_set(err, ret, "taking over %s/%s: %s", dp->dir, name, strerror(-ret)) : 0;
}

int datapath_map_pin(const struct datapath *dp, const struct bpf_map *map, struct error *err)
{
	char path[PATH_MAX];
	int ret;

	pins_path(path, dp->dir, "%s", bpf_map__name(map));
	ret = bpf_obj_pin(bpf_map__fd(map), path);
	return ret && ret != -EEXIST ? error_set(err, ret, "pinning %s: %s", path, strerror(-ret)) : 0;
}

/* The skeleton's maps, each pinned one in its place. */
static int maps_reuse(struct datapath *dp, __u32 conns_max, struct error *err)
{
	struct bpf_map *const maps[] = {
#define X(name) dp->skeleton->maps.name,
		DATAPATH_MAPS(X)
#undef X
	};
	int ret = 0;

	datapath_conns_max_set(dp->skeleton, conns_max ?: WEIR_DEFAULT_CONNS);
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps) && !ret; i++)
		ret = map_reuse(dp, maps[i], conns_max, err);
	return ret;
}

static int maps_pin(struct datapath *dp, struct error *err)
{
	int ret = 0;

#define X(name) ret = ret ?: datapath_map_pin(dp, dp->skeleton->maps.name, err);
	DATAPATH_MAPS(X)
#undef X
	return ret;
}

static void maps_note(struct datapath *dp)
{
#define X(name) dp->maps.name = bpf_map__fd(dp->skeleton->maps.name);
	DATAPATH_MAPS(X)
#undef X
}

int datapath_load_failed(int code, struct error *err)
{
	const char *program = libbpf_log_refused(), *why = libbpf_log_verifier();
	struct utsname kernel;

	if (code == -EPERM && !*why)
		return error_set(
			err, code,
			"the kernel refuses bpf(): weir needs root of the machine itself (CAP_BPF, CAP_NET_ADMIN), and no "
			"seccomp filter that forbids it");
	if (code == -EMFILE)
		return error_set(
			err, code,
			"loading the BPF programs: the agent may open too few files: give it more (LimitNOFILE= of its "
			"unit, ulimit -Hn)");
	if (!program)
		return error_set(err, code, "loading the BPF programs: %s", libbpf_log_failure());
	uname(&kernel);
	return error_set(err, code,
			 "this kernel (%s) refuses the program %s: %s%s%s (WEIR_DEBUG=1 weir agent shows all)",
			 kernel.release, program, strerror(-code), *why ? ": " : "", why);
}

bool datapath_hold_refused(void)
{
	const char *refused = libbpf_log_refused();

	return refused && (!strcmp(refused, "weir_hold") || !strcmp(refused, "weir_sockops"));
}

void datapath_hold_wanted(struct weir_bpf *skeleton, bool wanted)
{
	bpf_program__set_autoload(skeleton->progs.weir_hold, wanted);
	bpf_program__set_autoload(skeleton->progs.weir_sockops, wanted);
}

static int load(struct datapath *dp, __u32 conns_max, bool hold, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_LOAD);
	int ret = datapath_object_open(&dp->skeleton, err) ?: maps_reuse(dp, conns_max, err);
	bool anew;

	if (ret)
		return ret;
	anew = !datapath_programs_find(dp);
	bpf_program__set_autoload(dp->skeleton->progs.weir_egress, anew);
	bpf_program__set_autoload(dp->skeleton->progs.weir_ingress, anew);
	datapath_hold_wanted(dp->skeleton, anew && hold);
	bpf_program__set_autoload(dp->skeleton->progs.weir_explain, false);
	ret = weir_bpf__load(dp->skeleton);
	return ret ? datapath_load_failed(ret, err) : 0;
}

/* Requests that can be read are limited without what is at the sockets. */
int datapath_maps_load(struct datapath *dp, __u32 conns_max, struct error *err)
{
	struct error why = { 0 };
	int ret = load(dp, conns_max, true, &why);

	if (ret && datapath_hold_refused()) {
		dp->no_hold = why;
		weir_bpf__destroy(dp->skeleton);
		dp->skeleton = NULL;
		return load(dp, conns_max, false, err);
	}
	return ret ? error_set(err, ret, "%s", why.text) : 0;
}

/* How large the table of connections is; what is in it has been counted since it was made. */
static int table_fill(struct datapath *dp, struct error *err)
{
	__u32 zero = 0, max = datapath_conns_max(dp);
	struct weir_table table = { .max = max, .share = weir_table_share(max) }, there;

	if (bpf_map_lookup_elem(dp->maps.table, &zero, &there))
		return datapath_map_failed(err, -errno, "table");
	if (!there.max && bpf_map_update_elem(dp->maps.table, &zero, &table, BPF_ANY))
		return datapath_map_failed(err, -errno, "table");
	return 0;
}

int datapath_maps_share(const struct datapath *dp, struct bpf_object *with)
{
	struct bpf_map *map;

	bpf_object__for_each_map (map, with) {
		const struct bpf_map *there = bpf_object__find_map_by_name(dp->skeleton->obj, bpf_map__name(map));
		bool shared = there && bpf_map__autocreate(there) && !bpf_map__is_internal(map);
		int ret = shared ? bpf_map__reuse_fd(map, bpf_map__fd(there)) : 0;

		if (ret)
			return ret;
	}
	return 0;
}

#define CONNS_ALONE 16 /* there will be none */

int datapath_maps_alone(struct datapath *dp, struct error *err)
{
	CLEANUP_PRIVILEGED struct privileged privileged = privilege_begin(PRIVILEGE_LOAD);
	int ret = datapath_object_open(&dp->skeleton, err);
	struct bpf_program *program;

	if (ret)
		return ret;
	bpf_object__for_each_program (program, dp->skeleton->obj)
		bpf_program__set_autoload(program, false);
	datapath_conns_max_set(dp->skeleton, CONNS_ALONE);
	ret = weir_bpf__load(dp->skeleton);
	if (ret)
		return datapath_load_failed(ret, err);
	maps_note(dp);
	return datapath_settings_fill(dp, err);
}

int datapath_maps_keep(struct datapath *dp, struct error *err)
{
	maps_note(dp);
	return maps_pin(dp, err)	      ?:
		       datapath_settings_fill(dp, err) ?:
		       table_fill(dp, err)    ?:
		       datapath_limits_changed(dp, err) ?: /* an agent before may have ended just after a change */
		       datapath_answers_fill(dp, err);
}

__u32 datapath_conns_max(const struct datapath *dp)
{
	return bpf_map__max_entries(dp->skeleton->maps.conns);
}
