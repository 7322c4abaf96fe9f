/* SPDX-License-Identifier: GPL-2.0 */
/* Programs that are pinned go on where they are what this agent would load. */
#include <string.h>

#include "datapath_fixture.h"
#include "sys/object_id.h"
#include "sys/pins.h"
#include "weir.skel.h" /* of either object: they begin with the same */

static bool has_programs_of(const struct datapath *dp, const struct datapath *other)
{
	int same = 0;

	for (int i = 0; i < DATAPATH_PROGRAMS_COUNT; i++) {
		assert_true(dp->programs[i] >= 0);
		same += object_id(dp->programs[i]) == object_id(other->programs[i]);
	}
	assert_true(!same || same == DATAPATH_PROGRAMS_COUNT);
	return same;
}

/* Opens once more, with the programs of before or with others, which take the place of those on the devices. */
static void opens_again(struct datapath **dp, bool same)
{
	struct datapath *again = open_datapath(0);

	assert_int_equal(has_programs_of(again, *dp), same);
	assert_true(runs(again, "lo", ATTACH_INGRESS));
	assert_int_equal(runs(*dp, "lo", ATTACH_EGRESS), same);
	datapath_close(*dp);
	*dp = again;
}

static void test_programs_are_taken_over(void **state)
{
	struct datapath *dp = *state;

	done(datapath_links_sync(dp, NULL, &error));
	opens_again(&dp, true);
	opens_again(&dp, true);
	/* One that is not pinned, one in the place of another, and one that counts in what is pinned no more. */
	assert_int_equal(unpin("prog-hold"), 0);
	opens_again(&dp, false);
	assert_int_equal(pins_replace(dp->programs[DATAPATH_PROGRAM_egress], dp->dir, "prog-ingress"), 0);
	opens_again(&dp, false);
	assert_int_equal(unpin("counters"), 0);
	opens_again(&dp, false);
	opens_again(&dp, true);
	*state = dp;
}

/* What another build has loaded is not taken over, even where it differs in nothing but its mark. */
static void test_programs_of_another_build(void **state)
{
	struct datapath *dp = *state;
	struct bpf_program *program;
	struct weir_bpf *other;
	__u64 mark = 1;

	done(datapath_links_sync(dp, NULL, &error));
	done(datapath_object_open(&other, &error));
	bpf_object__for_each_program (program, other->obj)
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), "weir_ingress"));
	done(bpf_map__set_initial_value(bpf_object__find_map_by_name(other->obj, ".rodata"), &mark, sizeof(mark)));
	done(datapath_maps_share(dp, other->obj));
	done(bpf_object__load(other->obj));
	program = bpf_object__find_program_by_name(other->obj, "weir_ingress");
	done(pins_replace(bpf_program__fd(program), dp->dir, "prog-ingress"));
	weir_bpf__destroy(other);
	opens_again(&dp, false);
	*state = dp;
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, datapath_setup, datapath_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_programs_are_taken_over),
		TEST(test_programs_of_another_build),
	};

	return cmocka_run_group_tests(tests, namespaces_setup, NULL);
}
