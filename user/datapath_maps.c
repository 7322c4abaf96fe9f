/* SPDX-License-Identifier: GPL-2.0 */
/* Opening: the BPF object on the maps that are pinned already, or on new ones. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>

#include "weir/ambiguity.h"
#include "weir/answer.h"
#include "weir/conn.h"

#include "answer_text.h"
#include "datapath_private.h"
#include "pins.h"
#include "weir.skel.h"

static char said[256];

/* Keeps the first line that is about a failure: those after it tell of its consequences. */
static int listen_to_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[sizeof(said)];
	va_list again;

	if (getenv("WEIR_DEBUG")) {
		va_copy(again, args);
		vfprintf(stderr, format, again);
		va_end(again);
	}
	if (level != LIBBPF_WARN || said[0])
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = 0;
	if (!strstr(line, "Retrying"))
		strcpy(said, line);
	return 0;
}

void libbpf_listen(void)
{
	said[0] = 0;
	libbpf_set_print(listen_to_libbpf);
}

const char *libbpf_said(void)
{
	return said[0] ? said : "libbpf did not say why";
}

int datapath_map_failed(struct error *err, int code, const char *map)
{
	return error_set(err, code, "map %s: %s", map, strerror(-code));
}

/* The version is read before anything else: maps of another version may differ in everything. */
static int version_check(const struct datapath *dp, int settings_fd, const struct bpf_map_info *info, struct error *err)
{
	struct weir_settings settings = {};
	__u32 zero = 0;

	if (info->value_size == sizeof(settings) && bpf_map_lookup_elem(settings_fd, &zero, &settings))
		return error_set(err, -errno, "reading %s/settings: %s", dp->dir, strerror(errno));
	if (info->value_size == sizeof(settings) && (!settings.abi_version || settings.abi_version == WEIR_ABI_VERSION))
		return 0;
	return error_set(err, -EPROTO,
			 "the maps in %s were made by another version of weir (ABI %u, this one has %u): "
			 "detach with that version, or remove them (rm -r %s)",
			 dp->dir, settings.abi_version, WEIR_ABI_VERSION, dp->dir);
}

static int size_check(const struct datapath *dp, const struct bpf_map *map, const struct bpf_map_info *info,
		      struct error *err)
{
	const char *name = bpf_map__name(map);

	if (info->type != bpf_map__type(map) || info->key_size != bpf_map__key_size(map) ||
	    info->value_size != bpf_map__value_size(map) || info->map_flags != bpf_map__map_flags(map))
		return error_set(err, -EPROTO,
				 "the map %s/%s was made by another version of weir: detach with that version, "
				 "or remove it and its neighbours (rm -r %s)",
				 dp->dir, name, dp->dir);
	if (info->max_entries != bpf_map__max_entries(map))
		return error_set(err, -EPROTO,
				 "the map %s/%s holds %u entries, %u are asked for: detach all servers first", dp->dir,
				 name, info->max_entries, bpf_map__max_entries(map));
	return 0;
}

/* conns_max 0: a pinned map's own size is taken as it is. */
static int map_reuse(struct datapath *dp, struct bpf_map *map, __u32 conns_max, struct error *err)
{
	const char *name = bpf_map__name(map);
	struct bpf_map_info info = {};
	__u32 length = sizeof(info);
	char path[PATH_MAX];
	int ret;

	pins_path(path, dp->dir, "%s", name);
	CLEANUP_CLOSE int fd = bpf_obj_get(path);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &length))
		return error_set(err, -errno, "opening %s: %s", path, strerror(errno));
	if (map == dp->skeleton->maps.settings) {
		ret = version_check(dp, fd, &info, err);
		if (ret)
			return ret;
	}
	if (map == dp->skeleton->maps.conns && !conns_max)
		bpf_map__set_max_entries(map, info.max_entries);
	ret = size_check(dp, map, &info, err);
	if (ret)
		return ret;
	ret = bpf_map__reuse_fd(map, fd);
	return ret ? error_set(err, ret, "taking over %s: %s", path, strerror(-ret)) : 0;
}

static int map_pin(const struct datapath *dp, const struct bpf_map *map, struct error *err)
{
	char path[PATH_MAX];
	int ret;

	pins_path(path, dp->dir, "%s", bpf_map__name(map));
	ret = bpf_obj_pin(bpf_map__fd(map), path);
	return ret && ret != -EEXIST ? error_set(err, ret, "pinning %s: %s", path, strerror(-ret)) : 0;
}

static int load(struct datapath *dp, struct error *err)
{
	int ret = weir_bpf__load(dp->skeleton);

	if (ret == -EPERM)
		return error_set(err, ret, "the kernel refuses bpf(): weir needs root (CAP_BPF, CAP_NET_ADMIN): %s",
				 libbpf_said());
	return ret ? error_set(err, ret, "loading the BPF programs: %s", libbpf_said()) : 0;
}

static int settings_fill(struct datapath *dp, struct error *err)
{
	struct weir_settings settings;
	__u32 zero = 0;

	if (bpf_map_lookup_elem(dp->maps.settings, &zero, &settings))
		return datapath_map_failed(err, -errno, "settings");
	if (!settings.abi_version) {
		settings.abi_version = WEIR_ABI_VERSION;
		settings.netns_cookie = dp->netns_cookie;
		if (getrandom(settings.seed, sizeof(settings.seed), 0) != sizeof(settings.seed) ||
		    bpf_map_update_elem(dp->maps.settings, &zero, &settings, BPF_ANY))
			return datapath_map_failed(err, -errno, "settings");
	}
	memcpy(dp->seed, settings.seed, sizeof(dp->seed));
	return 0;
}

/* What is right already is not written again: a program may be copying it. */
static int answer_fill(struct datapath *dp, __u32 index, const struct weir_answer *answer, struct error *err)
{
	struct weir_answer there;

	if (!bpf_map_lookup_elem(dp->maps.answers, &index, &there) && !memcmp(answer, &there, sizeof(there)))
		return 0;
	if (bpf_map_update_elem(dp->maps.answers, &index, answer, BPF_ANY))
		return datapath_map_failed(err, -errno, "answers");
	return 0;
}

static int answers_fill(struct datapath *dp, struct error *err)
{
	struct weir_answer answer;
	int ret = 0;

	for (__u32 kind = 0; kind < WEIR_ANSWER_KINDS; kind++) {
		for (__u32 digits = 1; digits <= WEIR_RETRY_DIGITS && !ret; digits++) {
			ret = weir_answer_make(kind, digits, &answer);
			if (ret)
				return error_set(err, ret, "making the 429s: %s", strerror(-ret));
			ret = answer_fill(dp, weir_answer_index(kind, digits), &answer, err);
		}
	}
	return ret;
}

static int rejections_fill(struct datapath *dp, struct error *err)
{
	struct weir_answer answer;
	int ret = 0;

	for (enum weir_reason why = 0; why < WEIR_REASON_COUNT && !ret; why++) {
		if (!weir_reason_is_ambiguity(why, false))
			continue;
		ret = weir_rejection_make(why, &answer);
		if (ret)
			return error_set(err, ret, "making the 400s: %s", strerror(-ret));
		ret = answer_fill(dp, weir_rejection_index(why), &answer, err);
	}
	return ret;
}

int datapath_maps_open(struct datapath *dp, __u32 conns_max, struct error *err)
{
	int ret;

	libbpf_listen();
	dp->skeleton = weir_bpf__open();
	if (!dp->skeleton)
		return error_set(err, -errno, "opening the BPF object: %s", libbpf_said());

	struct bpf_map *const maps[] = {
#define X(name) dp->skeleton->maps.name,
		DATAPATH_MAPS(X)
#undef X
	};
	const size_t n = sizeof(maps) / sizeof(*maps);

	bpf_map__set_max_entries(dp->skeleton->maps.conns, conns_max ?: WEIR_DEFAULT_CONNS);
	for (size_t i = 0; i < n; i++) {
		ret = map_reuse(dp, maps[i], conns_max, err);
		if (ret)
			return ret;
	}
	ret = load(dp, err);
	for (size_t i = 0; i < n && !ret; i++)
		ret = map_pin(dp, maps[i], err);
	if (ret)
		return ret;
#define X(name) dp->maps.name = bpf_map__fd(dp->skeleton->maps.name);
	DATAPATH_MAPS(X)
#undef X
	return settings_fill(dp, err) ?: answers_fill(dp, err) ?: rejections_fill(dp, err);
}

__u32 datapath_conns_max(const struct datapath *dp)
{
	return bpf_map__max_entries(dp->skeleton->maps.conns);
}
