/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One limit is one limit, for as long as one likes: clients on two CPUs, whose requests reach a server's socket by loopback, so that
 * they are decided in softirqs; and at the same time four threads of a program in whose midst it is decided. They share a bucket
 * and a limit on requests in flight. The server counts what reached it.
 *
 * WEIR_LANES_S: seconds for each test, 2 unless it is set.
 */
#include "lanes.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 2
#define HEAD_ROOM 4096
#define PLENTY 1000000000U

struct heard {
	unsigned long long passed, refused;
};

static int clients[CLIENTS], servers[CLIENTS];
static struct heard heard[CLIENTS];
static unsigned long long served[CLIENTS], asked[ASKERS];
static atomic_bool stopping;
static atomic_int bad; /* answers that nobody can have meant */

static int seconds(void)
{
	const char *text = getenv("WEIR_LANES_S");
	int n = text ? atoi(text) : 0;

	return n > 0 ? n : 2;
}

/* --- a server, and a client on each CPU */

static int connections_make(void *unused)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(SERVER_PORT) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	(void)unused;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, CLIENTS))
		return -errno;
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(clients[i], (struct sockaddr *)&at, sizeof(at)))
			return -errno;
		servers[i] = accept(listener, NULL, NULL);
		setsockopt(clients[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(servers[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	close(listener);
	return 0;
}

/* A head and the body that it announces; its status, or 0 for a request. -1: there is no more. */
static int message_read(int fd)
{
	char text[HEAD_ROOM + 1], *end = NULL, *length;
	size_t n = 0, whole = 0;
	ssize_t got;

	while (!end || n < whole) {
		got = n < HEAD_ROOM ? recv(fd, text + n, HEAD_ROOM - n, 0) : 0;
		if (got <= 0)
			return -1;
		n += got;
		text[n] = '\0';
		end = strstr(text, "\r\n\r\n");
		length = end ? strcasestr(text, "\r\nContent-Length: ") : NULL;
		if (end)
			whole = end + 4 - text + (length && length < end ? strtoul(length + 18, NULL, 10) : 0);
	}
	return strncmp(text, "HTTP/1.1 ", 9) ? 0 : atoi(text + 9);
}

static void *serves(void *server)
{
	intptr_t n = (intptr_t)server;

	while (message_read(servers[n]) == 0) {
		served[n]++;
		if (send(servers[n], ok, strlen(ok), MSG_NOSIGNAL) < 0)
			break;
	}
	return NULL;
}

static void *sends(void *client)
{
	intptr_t n = (intptr_t)client;
	int status;

	on_cpu(n);
	while (!stopping) {
		if (send(clients[n], get_pod, strlen(get_pod), MSG_NOSIGNAL) < 0)
			break;
		status = message_read(clients[n]);
		heard[n].passed += status == 200;
		heard[n].refused += status == 429;
		bad += status != 200 && status != 429;
		if (status <= 0)
			break;
	}
	shutdown(clients[n], SHUT_WR);
	return NULL;
}

/* --- a program in whose midst it is decided */

static void *asks(void *thread)
{
	intptr_t n = (intptr_t)thread;

	on_cpu(n % 2);
	while (!stopping) {
		asker_asks(n);
		asker_ends(n, asked[n]++ % 3 == 0);
	}
	return NULL;
}

static void all_for(int for_s)
{
	pthread_t threads[2 * CLIENTS + ASKERS];
	int started = 0;

	stopping = false;
	for (intptr_t i = 0; i < CLIENTS; i++) {
		assert_int_equal(pthread_create(&threads[started++], NULL, serves, (void *)i), 0);
		assert_int_equal(pthread_create(&threads[started++], NULL, sends, (void *)i), 0);
	}
	for (intptr_t i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&threads[started++], NULL, asks, (void *)i), 0);
	sleep(for_s);
	stopping = true;
	for (int i = 0; i < started; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* --- what came of it */

/* All that was decided, and how much of it was admitted for good. */
static unsigned long long check(void)
{
	unsigned long long all_served = 0, all_asked = 0;
	struct asker_said told = said();
	struct heard all_heard = {};

	for (int i = 0; i < CLIENTS; i++) {
		all_served += served[i];
		all_heard.passed += heard[i].passed;
		all_heard.refused += heard[i].refused;
	}
	for (int i = 0; i < ASKERS; i++)
		all_asked += asked[i];
	print_message("by packets %llu passed, %llu refused; in threads %llu admitted (%llu undone), %llu refused\n",
		      all_heard.passed, all_heard.refused, told.admitted, told.undone, told.refused);
	assert_int_equal(bad, 0);
	assert_int_equal(all_heard.passed, all_served);
	assert_int_equal(counter(WEIR_PASSED), all_served);
	assert_int_equal(counter(WEIR_SHED), all_heard.refused);
	assert_int_equal(told.admitted + told.refused, all_asked);
	assert_true(all_heard.passed && told.admitted && told.refused + all_heard.refused);
	assert_int_equal(counts(RATE_SLOT).admitted, all_served + told.admitted - told.undone);
	assert_int_equal(seats_taken(), 0);
	return all_served + told.admitted - told.undone;
}

/* There are tokens for all, and three seats. */
static void test_seats(void **state)
{
	(void)state;
	limit(RATE_SLOT, "0", PLENTY);
	seats_set(3);
	all_for(seconds());
	assert_int_equal(PLENTY - tokens_left(RATE_SLOT), check());
	assert_in_range(counts(SLOT).highest, 1, 3);
}

static struct weir_rate rate_in_force(void)
{
	__u32 index = weir_limit_index(0, RATE_SLOT);
	struct weir_limit limit = {};

	assert_int_equal(bpf_map_lookup_elem(dp->maps.limits, &index, &limit), 0);
	return limit.terms.amount.history.rates[0];
}

/* Half of the tokens are there when the rate begins, so that the bucket is never full, and soon empty: each new one has six takers. */
static void test_rate(void **state)
{
	const unsigned long long burst = 1000, qps = 50;
	unsigned long long kept, earliest, latest;
	struct weir_rate rate;
	__u64 left;

	(void)state;
	limit(RATE_SLOT, "0", burst);
	seats_set(1000);
	for (unsigned long long i = 0; i < burst / 2; i++, asked[0]++) {
		asker_asks(0);
		asker_ends(0, 0);
	}
	limit(RATE_SLOT, "50", burst);
	rate = rate_in_force();
	all_for(seconds());
	kept = check();
	earliest = datapath_now_ns() - rate.since_ns;
	left = tokens_left(RATE_SLOT);
	latest = datapath_now_ns() - rate.since_ns;
	assert_in_range(kept + left, burst + earliest * qps / WEIR_NS_PER_S, burst + latest * qps / WEIR_NS_PER_S);
}

static int traffic_setup(void **state)
{
	int ret = lanes_setup(state);

	memset(heard, 0, sizeof(heard));
	memset(served, 0, sizeof(served));
	memset(asked, 0, sizeof(asked));
	bad = 0;
	done(datapath_links_sync(dp, NULL, &error));
	return ret ?: call_inside(connections_make, NULL);
}

static int traffic_teardown(void **state)
{
	for (int i = 0; i < CLIENTS; i++) {
		close(clients[i]);
		close(servers[i]);
	}
	return lanes_teardown(state);
}

#define TRAFFIC_TEST(name) cmocka_unit_test_setup_teardown(test_##name, traffic_setup, traffic_teardown)

/* A program of its own: it has the programs on devices. */
int main(void)
{
	const struct CMUnitTest tests[] = { TRAFFIC_TEST(seats), TRAFFIC_TEST(rate) };

	return cmocka_run_group_tests_name("lanes_traffic", tests, attached_open, attached_close);
}
