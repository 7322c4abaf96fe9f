/* SPDX-License-Identifier: GPL-2.0 */
/* What is kept of requests inside servers, and which processes are served: also where a change of them fails. */
#include "attached.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "datapath/inside_private.h"
#include "inside.skel.h"
#include "sys/pins.h"

static int requests; /* the map */

static void begin(__u32 process)
{
	const struct weir_inside_key key = { .process = process, .goroutine = 1 };
	void *nothing = calloc(1, bpf_map__value_size(dp->inside->skeleton->maps.inside_requests));

	assert_non_null(nothing);
	assert_int_equal(bpf_map_update_elem(requests, &key, nothing, BPF_NOEXIST), 0);
	free(nothing);
}

static bool is_kept(__u32 process)
{
	const struct weir_inside_key key = { .process = process, .goroutine = 1 };
	void *value = calloc(1, bpf_map__value_size(dp->inside->skeleton->maps.inside_requests));
	bool there;

	assert_non_null(value);
	there = !bpf_map_lookup_elem(requests, &key, value);
	free(value);
	return there;
}

/* However long ago a request began, and where nothing says yet when: it may be decided already, and would be once more. */
static void test_as_long_as_its_process(void **state)
{
	static const struct datapath_binary binary = { .fd = -1 };
	const struct datapath_process own = { .id = (__u32)getpid(), .binary = &binary };
	const __u32 other = own.id + 1;

	(void)state;
	done(datapath_inside_sync(dp, &own, 1, &error));
	requests = bpf_map__fd(dp->inside->skeleton->maps.inside_requests);
	begin(own.id);
	begin(other);
	done(datapath_inside_sweep(dp, &error));
	assert_true(is_kept(own.id));
	assert_false(is_kept(other));
	done(datapath_inside_sync(dp, NULL, 0, &error));
}

static const struct datapath_binary no_probes = { .fd = -1 };

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
	done(datapath_inside_sync(dp, NULL, 0, &error));
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
	done(datapath_inside_sync(dp, NULL, 0, &error));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(as_long_as_its_process),
		TEST(too_many_processes),
		TEST(a_switch_that_fails),
	};

	return cmocka_run_group_tests_name("requests inside servers", tests, attached_open, attached_close);
}
