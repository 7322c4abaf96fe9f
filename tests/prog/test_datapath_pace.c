/* SPDX-License-Identifier: GPL-2.0 */
/* The device on which packets wait: made, repaired, taken away; on a kernel that cannot, nothing of it. */
#include <errno.h>
#include <string.h>

#include "datapath_fixture.h"
#include "sys/pace.h"

/* 0, with the test's first device in place, or skips the test: this kernel cannot. */
static void pace_or_skip(struct datapath *dp)
{
	int ret = datapath_pace(dp, true, &error);

	if (ret == -EOPNOTSUPP)
		skip();
	done(ret);
}

static __u32 known_ifindex(struct datapath *dp)
{
	struct weir_settings settings;
	__u32 zero = 0;

	assert_int_equal(bpf_map_lookup_elem(dp->maps.settings, &zero, &settings), 0);
	return settings.pace_ifindex;
}

static bool is_right(struct datapath *dp)
{
	return known_ifindex(dp) && known_ifindex(dp) == ifindex_of(PACE_DEVICE) &&
	       !inside("ip -d link show up dev " PACE_DEVICE " | grep -qw ifb") &&
	       !inside("tc qdisc show dev " PACE_DEVICE " root | grep -q '^qdisc fq .* horizon 10s'");
}

static void test_on_or_nothing(void **state)
{
	struct datapath *dp = *state;
	int ret = datapath_pace(dp, true, &error);

	if (ret) {
		assert_int_equal(ret, -EOPNOTSUPP);
		assert_non_null(strstr(error.text, "this kernel"));
		assert_int_equal(known_ifindex(dp), 0);
		assert_int_equal(ifindex_of(PACE_DEVICE), 0);
		return;
	}
	assert_true(is_right(dp));
	done(datapath_pace(dp, false, &error));
	assert_int_equal(known_ifindex(dp), 0);
	assert_int_equal(ifindex_of(PACE_DEVICE), 0);
	done(datapath_pace(dp, false, &error));
}

static void test_repaired(void **state)
{
	struct datapath *dp = *state;
	__u32 ifindex;

	pace_or_skip(dp);
	ifindex = known_ifindex(dp);
	done(datapath_pace(dp, true, &error));
	assert_int_equal(known_ifindex(dp), ifindex);
	assert_int_equal(inside("ip link set " PACE_DEVICE " down && tc qdisc replace dev " PACE_DEVICE
				" root pfifo limit 10"),
			 0);
	assert_false(is_right(dp));
	done(datapath_pace(dp, true, &error));
	assert_true(is_right(dp));
	assert_int_equal(inside("ip link del " PACE_DEVICE), 0);
	done(datapath_pace(dp, true, &error));
	assert_true(is_right(dp));
}

/* The next agent finds it as it is. */
static void test_taken_over(void **state)
{
	struct datapath *dp = *state;
	__u32 ifindex;

	pace_or_skip(dp);
	ifindex = known_ifindex(dp);
	agent_dies();
	datapath_close(dp);
	dp = open_datapath(1024);
	*state = dp;
	assert_int_equal(known_ifindex(dp), ifindex);
	done(datapath_pace(dp, true, &error));
	assert_int_equal(known_ifindex(dp), ifindex);
	done(datapath_remove(dp, &error));
	assert_int_equal(ifindex_of(PACE_DEVICE), 0);
}

static void test_the_name_is_taken(void **state)
{
	struct datapath *dp = *state;

	pace_or_skip(dp);
	done(datapath_pace(dp, false, &error));
	assert_int_equal(inside("ip link add " PACE_DEVICE " type veth peer name veth1"), 0);
	assert_int_equal(datapath_pace(dp, true, &error), -EEXIST);
	assert_int_equal(known_ifindex(dp), 0);
	assert_int_equal(inside("ip link del " PACE_DEVICE), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, datapath_setup, datapath_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_on_or_nothing),
		TEST(test_repaired),
		TEST(test_taken_over),
		TEST(test_the_name_is_taken),
	};

	return cmocka_run_group_tests_name("datapath_pace", tests, namespaces_setup, NULL);
}
