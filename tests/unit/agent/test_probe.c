/* SPDX-License-Identifier: GPL-2.0 */
/* From what a kernel and a namespace have to what weir does there; and where weir runs among others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probe/probe.h"
#include "sys/hooks.h"

static struct probe all_there(void)
{
	struct probe probe = { 0 };

	for (int fact = 0; fact < PROBE_FACT_COUNT; fact++)
		probe_set(&probe, fact, PROBE_YES, "%s", "");
	return probe;
}

/* Everything but this. */
static struct probe_result without(enum probe_fact fact, enum probe_answer answer, enum probe_lane lane)
{
	struct probe probe = all_there();

	probe_set(&probe, fact, answer, "because");
	return probe_lane(&probe, lane);
}

static void check(struct probe_result result, enum probe_mode mode, const char *how, const char *reason)
{
	assert_int_equal(result.mode, mode);
	assert_string_equal(result.how, how);
	if (reason)
		assert_string_equal(result.reason, reason);
	else
		assert_null(result.reason);
}

static void test_all_there(void **state)
{
	static const char *const how[] = { "tcx", "-", "pace", "-", "-" };
	struct probe probe = all_there();

	(void)state;
	for (int lane = 0; lane < PROBE_LANE_COUNT; lane++)
		check(probe_lane(&probe, lane), PROBE_FULL, how[lane], NULL);
}

static void test_nothing_known(void **state)
{
	struct probe probe = { 0 };

	(void)state;
	for (int lane = 0; lane < PROBE_LANE_COUNT; lane++)
		assert_int_equal(probe_lane(&probe, lane).mode, PROBE_NOT_KNOWN);
	check(probe_lane(&probe, PROBE_LANE_ANSWER), PROBE_NOT_KNOWN, "-", "kernel");
}

static void test_answer(void **state)
{
	struct probe probe = all_there();

	(void)state;
	check(without(PROBE_TCX, PROBE_NO, PROBE_LANE_ANSWER), PROBE_FULL, "clsact", NULL);
	check(without(PROBE_CLSACT, PROBE_NO, PROBE_LANE_ANSWER), PROBE_FULL, "tcx", NULL);
	check(without(PROBE_PROGRAMS, PROBE_NO, PROBE_LANE_ANSWER), PROBE_NOTHING, "-", "programs_refused");
	check(without(PROBE_PROGRAMS, PROBE_UNKNOWN, PROBE_LANE_ANSWER), PROBE_NOT_KNOWN, "-", "programs");
	check(without(PROBE_KERNEL, PROBE_NO, PROBE_LANE_ANSWER), PROBE_NOTHING, "-", "old_kernel");
	check(without(PROBE_BTF, PROBE_NO, PROBE_LANE_ANSWER), PROBE_NOTHING, "-", "no_btf");
	check(without(PROBE_MAPS, PROBE_NO, PROBE_LANE_ANSWER), PROBE_NOTHING, "-", "other_version");
	probe_set(&probe, PROBE_TCX, PROBE_NO, "%s", "");
	probe_set(&probe, PROBE_CLSACT, PROBE_NO, "%s", "");
	check(probe_lane(&probe, PROBE_LANE_ANSWER), PROBE_NOTHING, "-", "no_clsact");
}

static void test_translate(void **state)
{
	(void)state;
	check(without(PROBE_UNTRACKED, PROBE_NO, PROBE_LANE_TRANSLATE), PROBE_LESSER, "close", "loopback_tracked");
	check(without(PROBE_UNTRACKED, PROBE_UNKNOWN, PROBE_LANE_TRANSLATE), PROBE_NOT_KNOWN, "-",
	      "loopback_untracked");
	check(without(PROBE_BTF, PROBE_NO, PROBE_LANE_TRANSLATE), PROBE_NOTHING, "-", "no_btf");
	check(without(PROBE_TCX, PROBE_NO, PROBE_LANE_TRANSLATE), PROBE_FULL, "-", NULL);
}

static void test_hold(void **state)
{
	struct probe probe = all_there();

	(void)state;
	check(without(PROBE_TCX, PROBE_NO, PROBE_LANE_HOLD), PROBE_LESSER, "drop", "no_tcx");
	check(without(PROBE_IFB, PROBE_NO, PROBE_LANE_HOLD), PROBE_LESSER, "drop", "no_ifb");
	check(without(PROBE_FQ, PROBE_NO, PROBE_LANE_HOLD), PROBE_LESSER, "drop", "no_fq");
	check(without(PROBE_FQ, PROBE_UNKNOWN, PROBE_LANE_HOLD), PROBE_NOT_KNOWN, "-", "fq");
	check(without(PROBE_CGROUP2, PROBE_NO, PROBE_LANE_HOLD), PROBE_LESSER, "pace", "no_cgroup2");
	check(without(PROBE_HOLD_PROGRAM, PROBE_NO, PROBE_LANE_HOLD), PROBE_LESSER, "pace", "hold_refused");
	check(without(PROBE_PROGRAMS, PROBE_NO, PROBE_LANE_HOLD), PROBE_NOTHING, "-", "programs_refused");
	probe_set(&probe, PROBE_FQ, PROBE_NO, "%s", "");
	probe_set(&probe, PROBE_CGROUP2, PROBE_NO, "%s", "");
	check(probe_lane(&probe, PROBE_LANE_HOLD), PROBE_NOTHING, "-", "no_cgroup2");
}

static void test_reset_and_survive(void **state)
{
	(void)state;
	check(without(PROBE_SOCK_DIAG, PROBE_NO, PROBE_LANE_RESET), PROBE_NOTHING, "-", "no_sock_diag");
	check(without(PROBE_PINS, PROBE_NO, PROBE_LANE_SURVIVE), PROBE_NOTHING, "-", "no_shared_bpffs");
	check(without(PROBE_PINS, PROBE_UNKNOWN, PROBE_LANE_SURVIVE), PROBE_NOT_KNOWN, "-", "shared_bpffs");
}

/* What is not known has a reason of its own. */
static void test_why_unknown(void **state)
{
	struct probe probe = { 0 };

	(void)state;
	probe_set(&probe, PROBE_PINS, PROBE_UNKNOWN, "%s", "it takes root");
	assert_string_equal(probe_lane(&probe, PROBE_LANE_SURVIVE).why, "it takes root");
	probe_set(&probe, PROBE_PINS, PROBE_NO, "%s", "elsewhere");
	assert_null(probe_lane(&probe, PROBE_LANE_SURVIVE).why);
}

static void test_json(void **state)
{
	struct probe probe = all_there();
	const char *reason, *why;
	json_t *json;

	(void)state;
	probe_set(&probe, PROBE_FQ, PROBE_NO, "%s", "not in this kernel");
	json = probe_to_json(&probe);
	assert_int_equal(json_array_size(json_object_get(json, "facts")), PROBE_FACT_COUNT);
	assert_int_equal(json_array_size(json_object_get(json, "lanes")), PROBE_LANE_COUNT);
	assert_int_equal(json_unpack(json_array_get(json_object_get(json, "facts"), PROBE_FQ), "{s:s}", "why", &why),
			 0);
	assert_string_equal(why, "not in this kernel");
	assert_int_equal(json_unpack(json_array_get(json_object_get(json, "lanes"), PROBE_LANE_HOLD), "{s:s}", "reason",
				     &reason),
			 0);
	assert_string_equal(reason, "no_fq");
	json_decref(json);
}

static void test_place_among_others(void **state)
{
	const struct hook_owner others[] = {
		{ .name = "one" },
		{ .name = "two" },
		{ .clsact = true, .priority = 1, .handle = 1, .name = "three" },
		{ .clsact = true, .priority = 49152, .handle = 1, .name = "four" },
	};
	const struct hook_owner there[] = { { .name = "one" }, { .name = "weir_ingress", .ours = true } };

	(void)state;
	assert_int_equal(hooks_place(others, 4, true), 2);
	assert_int_equal(hooks_place(others + 2, 2, false), 1);
	assert_int_equal(hooks_place(others + 3, 1, false), 0);
	assert_int_equal(hooks_place(NULL, 0, true), 0);
	assert_int_equal(hooks_place(there, 2, true), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_there),
		cmocka_unit_test(test_nothing_known),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_translate),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_reset_and_survive),
		cmocka_unit_test(test_why_unknown),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_place_among_others),
	};

	return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
