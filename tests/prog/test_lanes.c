/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One limit is one limit, whoever asks: packets on two CPUs, and at the same time four threads of a program in whose midst it is
 * decided. They share a bucket and a limit on requests in flight: not one token too many or too few, and no seat is left taken.
 */
#include "lanes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#define PACKETS 400    /* of each CPU */
#define PIPELINED 8    /* requests in each */
#define ASKED 2000     /* of each thread */
#define REPLACED 20000 /* requests of each thread while limits are replaced */

static pthread_barrier_t barrier;
static char requests[PACKET_ROOM], answers[PACKET_ROOM];

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

static void run_with(__u64 burst, __u32 seats)
{
	struct asker_said told;
	__u64 kept, passed;

	limit(RATE_SLOT, "0", burst);
	seats_set(seats);
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
	assert_int_equal(seats_taken(), 0);
}

static void test_enough_for_all(void **state)
{
	(void)state;
	run_with(1000000, 1000);
}

/* The bucket runs dry in the midst of it, and seats are short. */
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

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = { LANES_TEST(enough_for_all), LANES_TEST(too_little), LANES_TEST(replaced) };

	return cmocka_run_group_tests_name("lanes", tests, attached_open, attached_close);
}
