/* SPDX-License-Identifier: GPL-2.0 */
/* The table of connections against real sockets: who is kept, who is swept, who is reset. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir/admission/admission.h"
#include "weir/conn/conn.h"
#include "weir/conn/rest.h"

#include "datapath_fixture.h"

#define LONG_AGO 1
#define MINUTE_NS (60 * WEIR_NS_PER_S)

/* A TCP connection over loopback, and its key in the table. */
struct pair {
	const char *listen, *connect; /* IPv6 addresses; IPv4 as ::ffff:a.b.c.d */
	bool ip4;		      /* with IPv4 sockets, not mapped addresses */
	const char *device;	      /* to bind to; NULL: none */
	int listener, client, server;
	struct weir_flow flow;
};

static socklen_t address_set(const struct pair *pair, const char *text, struct sockaddr_in6 *address)
{
	struct sockaddr_in *ip4 = (struct sockaddr_in *)address;

	*address = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	assert_int_equal(inet_pton(AF_INET6, text, &address->sin6_addr), 1);
	if (!pair->ip4)
		return sizeof(*address);
	*ip4 = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = address->sin6_addr.s6_addr32[3],
	};
	return sizeof(*ip4);
}

static int socket_make(const struct pair *pair)
{
	int fd = socket(pair->ip4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	if (pair->device)
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, pair->device, strlen(pair->device)), 0);
	return fd;
}

static int pair_connect(void *arg)
{
	struct pair *pair = arg;
	struct sockaddr_in6 address, client = {};
	socklen_t length = address_set(pair, pair->listen, &address), size = sizeof(client);

	pair->listener = socket_make(pair);
	pair->client = socket_make(pair);
	assert_int_equal(bind(pair->listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(pair->listener, 1), 0);
	assert_int_equal(getsockname(pair->listener, (struct sockaddr *)&address, &length), 0);
	pair->flow.server_port = address.sin6_port;
	length = address_set(pair, pair->connect, &address);
	address.sin6_port = pair->flow.server_port;
	assert_int_equal(connect(pair->client, (struct sockaddr *)&address, length), 0);
	pair->server = accept(pair->listener, NULL, NULL);
	assert_true(pair->server >= 0);
	assert_int_equal(getsockname(pair->client, (struct sockaddr *)&client, &size), 0);
	pair->flow.client_port = client.sin6_port;
	/* Over loopback both ends have the address that was connected to. */
	assert_int_equal(inet_pton(AF_INET6, pair->connect, pair->flow.server), 1);
	memcpy(pair->flow.client, pair->flow.server, 16);
	return 0;
}

static void pair_close(struct pair *pair)
{
	close(pair->listener);
	close(pair->client);
	close(pair->server);
}

static void conn_put(struct datapath *dp, const struct weir_flow *flow, struct weir_conn conn)
{
	assert_int_equal(bpf_map_update_elem(dp->maps.conns, flow, &conn, BPF_ANY), 0);
}

static bool conn_there(struct datapath *dp, const struct weir_flow *flow)
{
	struct weir_resting resting;
	struct weir_conn conn;

	return !bpf_map_lookup_elem(dp->maps.conns, flow, &conn) ||
	       !bpf_map_lookup_elem(dp->maps.resting, flow, &resting);
}

static __u64 counter(struct datapath *dp, __u32 slot, enum weir_reason reason)
{
	__u64 counters[WEIR_REASON_COUNT];

	done(datapath_counters(dp, slot, counters, &error));
	return counters[reason];
}

/* An entry that was listed may be that of another connection by the time it is to go. */
static void test_forget_compares_the_id(void **state)
{
	struct weir_forget forget = { .flow = { .client_port = 1, .server_port = 2 },
				      .reason = WEIR_CONN_SWEPT,
				      .id = 6 };
	struct datapath *dp = *state;

	conn_put(dp, &forget.flow, (struct weir_conn){ .id = 7 });
	assert_int_equal(datapath_run(dp->forget_fd, &forget, sizeof(forget)), 0);
	assert_true(conn_there(dp, &forget.flow));
	assert_int_equal(counter(dp, 0, WEIR_CONN_SWEPT), 0);
	forget.id = 7;
	assert_int_equal(datapath_run(dp->forget_fd, &forget, sizeof(forget)), 0);
	assert_false(conn_there(dp, &forget.flow));
	assert_int_equal(counter(dp, 0, WEIR_CONN_SWEPT), 1);
}

static void test_sweep_keeps_what_lives(void **state)
{
	struct datapath *dp = *state;
	struct pair pairs[] = {
		{ .listen = "::ffff:127.0.0.1", .connect = "::ffff:127.0.0.1", .ip4 = true },
		{ .listen = "::1", .connect = "::1" },
		{ .listen = "::", .connect = "::ffff:127.0.0.1" },
		{ .listen = "::ffff:127.0.0.1", .connect = "::ffff:127.0.0.1", .ip4 = true, .device = "lo" },
		{ .listen = "::1", .connect = "::1", .device = "lo" },
	};
	const size_t n = sizeof(pairs) / sizeof(*pairs);

	for (size_t i = 0; i < n; i++) {
		call_inside(pair_connect, &pairs[i]);
		conn_put(dp, &pairs[i].flow, (struct weir_conn){ .last_ns = LONG_AGO, .server = 1 });
	}
	assert_int_equal(datapath_sweep(dp, MINUTE_NS, &error), 0);
	for (size_t i = 0; i < n; i++)
		assert_true(conn_there(dp, &pairs[i].flow));

	/* The side that closes first stays in TIME-WAIT: its numbers may still be asked for. */
	close(pairs[0].server);
	close(pairs[0].client);
	pairs[0].server = pairs[0].client = -1;
	assert_int_equal(datapath_sweep(dp, MINUTE_NS, &error), 0);
	assert_true(conn_there(dp, &pairs[0].flow));
	assert_int_equal(counter(dp, 1, WEIR_CONN_SWEPT), 0);
	for (size_t i = 0; i < n; i++)
		pair_close(&pairs[i]);
}

static void test_sweep_forgets_what_is_gone(void **state)
{
	struct datapath *dp = *state;
	struct pair live = { .listen = "::ffff:127.0.0.1", .connect = "::ffff:127.0.0.1", .ip4 = true };
	struct weir_flow dead, fresh, dead6 = { .client = { [15] = 1 }, .server = { [15] = 1 } };

	call_inside(pair_connect, &live);
	dead = fresh = live.flow;
	/* These would find the listener. */
	dead.client_port ^= htons(1);
	fresh.client_port ^= htons(2);
	dead6.server_port = live.flow.server_port;
	conn_put(dp, &live.flow, (struct weir_conn){ .last_ns = LONG_AGO, .server = 1 });
	conn_put(dp, &dead, (struct weir_conn){ .last_ns = LONG_AGO, .server = 1 });
	conn_put(dp, &dead6, (struct weir_conn){ .last_ns = LONG_AGO, .server = 1, .splice.cuts = 1 });
	conn_put(dp, &fresh, (struct weir_conn){ .last_ns = datapath_now_ns(), .server = 1 });

	assert_int_equal(datapath_sweep(dp, MINUTE_NS, &error), 2);
	assert_true(conn_there(dp, &live.flow));
	assert_true(conn_there(dp, &fresh));
	assert_false(conn_there(dp, &dead));
	assert_false(conn_there(dp, &dead6));
	assert_int_equal(counter(dp, 1, WEIR_CONN_SWEPT), 2);
	assert_int_equal(counter(dp, 1, WEIR_CONN_CLOSED), 2);
	assert_int_equal(counter(dp, 1, WEIR_SPLICE_CLOSED), 1);
	assert_int_equal(datapath_sweep(dp, 0, &error), 1);
	assert_false(conn_there(dp, &fresh));
	pair_close(&live);
}

/* Where the kernel had no memory for their timers. */
static void admitted_put(struct datapath *dp, const struct weir_flow *flow, __u64 since_ns, enum weir_admitted_state is)
{
	struct weir_admitted admitted = { .word = weir_admitted_word(since_ns, is), .server = 1 };

	assert_int_equal(bpf_map_update_elem(dp->maps.admitted, flow, &admitted, BPF_ANY), 0);
}

static bool admitted_there(struct datapath *dp, const struct weir_flow *flow)
{
	struct weir_admitted admitted;

	return !bpf_map_lookup_elem(dp->maps.admitted, flow, &admitted);
}

/* Whose end nobody has told: without a cgroup's program, or while programs are replaced. */
static void test_sweep_of_what_was_admitted(void **state)
{
	struct datapath *dp = *state;
	struct pair live = { .listen = "::ffff:127.0.0.1", .connect = "::ffff:127.0.0.1", .ip4 = true };
	__u64 long_ago = datapath_now_ns() - 2 * WEIR_EMBRYO_NS;
	struct weir_flow ended, embryo, fresh;

	call_inside(pair_connect, &live);
	ended = embryo = fresh = live.flow;
	ended.client_port ^= htons(1);
	embryo.client_port ^= htons(2);
	fresh.client_port ^= htons(4);
	admitted_put(dp, &live.flow, long_ago, WEIR_ADMITTED_OPEN);
	admitted_put(dp, &ended, long_ago, WEIR_ADMITTED_OPEN);
	admitted_put(dp, &embryo, long_ago, WEIR_ADMITTED_EMBRYO);
	admitted_put(dp, &fresh, datapath_now_ns(), WEIR_ADMITTED_EMBRYO);

	assert_int_equal(datapath_sweep(dp, MINUTE_NS, &error), 2);
	assert_true(admitted_there(dp, &live.flow));
	assert_true(admitted_there(dp, &fresh));
	assert_false(admitted_there(dp, &ended));
	assert_false(admitted_there(dp, &embryo));
	assert_int_equal(counter(dp, 1, WEIR_ADMISSION_SWEPT), 2);
	pair_close(&live);
}

static void test_sweep_lets_go_what_is_due(void **state)
{
	struct datapath *dp = *state;
	__u64 now_ns = datapath_now_ns(), soon = now_ns - 9 * WEIR_NS_PER_S, late = now_ns - 11 * WEIR_NS_PER_S;
	const struct weir_conn conns[] = {
		{ .dying = 1, .last_ns = soon },
		{ .dying = 0, .last_ns = late },
		{ .dying = 1, .last_ns = late, .splice.cuts = 1 },
		{ .dying = 1, .last_ns = late },
		{ .dying = 1, .last_ns = late, .splice.cuts = 1, .phase = WEIR_PHASE_CLOSED },
		{ .dying = 1, .last_ns = now_ns - 61 * WEIR_NS_PER_S, .splice.cuts = 1 },
	};
	enum {
		KEPT = 3,
		ALL = sizeof(conns) / sizeof(*conns)
	};

	for (int i = 0; i < ALL; i++)
		conn_put(dp, &(struct weir_flow){ .client_port = i }, conns[i]);
	assert_int_equal(datapath_sweep(dp, 2 * MINUTE_NS, &error), 0);
	for (int i = 0; i < ALL; i++)
		assert_int_equal(conn_there(dp, &(struct weir_flow){ .client_port = i }), i < KEPT);
	assert_int_equal(counter(dp, 0, WEIR_CONN_CLOSED), ALL - KEPT);
	assert_int_equal(counter(dp, 0, WEIR_CONN_SWEPT), 0);
}

/* One reading of the table is for both: what is due and idle is let go, and not swept as well. */
static void test_sweep_of_both(void **state)
{
	const struct weir_flow due = { .client_port = 1 }, idle = { .client_port = 2 };
	struct datapath *dp = *state;

	conn_put(dp, &due, (struct weir_conn){ .dying = 1, .last_ns = LONG_AGO });
	conn_put(dp, &idle, (struct weir_conn){ .last_ns = LONG_AGO });
	assert_int_equal(datapath_sweep(dp, MINUTE_NS, &error), 1);
	assert_false(conn_there(dp, &due));
	assert_false(conn_there(dp, &idle));
	assert_int_equal(counter(dp, 0, WEIR_CONN_CLOSED), 2);
	assert_int_equal(counter(dp, 0, WEIR_CONN_SWEPT), 1);
}

/*
 * More entries than the cursor reads at a time. They are laid to rest and swept slowly: entries that are deleted at once are freed at once, by a
 * CPU that does nothing else meanwhile.
 */
static void test_sweep_of_many(void **state)
{
	enum {
		DEAD = 5000,
		MOST_A_MS = 40
	};
	struct datapath *dp = *state;
	struct pair live = { .listen = "::1", .connect = "::1" };
	__u64 before_ns;

	done(datapath_remove(dp, &error));
	datapath_close(dp);
	*state = dp = open_datapath(2 * DEAD);
	call_inside(pair_connect, &live);
	conn_put(dp, &live.flow, (struct weir_conn){ .last_ns = LONG_AGO });
	for (__u32 i = 0; i < DEAD; i++) {
		struct weir_flow flow = live.flow;

		memcpy(flow.client, &i, sizeof(i));
		flow.client[15] = 9;
		conn_put(dp, &flow, (struct weir_conn){ .last_ns = LONG_AGO });
	}
	before_ns = datapath_now_ns();
	assert_int_equal(datapath_sweep(dp, MINUTE_NS, &error), DEAD);
	assert_true(datapath_now_ns() - before_ns >= 2 * (DEAD / MOST_A_MS) * 1000000ULL);
	assert_true(conn_there(dp, &live.flow));
	assert_int_equal(counter(dp, 0, WEIR_CONN_SWEPT), DEAD);
	pair_close(&live);
}

static void test_reset_ends_translated_ones(void **state)
{
	struct datapath *dp = *state;
	struct pair pairs[] = {
		{ .listen = "::ffff:127.0.0.1", .connect = "::ffff:127.0.0.1", .ip4 = true },
		{ .listen = "::1", .connect = "::1" },
		{ .listen = "::", .connect = "::ffff:127.0.0.1" },
		{ .listen = "::1", .connect = "::1", .device = "lo" },
		{ .listen = "::1", .connect = "::1" }, /* not translated */
		{ .listen = "::1", .connect = "::1" }, /* another server's */
	};
	enum {
		PAIRS = sizeof(pairs) / sizeof(*pairs),
		RESET = 4
	};
	struct weir_flow gone = { .client_port = 1, .server_port = 2 };
	char byte;

	for (int i = 0; i < PAIRS; i++) {
		call_inside(pair_connect, &pairs[i]);
		conn_put(dp, &pairs[i].flow,
			 (struct weir_conn){ .server = i == 5 ? 2 : 1, .splice.cuts = i == 4 ? 0 : 1 });
	}
	conn_put(dp, &gone, (struct weir_conn){ .server = 1, .splice.cuts = 1 });

	assert_int_equal(datapath_reset_translated(dp, 1, &error), RESET + 1);
	for (int i = 0; i < PAIRS; i++) {
		bool ended = i < RESET;

		assert_int_equal(conn_there(dp, &pairs[i].flow), !ended);
		assert_int_equal(recv(pairs[i].client, &byte, 1, ended ? 0 : MSG_DONTWAIT), -1);
		assert_int_equal(errno, ended ? ECONNRESET : EAGAIN);
		assert_int_equal(recv(pairs[i].server, &byte, 1, ended ? 0 : MSG_DONTWAIT), -1);
		assert_int_equal(errno, ended ? ECONNABORTED : EAGAIN);
		pair_close(&pairs[i]);
	}
	assert_false(conn_there(dp, &gone));
	assert_int_equal(counter(dp, 1, WEIR_CONN_RESET), RESET + 1);
	assert_int_equal(counter(dp, 1, WEIR_SPLICE_CLOSED), RESET + 1);
	assert_int_equal(datapath_reset_translated(dp, 1, &error), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, datapath_setup, datapath_teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_sweep_keeps_what_lives),
		TEST(test_sweep_forgets_what_is_gone),
		TEST(test_sweep_of_what_was_admitted),
		TEST(test_sweep_lets_go_what_is_due),
		TEST(test_sweep_of_many),
		TEST(test_sweep_of_both),
		TEST(test_reset_ends_translated_ones),
		TEST(test_forget_compares_the_id),
	};

	return cmocka_run_group_tests_name("datapath_conns", tests, namespaces_setup, NULL);
}
