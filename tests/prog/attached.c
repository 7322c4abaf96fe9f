/* SPDX-License-Identifier: GPL-2.0 */
#include "attached.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../array_size.h"
#include "base/rate.h"
#include "datapath/inside_private.h"
#include "inside.skel.h"
#include "weir.skel.h"

struct datapath *dp;
int ingress, egress;
struct packet packet;

const char get_a[] = "GET /api/v1/namespaces/a/pods HTTP/1.1\r\nHost: x\r\n\r\n";
const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/* Arrays that programs count in; the other maps of theirs are emptied. */
static void map_zero(int fd, const struct bpf_map_info *map)
{
	CLEANUP_FREE __u32 *keys = calloc(map->max_entries, sizeof(*keys));
	CLEANUP_FREE void *none = calloc(map->max_entries, map->value_size);
	__u32 n = map->max_entries;

	assert_non_null(keys);
	assert_non_null(none);
	for (__u32 i = 0; i < n; i++)
		keys[i] = i;
	assert_int_equal(bpf_map_update_batch(fd, keys, none, &n, NULL), 0);
}

static void map_empty(int fd)
{
	struct bpf_map_info map = {};
	__u32 length = sizeof(map);
	__u8 key[128];

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &map, &length), 0);
	assert_true(map.key_size <= sizeof(key));
	if (map.type == BPF_MAP_TYPE_ARRAY) {
		map_zero(fd, &map);
		return;
	}
	while (!bpf_map_get_next_key(fd, NULL, key))
		assert_int_equal(bpf_map_delete_elem(fd, key), 0);
}

static void queue_empty(int fd)
{
	__u8 value[128];

	while (!bpf_map_lookup_and_delete_elem(fd, NULL, value))
		;
}

static struct {
	const char *path;
	int (*tests)(void);
} files[64];
static size_t n_files;
static int users; /* of the loaded programs */

void attached_file(const char *path, int (*tests)(void))
{
	if (n_files == ARRAY_SIZE(files))
		abort();
	files[n_files].path = path;
	files[n_files++].tests = tests;
}

int attached_open(void **state)
{
	return users++ ? 0 : namespaces_setup(state) ?: datapath_setup((void **)&dp);
}

int attached_close(void **state)
{
	(void)state;
	if (dp->inside)
		done(datapath_inside_sync(dp, NULL, 0, &error));
	return --users ? 0 : datapath_teardown((void **)&dp);
}

static bool is_asked_for(const char *path, char **names)
{
	const char *file = strrchr(path, '/') + 1;

	for (char **name = names; *name; name++) {
		if (strlen(file) == strlen(*name) + 2 && !strncmp(file, *name, strlen(*name)))
			return true;
	}
	return !*names;
}

int attached_run(char **names)
{
	int failed = attached_open(NULL);

	for (size_t i = 0; i < n_files; i++) {
		if (is_asked_for(files[i].path, names))
			failed += files[i].tests();
	}
	return failed + attached_close(NULL);
}

int attached_setup(void **state)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 65536 };

	weir_reading_default(&server.reading);
	*state = dp;
	ingress = bpf_program__fd(dp->skeleton->progs.weir_ingress);
	egress = bpf_program__fd(dp->skeleton->progs.weir_egress);
	done(datapath_server_set(dp, 0, &server, &listen, 1, NULL, 0, &error));
	return 0;
}

void look_into_nobody(void)
{
	static const struct datapath_binary no_probes = { .fd = -1 };
	static const struct datapath_process nobody = { .id = UINT32_MAX, .binary = &no_probes };
	struct bpf_map *map;

	done(datapath_inside_sync(dp, &nobody, 1, &error));
	bpf_object__for_each_map (map, dp->inside->skeleton->obj) {
		if (!strncmp(bpf_map__name(map), "inside_", 7) && !bpf_map__is_internal(map) &&
		    map != dp->inside->skeleton->maps.inside_processes)
			map_empty(bpf_map__fd(map));
	}
}

static void record_drop(void *arg, const struct weir_trace_record *record)
{
	(void)arg;
	(void)record;
}

int attached_teardown(void **state)
{
	static const struct datapath_servers none = {};
	int emptied[] = { dp->maps.conns, dp->maps.busy,      dp->maps.lingering, dp->maps.resting,
			  dp->maps.names, dp->maps.widths,    dp->maps.in_flight, dp->maps.admitted,
			  dp->maps.table, dp->maps.newcomers, dp->maps.holders,	  dp->maps.boxes };

	(void)state;
	done(datapath_server_clear(dp, 0, &error));
	for (size_t i = 0; i < sizeof(emptied) / sizeof(*emptied); i++)
		map_empty(emptied[i]);
	queue_empty(dp->maps.finished);
	while (datapath_trace_read(dp, record_drop, NULL))
		;
	done(datapath_shared_sync(dp, &none, &error));
	return 0;
}

void limit(enum weir_builtin_limit builtin, const char *qps, __u64 burst)
{
	__u64 per_ns;

	assert_int_equal(weir_qps_parse(qps, &per_ns), 0);
	done(limit_set(dp, 0, builtin, per_ns, burst, 0));
}

__u64 counter(enum weir_reason reason)
{
	__u64 counters[WEIR_REASON_COUNT];

	done(datapath_counters(dp, 0, counters, &error));
	return counters[reason];
}

void connect_ends(bool ipv6)
{
	struct weir_conn c = {};
	struct weir_flow flow;

	packet_flow(ipv6, &flow);
	weir_conn_open(&c, 0, WEIR_PHASE_FOLLOWED, CLIENT_NEXT, SERVER_NEXT, 501);
	c.splice.told = SERVER_NEXT;
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, &flow, &c, BPF_ANY), 0);
}

struct weir_conn conn_look(bool ipv6)
{
	struct weir_flow flow;
	struct weir_conn c;

	packet_flow(ipv6, &flow);
	assert_int_equal(bpf_map_lookup_elem(dp->maps.conns, &flow, &c), 0);
	return c;
}

int run(int program, const struct spec *spec)
{
	packet_build(&packet, spec);
	return packet_run(program, &packet);
}

void assert_untouched(int program, const struct spec *spec)
{
	struct packet before;

	packet_build(&before, spec);
	assert_int_equal(run(program, spec), PASS);
	assert_int_equal(packet.length, before.length);
	assert_memory_equal(packet.bytes, before.bytes, before.length);
}

void assert_answer(struct seen *seen, const char *retry, bool body)
{
	char want[64];

	packet_see(&packet, seen);
	assert_true(seen->from_server);
	snprintf(want, sizeof(want), "\r\nRetry-After: %s\r\n", retry);
	assert_memory_equal(seen->text, "HTTP/1.1 429 Too Many Requests\r\n", 32);
	assert_non_null(memmem(seen->text, seen->n_text, want, strlen(want)));
	if (body)
		assert_memory_equal(seen->text + seen->n_text - 12, "\"code\":429}\n", 12);
	else
		assert_memory_equal(seen->text + seen->n_text - 4, "\r\n\r\n", 4);
}
