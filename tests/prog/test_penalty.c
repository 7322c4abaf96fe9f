/* SPDX-License-Identifier: GPL-2.0 */
/* Penalties of who does not wait, packet by packet. */
#include "weir/limit/penalty.h"

#include "limited.h"

#include <bpf/bpf.h>
#include <string.h>

static struct weir_kept kept(void)
{
	__u32 index = weir_limit_index(0, SLOT), id;
	struct weir_kept value = {};
	__u64 subject = 0;

	assert_int_equal(bpf_map_lookup_elem(dp->maps.buckets, &index, &id), 0);
	CLEANUP_CLOSE int fd = bpf_map_get_fd_by_id(id);
	assert_int_equal(bpf_map_lookup_elem(fd, &subject, &value), 0);
	return value;
}

/* As if so much time had passed that the penalty is over, and a token there or not. */
static void time_passes(bool token)
{
	__u32 index = weir_limit_index(0, SLOT), id;
	struct weir_kept value = kept();
	__u64 subject = 0;

	value.penalty = weir_penalty_failures(value.penalty);
	if (token)
		value.bucket = (struct weir_bucket){};
	assert_int_equal(bpf_map_lookup_elem(dp->maps.buckets, &index, &id), 0);
	CLEANUP_CLOSE int fd = bpf_map_get_fd_by_id(id);
	assert_int_equal(bpf_map_update_elem(fd, &subject, &value, BPF_ANY), 0);
}

static int setup(void **state)
{
	struct datapath_limit limit = rate_of(0, WEIR_QPS / 1000, 1);

	attached_setup(state);
	limit.penalty = (struct weir_backoff){ .parts = WEIR_BACKOFF_EXPONENTIAL,
					       .base_ns = 2000 * WEIR_NS_PER_S,
					       .max_ns = 3000 * WEIR_NS_PER_S };
	slot_set(&limit);
	rule_set("{}");
	return 0;
}

static void test_who_does_not_wait(void **state)
{
	struct seen seen;

	(void)state;
	limit(WEIR_BUILTIN_TOTAL, "0", 1000);
	assert_true(passes(false, get_pod));
	assert_false(passes(false, get_pod));
	assert_answer(&seen, "2000", true);
	assert_int_equal(weir_penalty_failures(kept().penalty), 1);

	/* No limit is asked, and no failure counted. */
	assert_false(passes(false, get_pod));
	assert_int_equal(weir_penalty_failures(kept().penalty), 1);
	assert_int_equal(counter(WEIR_SHED_PENALTY), 1);
	assert_int_equal(counter(WEIR_SHED_COMBINED), 1);
	assert_int_equal(counts(WEIR_BUILTIN_TOTAL).admitted, 1);

	time_passes(false);
	assert_false(passes(false, get_pod));
	assert_answer(&seen, "3000", true);
	assert_int_equal(weir_penalty_failures(kept().penalty), 2);

	time_passes(true);
	assert_true(passes(false, get_pod));
	assert_int_equal(weir_penalty_failures(kept().penalty), 0);
}

/* A refused request that must wait for its turn is decided anew then. */
static void test_who_waits_has_not_failed(void **state)
{
	(void)state;
	assert_true(passes(false, get_pod));
	client_says(false, strlen(get_pod), get_pod); /* pipelined */
	assert_int_equal(counter(WEIR_SHED), 0);
	assert_int_equal(weir_penalty_failures(kept().penalty), 0);
	assert_int_equal(counts(SLOT).refused, 0);
}

#define PENALTY(name) cmocka_unit_test_setup_teardown(test_##name, setup, attached_teardown)

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = {
		PENALTY(who_does_not_wait),
		PENALTY(who_waits_has_not_failed),
	};

	return cmocka_run_group_tests_name("penalty", tests, attached_open, attached_close);
}
