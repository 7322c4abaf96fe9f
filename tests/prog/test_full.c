/* SPDX-License-Identifier: GPL-2.0 */
/* A limit that cannot have a bucket for its subject: the request passes, or is refused. */
#include "attached.h"

#include <bpf/bpf.h>
#include <string.h>

static const struct spec request = { .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = get_a };

static void setup_full(__u32 flags)
{
	__u32 index = weir_limit_index(0, WEIR_BUILTIN_USER);

	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | flags, &error));
	connect_ends(false);
	limit(WEIR_BUILTIN_TOTAL, "0", 5);
	limit(WEIR_BUILTIN_USER, "0", 5);
	assert_int_equal(bpf_map_delete_elem(dp->maps.buckets, &index), 0);
}

static void test_open(void **state)
{
	(void)state;
	setup_full(0);
	assert_untouched(ingress, &request);
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(counter(WEIR_BUCKET_MAP_FULL), 1);
}

static __u64 total_passed(void)
{
	struct datapath_subject_use top = {};

	done(datapath_top(dp, 0, &top, 1, &error));
	return top.passed;
}

static void test_closed(void **state)
{
	struct seen seen;

	(void)state;
	setup_full(WEIR_SERVER_FULL_REFUSES);
	assert_int_equal(run(ingress, &request), PASS);
	assert_answer(&seen, "1", true);
	assert_int_equal(counter(WEIR_PASSED), 0);
	assert_int_equal(counter(WEIR_SHED), 1);
	assert_int_equal(counter(WEIR_SHED_USER), 1);
	assert_int_equal(counter(WEIR_SHED_TOTAL), 0);
	assert_int_equal(counter(WEIR_BUCKET_MAP_FULL), 1);
	/* The limit that admitted got its token back. */
	assert_int_equal(total_passed(), 0);
}

static void test_closed_in_a_dry_run(void **state)
{
	(void)state;
	setup_full(WEIR_SERVER_FULL_REFUSES | WEIR_SERVER_DRY_RUN);
	assert_untouched(ingress, &request);
	assert_int_equal(counter(WEIR_PASSED), 1);
	assert_int_equal(counter(WEIR_BUCKET_MAP_FULL), 1);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		TEST(open),
		TEST(closed),
		TEST(closed_in_a_dry_run),
	};

	return cmocka_run_group_tests_name("full", tests, attached_open, attached_close);
}
