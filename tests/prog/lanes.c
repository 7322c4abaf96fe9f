/* SPDX-License-Identifier: GPL-2.0 */
#include "lanes.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sched.h>

#include "tests/prog/bpf/asker.skel.h"
#include "weir.skel.h"

static struct asker_bpf *asker;
static struct bpf_link *links[2];

__attribute__((noinline, noclone)) void asker_asks(unsigned int thread)
{
	__asm__ volatile("" ::"r"(thread) : "memory");
}

__attribute__((noinline, noclone)) void asker_ends(unsigned int thread, unsigned int undone)
{
	__asm__ volatile("" ::"r"(thread), "r"(undone) : "memory");
}

static void share_maps(void)
{
	struct bpf_map *map, *there;

	bpf_object__for_each_map (map, asker->obj) {
		there = bpf_object__find_map_by_name(dp->skeleton->obj, bpf_map__name(map));
		if (there && !bpf_map__is_internal(map))
			assert_int_equal(bpf_map__reuse_fd(map, bpf_map__fd(there)), 0);
	}
}

static struct bpf_link *probe(struct bpf_program *program, const char *function)
{
	LIBBPF_OPTS(bpf_uprobe_opts, options, .func_name = function);
	struct bpf_link *link = bpf_program__attach_uprobe_opts(program, 0, "/proc/self/exe", 0, &options);

	assert_non_null(link);
	return link;
}

int lanes_setup(void **state)
{
	int ret = attached_setup(state);

	if (ret)
		return ret;
	asker = asker_bpf__open();
	assert_non_null(asker);
	share_maps();
	assert_int_equal(asker_bpf__load(asker), 0);
	links[0] = probe(asker->progs.asked, "asker_asks");
	links[1] = probe(asker->progs.answered, "asker_ends");
	return 0;
}

int lanes_teardown(void **state)
{
	for (int i = 0; i < 2; i++)
		bpf_link__destroy(links[i]);
	asker_bpf__destroy(asker);
	return attached_teardown(state);
}

void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

struct asker_said said(void)
{
	struct asker_said sum = {}, *one;
	size_t size = bpf_map__value_size(asker->maps.slots);
	char value[size];

	for (__u32 i = 0; i < ASKERS; i++) {
		assert_int_equal(bpf_map_lookup_elem(bpf_map__fd(asker->maps.slots), &i, value), 0);
		one = (struct asker_said *)(value + size - sizeof(*one));
		sum.admitted += one->admitted;
		sum.refused += one->refused;
		sum.undone += one->undone;
	}
	return sum;
}

void seats_set(__u32 seats)
{
	slot_set(&(struct datapath_limit){ .kind = WEIR_LIMIT_IN_FLIGHT,
					   .reason = WEIR_SHED_IN_FLIGHT,
					   .epoch = 7,
					   .amount = { .set = true, .seats = seats } });
	rule_set("{\"long_running\": false}");
}

__u64 seats_taken(void)
{
	__u64 taken[WEIR_SERVER_LIMITS] = {};

	done(datapath_in_flight(dp, 0, 1, taken, &error));
	return taken[SLOT];
}
