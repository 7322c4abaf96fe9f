/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The same packet of several requests on two CPUs at once: one of them is contended, and what all of its requests took goes back,
 * once. Whether they meet is up to the machine; that nothing is lost or given twice holds either way.
 */
#include "limited.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "weir.skel.h"

#define BURST 1000000
#define REQUESTS 30
#define ROUNDS 400
#define RATE_SLOT WEIR_BUILTIN_TOTAL

static char pipelined[PACKET_ROOM];
static pthread_barrier_t barrier;

static void *send_it(void *cpu)
{
	struct packet mine;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((intptr_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set); /* where there is but one CPU, they meet nowhere */
	packet_build(&mine,
		     &(struct spec){ .seq = CLIENT_NEXT, .ack = SERVER_NEXT, .flags = PSH_ACK, .text = pipelined });
	pthread_barrier_wait(&barrier);
	packet_run(ingress, &mine);
	return NULL;
}

static void test_two_at_once(void **state)
{
	struct datapath_limit seats = { .kind = WEIR_LIMIT_IN_FLIGHT,
					.reason = WEIR_SHED_IN_FLIGHT,
					.epoch = 7,
					.amount = { .set = true, .seats = 2 } };
	__u64 taken[WEIR_SERVER_LIMITS];
	pthread_t other;

	(void)state;
	limit(RATE_SLOT, "0", BURST);
	slot_set(&seats);
	rule_set("{\"long_running\": false}");
	for (int i = 0; i < REQUESTS; i++)
		strcat(pipelined, get_pod);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	for (int i = 1; i <= ROUNDS; i++) {
		connect_ends(false);
		assert_int_equal(pthread_create(&other, NULL, send_it, (void *)1), 0);
		send_it((void *)0);
		assert_int_equal(pthread_join(other, NULL), 0);
		assert_int_equal(counter(WEIR_PASSED), i * REQUESTS);
		assert_int_equal(BURST - tokens_left(RATE_SLOT), i * REQUESTS);
		assert_int_equal(counts(RATE_SLOT).admitted, i * REQUESTS);
		memset(taken, 0, sizeof(taken));
		done(datapath_in_flight(dp, 0, 1, taken, &error));
		assert_int_equal(taken[SLOT], 1);
		server_says(false, 0, strlen(pipelined), FIN_ACK, NULL);
	}
	print_message("%llu of %d packets were contended\n", (unsigned long long)counter(WEIR_CONTENDED), ROUNDS);
}

ATTACHED_TESTS
{
	const struct CMUnitTest tests[] = { TEST(two_at_once) };

	return cmocka_run_group_tests_name("contended", tests, attached_open, attached_close);
}
