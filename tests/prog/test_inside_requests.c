/* SPDX-License-Identifier: GPL-2.0 */
/* What is kept of requests inside servers, and which processes are served: also where a change of them fails. */
#include "attached.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "datapath/inside_private.h"
#include "inside.skel.h"
#include "sys/pins.h"

static int requests; /* the map */

/* handed: it is decided, and API Priority and Fairness has what it is to execute. */
static void begin(__u32 process, __u64 goroutine, bool handed)
{
	const struct weir_inside_key key = { .process = process, .goroutine = goroutine };
	const size_t size = bpf_map__value_size(dp->inside->skeleton->maps.inside_requests);
	void *value = calloc(1, size);

	assert_non_null(value);
	memset(value, handed, size);
	assert_int_equal(bpf_map_update_elem(requests, &key, value, BPF_NOEXIST), 0);
	free(value);
}

static bool is_kept(__u32 process, __u64 goroutine)
{
	const struct weir_inside_key key = { .process = process, .goroutine = goroutine };
	void *value = calloc(1, bpf_map__value_size(dp->inside->skeleton->maps.inside_requests));
	bool there;

	assert_non_null(value);
	there = !bpf_map_lookup_elem(requests, &key, value);
	free(value);
	return there;
}

static const struct datapath_binary no_probes = { .fd = -1 };

/* However long ago a request began, and where nothing says yet when: it may be decided already, and would be once more. */
static void test_as_long_as_its_process(void **state)
{
	const struct datapath_process own = { .id = (__u32)getpid(), .binary = &no_probes };
	const __u32 other = own.id + 1;

	(void)state;
	done(datapath_inside_sync(dp, &own, 1, &error));
	requests = bpf_map__fd(dp->inside->skeleton->maps.inside_requests);
	begin(own.id, 1, false);
	begin(other, 1, false);
	done(datapath_inside_sweep(dp, &error));
	assert_true(is_kept(own.id, 1));
	assert_false(is_kept(other, 1));
	look_into_nobody();
}

/* A verdict is over where nothing is refused any more: back in `answer`, it would be that of its goroutine's next request. */
static void test_a_verdict_ends_with_the_refusing(void **state)
{
	struct datapath_process own = { .id = (__u32)getpid(),
					.process.layout.refuses = WEIR_INSIDE_REFUSES_LATER,
					.binary = &no_probes };

	(void)state;
	done(datapath_inside_sync(dp, &own, 1, &error));
	requests = bpf_map__fd(dp->inside->skeleton->maps.inside_requests);
	begin(own.id, 1, true);
	begin(own.id, 2, false);
	done(datapath_inside_sweep(dp, &error));
	assert_true(is_kept(own.id, 1));
	own.process.layout.refuses = WEIR_INSIDE_REFUSES_NOWHERE;
	done(datapath_inside_sync(dp, &own, 1, &error));
	assert_false(is_kept(own.id, 1));
	assert_true(is_kept(own.id, 2));
	look_into_nobody();
}

/* The generation of the programs that serve a process; 0: none do. */
static __u32 served_by(__u32 process)
{
	struct weir_inside_process there;
	int fd = bpf_map__fd(dp->inside->skeleton->maps.inside_processes);

	return bpf_map_lookup_elem(fd, &process, &there) ? 0 : there.generation;
}

/* The first of what a generation has pinned. */
static bool is_pinned(const struct datapath_inside *inside)
{
	char path[PATH_MAX];

	pins_path(path, dp->dir, "inside-%08x-0", inside->generation);
	return !access(path, F_OK);
}

/* All of them are served, or those of before: here there is no room for the last one. */
static void test_too_many_processes(void **state)
{
	CLEANUP_FREE struct datapath_process *many = calloc(WEIR_MAX_INSIDE_PROCESSES + 1, sizeof(*many));

	(void)state;
	assert_non_null(many);
	for (__u32 i = 0; i <= WEIR_MAX_INSIDE_PROCESSES; i++)
		many[i] = (struct datapath_process){ .id = i + 1, .process.start = 2, .binary = &no_probes };
	many[7].process.start = 1;
	done(datapath_inside_sync(dp, &many[7], 1, &error));
	many[7].process.start = 2;
	assert_int_equal(datapath_inside_sync(dp, many, WEIR_MAX_INSIDE_PROCESSES + 1, &error), -E2BIG);
	assert_int_equal(served_by(many[7].id), dp->inside->generation);
	assert_int_equal(served_by(many[6].id), 0);
	assert_int_equal(served_by(many[8].id), 0);
	look_into_nobody();
}

/* Other programs are to take over, and one of their probes cannot be attached: the earlier ones go on. */
static void test_a_switch_that_fails(void **state)
{
	const struct datapath_binary nowhere = { .fd = -1, .probes = { { .point = WEIR_INSIDE_HTTP } }, .n_probes = 1 };
	struct datapath_process own = { .id = (__u32)getpid(), .binary = &no_probes };
	const struct datapath_inside *before;

	(void)state;
	done(datapath_inside_sync(dp, &own, 1, &error));
	before = dp->inside;
	dp->inside->writes = true;
	own.binary = &nowhere;
	assert_true(datapath_inside_sync(dp, &own, 1, &error) < 0);
	assert_ptr_equal(dp->inside, before);
	assert_int_equal(served_by(own.id), before->generation);
	assert_true(is_pinned(before));
	own.binary = &no_probes;
	done(datapath_inside_sync(dp, &own, 1, &error));
	assert_ptr_not_equal(dp->inside, before);
	assert_int_equal(served_by(own.id), dp->inside->generation);
	assert_true(is_pinned(dp->inside));
	look_into_nobody();
}

/* A map of a build that had fewer places is taken as it is: what its programs serve is handed over in one step, in the same map. */
static void test_fewer_places(void **state)
{
	struct datapath_process own = { .id = (__u32)getpid(), .binary = &no_probes };
	struct weir_inside_process there = { .generation = 1 };
	LIBBPF_OPTS(bpf_map_create_opts, no_prealloc, .map_flags = BPF_F_NO_PREALLOC);
	CLEANUP_CLOSE int earlier = bpf_map_create(BPF_MAP_TYPE_HASH, NULL, sizeof(own.id), sizeof(there), 16,
						   &no_prealloc);
	char path[PATH_MAX];

	(void)state;
	assert_true(earlier >= 0);
	assert_int_equal(bpf_map_update_elem(earlier, &own.id, &there, BPF_ANY), 0);
	done(datapath_inside_sync(dp, NULL, 0, &error));
	pins_path(path, dp->dir, "inside_processes");
	assert_int_equal(bpf_obj_pin(earlier, path), 0);
	done(datapath_inside_sync(dp, &own, 1, &error));
	assert_int_equal(bpf_map_lookup_elem(earlier, &own.id, &there), 0);
	assert_int_equal(there.generation, dp->inside->generation);
	assert_int_equal(bpf_map__max_entries(dp->inside->skeleton->maps.inside_processes), 16);
	done(datapath_inside_sync(dp, NULL, 0, &error));
	done(datapath_inside_sync(dp, &own, 1, &error));
	assert_int_equal(bpf_map__max_entries(dp->inside->skeleton->maps.inside_processes), WEIR_MAX_INSIDE_PROCESSES);
	look_into_nobody();
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(as_long_as_its_process), TEST(a_verdict_ends_with_the_refusing),
		TEST(too_many_processes),     TEST(a_switch_that_fails),
		TEST(fewer_places),
	};

	return cmocka_run_group_tests_name("requests inside servers", tests, attached_open, attached_close);
}
