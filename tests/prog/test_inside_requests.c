/* SPDX-License-Identifier: GPL-2.0 */
/* What is kept of requests inside servers: who deletes it. */
#include "attached.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <unistd.h>

#include "datapath/inside_private.h"
#include "inside.skel.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(as_long_as_its_process),
	};

	return cmocka_run_group_tests_name("requests inside servers", tests, attached_open, attached_close);
}
