/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One limit is one limit, whoever asks: packets on two CPUs, and at the same time four threads of a program in whose midst it is
 * decided. They share a bucket and a limit on requests in flight: not one token too many or too few, and no place is left taken.
 */
#include "limited.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "asker.h"
#include "tests/prog/bpf/asker.skel.h"
#include "weir.skel.h"

#define PACKETS 400    /* of each CPU */
#define PIPELINED 8    /* requests in each */
#define ASKED 2000     /* of each thread */
#define REPLACED 20000 /* requests of each thread while limits are replaced */
#define RATE_SLOT WEIR_LIMIT_TOTAL

static struct asker_bpf *asker;
static struct bpf_link *links[2];
static pthread_barrier_t barrier;
static char requests[PACKET_ROOM], answers[PACKET_ROOM];

/* The probes are at the entries of these two. */
__attribute__((noinline, noclone)) void asker_asks(unsigned int thread);
__attribute__((noinline, noclone)) void asker_ends(unsigned int thread, unsigned int undone);

void asker_asks(unsigned int thread)
{
	__asm__ volatile("" ::"r"(thread) : "memory");
}

void asker_ends(unsigned int thread, unsigned int undone)
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
	DECLARE_LIBBPF_OPTS(bpf_uprobe_opts, options, .func_name = function);
	struct bpf_link *link = bpf_program__attach_uprobe_opts(program, 0, "/proc/self/exe", 0, &options);

	assert_non_null(link);
	return link;
}

static int lanes_setup(void **state)
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

static int lanes_teardown(void **state)
{
	for (int i = 0; i < 2; i++)
		bpf_link__destroy(links[i]);
	asker_bpf__destroy(asker);
	return attached_teardown(state);
}

static void on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set); /* where there is but one CPU, they meet nowhere */
}

/* Packets of several requests each, which are answered, on a connection of this CPU's own. One that is refused is the last that passes. */
static void *sends(void *cpu)
{
	bool ipv6 = (intptr_t)cpu;
	__u32 asked = CLIENT_NEXT, answered = SERVER_NEXT;
	struct packet mine;

	on_cpu((intptr_t)cpu);
	pthread_barrier_wait(&barrier);
	for (__u32 i = 0; i < PACKETS; i++) {
		packet_build(&mine,
			     &(struct spec){
				     .ipv6 = ipv6, .seq = asked, .ack = answered, .flags = PSH_ACK, .text = requests });
		packet_run(ingress, &mine);
		asked += strlen(requests);
		packet_build(&mine, &(struct spec){ .ipv6 = ipv6,
						    .from_server = true,
						    .seq = answered,
						    .ack = asked,
						    .flags = PSH_ACK,
						    .text = answers });
		packet_run(egress, &mine);
		answered += strlen(answers);
	}
	return NULL;
}

static void *asks(void *thread)
{
	unsigned int n = (intptr_t)thread;

	on_cpu(n % 2);
	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < ASKED; i++) {
		asker_asks(n);
		asker_ends(n, i % 3 == 0);
	}
	return NULL;
}

static void all_at_once(void)
{
	pthread_t threads[ASKERS + 2];

	assert_int_equal(pthread_barrier_init(&barrier, NULL, ASKERS + 2), 0);
	for (intptr_t i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, asks, (void *)i), 0);
	for (intptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[ASKERS + i], NULL, sends, (void *)i), 0);
	for (int i = 0; i < ASKERS + 2; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	pthread_barrier_destroy(&barrier);
}

static struct asker_said said(void)
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

static __u64 places_taken(void)
{
	__u64 taken[WEIR_SERVER_LIMITS] = {};

	done(datapath_in_flight(dp, 0, 1, taken, &error));
	return taken[SLOT];
}

static void run_with(__u64 burst, __u32 places)
{
	struct datapath_limit in_flight = { .kind = WEIR_LIMIT_IN_FLIGHT,
					    .reason = WEIR_SHED_IN_FLIGHT,
					    .epoch = 7,
					    .amount = { .set = true, .places = places } };
	struct asker_said told;
	__u64 kept, passed;

	limit(RATE_SLOT, "0", burst);
	slot_set(&in_flight);
	rule_set("{\"long_running\": false}");
	requests[0] = answers[0] = '\0';
	for (int i = 0; i < PIPELINED; i++) {
		strcat(requests, get_pod);
		strcat(answers, ok);
	}
	connect_ends(false);
	connect_ends(true);
	all_at_once();

	told = said();
	passed = counter(WEIR_PASSED);
	kept = told.admitted - told.undone + passed;
	print_message("%llu decided in packets; in threads %llu admitted, %llu refused, %llu undone\n",
		      (unsigned long long)passed, told.admitted, told.refused, told.undone);
	assert_int_equal(told.admitted + told.refused, ASKERS * ASKED);
	assert_int_equal(burst - tokens_left(RATE_SLOT), kept);
	assert_int_equal(counts(RATE_SLOT).admitted, kept);
	/* Whatever the two connections still hold goes with them. */
	connect_ends(false);
	connect_ends(true);
	assert_int_equal(places_taken(), 0);
}

static void test_enough_for_all(void **state)
{
	(void)state;
	run_with(1000000, 1000);
}

/* The bucket runs dry in the midst of it, and places are short. */
static void test_too_little(void **state)
{
	(void)state;
	run_with(ASKERS * ASKED / 4, 3);
}

/* --- limits that are replaced while they are asked */

static atomic_bool asking;
static atomic_ulong asked_by_now;

static void *asks_on(void *thread)
{
	unsigned int n = (intptr_t)thread;

	on_cpu(n % 2);
	for (unsigned int i = 0; i < REPLACED; i++) {
		asker_asks(n);
		asker_ends(n, 0);
		atomic_fetch_add(&asked_by_now, 1);
	}
	return NULL;
}

/*
 * Replaces the limit that is asked, and one that admits nobody, which gets its memory; the rate changes more seldom: of four rates a
 * bucket knows when it was used last. Returns how often.
 */
static unsigned long replace(const struct datapath_limit *nobodys)
{
	struct datapath_limit limit = rate_of(0, 0, 1000000), nobody = *nobodys;
	unsigned long times = 0, before = 0;

	while (asking) {
		if (asked_by_now - before >= 2 * ASKERS) {
			before = asked_by_now;
			limit.amount.per_ns += 1;
		}
		limit.epoch = nobody.epoch = ++times;
		done(datapath_limit_set(dp, 0, RATE_SLOT, &limit, &error));
		done(datapath_limit_set(dp, 0, SLOT + 1, &nobody, &error));
	}
	return times;
}

static void *asks_all(void *threads)
{
	pthread_t *started = threads;

	for (intptr_t i = 0; i < ASKERS; i++)
		if (pthread_create(&started[i], NULL, asks_on, (void *)i))
			return NULL;
	for (int i = 0; i < ASKERS; i++)
		pthread_join(started[i], NULL);
	asking = false;
	return NULL;
}

/* There are tokens for all, whatever is replaced: nobody reads parts of two limits, or decides by a rate of a while ago. */
static void test_replaced(void **state)
{
	const struct datapath_limit nobodys = rate_of(0, 0, 0);
	pthread_t threads[ASKERS], all;
	struct asker_said told;
	unsigned long times;

	(void)state;
	limit(RATE_SLOT, "0", 1000000);
	asking = true;
	assert_int_equal(pthread_create(&all, NULL, asks_all, threads), 0);
	times = replace(&nobodys);
	pthread_join(all, NULL);
	told = said();
	print_message("%lu times replaced; %llu admitted, %llu refused\n", times, told.admitted, told.refused);
	assert_int_equal(told.refused, 0);
	assert_int_equal(told.admitted, ASKERS * REPLACED);
	assert_int_equal(1000000 - tokens_left(RATE_SLOT), told.admitted);
	assert_int_equal(counter(WEIR_LIMIT_CONTENDED), 0);
}

#define LANES_TEST(name) cmocka_unit_test_setup_teardown(test_##name, lanes_setup, lanes_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = { LANES_TEST(enough_for_all), LANES_TEST(too_little), LANES_TEST(replaced) };

	return cmocka_run_group_tests_name("lanes", tests, attached_open, attached_close);
}
