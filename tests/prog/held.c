/* SPDX-License-Identifier: GPL-2.0 */
#include "held.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/cgroup.h"

#define ETHERNET 14
#define BACKLOG 64
#define TRIES 2000

static char *cgroup, *home; /* with the listener; of the test. NULL: there is no cgroup2 here */
static cpu_set_t cpus;
static int listener = -1, raw[2] = { -1, -1 };

void needs_hold(void)
{
	if (!cgroup)
		skip();
}

/* The process goes there. */
static int enter(const char *path)
{
	char name[512];
	FILE *procs;

	snprintf(name, sizeof(name), "%s/cgroup.procs", path);
	procs = fopen(name, "we");
	if (!procs || fputs("0\n", procs) < 0 || fclose(procs))
		return -1;
	return 0;
}

/* A line of /proc/self/cgroup: "0::PATH". */
static int find_home(const char *root)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[512] = "";

	while (file && fgets(line, sizeof(line), file) && strncmp(line, "0::", 3) != 0)
		;
	if (file)
		fclose(file);
	line[strcspn(line, "\n")] = '\0';
	return asprintf(&home, "%s%s", root, strncmp(line, "0::", 3) ? "" : line + 3) < 0 ? -1 : 0;
}

static int listen_here(void *unused)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(SERVER_PORT) };
	int waiting = BACKLOG;

	(void)unused;
	listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	raw[0] = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	raw[1] = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	return setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &waiting, sizeof(waiting)) ||
			       bind(listener, (struct sockaddr *)&address, sizeof(address)) ||
			       listen(listener, BACKLOG) || raw[0] < 0 || raw[1] < 0 ?
		       -errno :
		       0;
}

/* What is sent to the IPv6 client is lost: nobody answers it with a RST. */
static int make_network(void)
{
	return inside("ip -6 addr add fd00::1/128 dev lo nodad && ip link add h0 type veth peer name h1 &&"
		      "ip link set h1 up && ip link set h0 up && ip -6 route add fd00::9 dev h0 &&"
		      "ip -6 neigh add fd00::9 lladdr 02:00:00:00:00:99 dev h0 nud permanent");
}

static int listen_held(void)
{
	const char *const cgroups[] = { cgroup };
	int ret;

	done(datapath_hold_sync(dp, cgroups, 1, &error));
	if (enter(cgroup))
		return -1;
	ret = call_inside(listen_here, NULL);
	return enter(home) ?: ret;
}

int held_open(void **state)
{
	CLEANUP_FREE char *root = cgroup_root();
	cpu_set_t first;
	int cpu = 0;

	if (attached_open(state) || sched_getaffinity(0, sizeof(cpus), &cpus))
		return -1;
	if (!root)
		return 0;
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	CPU_ZERO(&first);
	CPU_SET(cpu, &first);
	if (sched_setaffinity(0, sizeof(first), &first) || find_home(root) ||
	    asprintf(&cgroup, "%s/weir-held-%d", root, getpid()) < 0 || mkdir(cgroup, 0755) || make_network())
		return -1;
	return listen_held();
}

int held_close(void **state)
{
	const int fds[] = { listener, raw[0], raw[1] };

	for (size_t i = 0; i < 3; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	listener = raw[0] = raw[1] = -1;
	if (cgroup) {
		done(datapath_hold_sync(dp, NULL, 0, &error));
		assert_int_equal(inside("ip link del h0 && ip -6 addr del fd00::1/128 dev lo"), 0);
		assert_int_equal(rmdir(cgroup), 0);
	}
	free(cgroup);
	free(home);
	cgroup = home = NULL;
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	return attached_close(state);
}

static void limits_set(void)
{
	const struct datapath_limit rate = { .kind = WEIR_LIMIT_CONNECTION_RATE,
					     .reason = WEIR_SHED_COMBINED,
					     .epoch = 1,
					     .amount = { .set = true, .burst = HELD_LIMIT } };
	const struct datapath_limit open = { .kind = WEIR_LIMIT_OPEN,
					     .reason = WEIR_SHED_IN_FLIGHT,
					     .epoch = 1,
					     .amount = { .set = true, .seats = HELD_LIMIT } };
	CLEANUP_RULE struct rule any = { 0 };
	const struct rules_entry entries[] = { { .rules = &any, .n = 1, .limit = SLOT },
					       { .rules = &any, .n = 1, .limit = OPEN_SLOT } };

	done(datapath_limit_set(dp, 0, SLOT, &rate, &error));
	done(datapath_limit_set(dp, 0, OPEN_SLOT, &open, &error));
	rules_set(entries, 2);
}

int held_setup(void **state)
{
	attached_setup(state);
	limits_set();
	return 0;
}

/* Of whatever came last the hold says now what became of it. */
static void settle(void)
{
	held_send(&(struct spec){ .ipv6 = true, .seq = CLIENT_NEXT, .flags = WEIR_TCP_RST });
}

int held_teardown(void **state)
{
	if (cgroup)
		settle();
	return attached_teardown(state);
}

__u64 held_taken(void)
{
	__u64 seats[WEIR_SERVER_LIMITS] = {};

	done(datapath_in_flight(dp, 0, 1, seats, &error));
	return seats[OPEN_SLOT];
}

unsigned int held_admitted(void)
{
	struct weir_flow key, next, *at = NULL;
	unsigned int n = 0;

	while (!bpf_map_get_next_key(dp->maps.admitted, at, &next)) {
		key = next;
		at = &key;
		n++;
	}
	return n;
}

struct client {
	bool ipv6;
	__u32 priority;
	int fd;
};

static socklen_t address_of_server(bool ipv6, struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;

	*address = (struct sockaddr_storage){};
	if (ipv6) {
		*in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(SERVER_PORT) };
		inet_pton(AF_INET6, "fd00::1", &in6->sin6_addr);
		return sizeof(*in6);
	}
	*in = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(SERVER_PORT) };
	inet_pton(AF_INET, "127.0.0.1", &in->sin_addr);
	return sizeof(*in);
}

static int begin(void *arg)
{
	struct linger at_once = { .l_onoff = 1 };
	struct client *client = arg;
	struct sockaddr_storage to;
	socklen_t length = address_of_server(client->ipv6, &to);
	int fd = socket(client->ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	client->fd = fd;
	if (setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &client->priority, sizeof(client->priority)) ||
	    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) ||
	    (connect(fd, (struct sockaddr *)&to, length) && errno != EINPROGRESS))
		return -errno;
	return 0;
}

static __u64 refusals(void)
{
	return counter(WEIR_ADMISSION_DROPPED) + counter(WEIR_UNREADABLE);
}

int held_connect(bool ipv6, __u32 priority)
{
	struct client client = { .ipv6 = ipv6, .priority = priority };
	__u64 before = refusals();

	assert_int_equal(call_inside(begin, &client), 0);
	for (int i = 0; i < TRIES; i++) {
		if (poll(&(struct pollfd){ .fd = client.fd, .events = POLLOUT }, 1, 5) == 1)
			return client.fd;
		if (refusals() != before) {
			close(client.fd);
			return -1;
		}
	}
	fail_msg("a client is neither served nor refused");
	return -1;
}

int held_accept(void)
{
	int fd;

	assert_int_equal(poll(&(struct pollfd){ .fd = listener, .events = POLLIN }, 1, 5 * TRIES), 1);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

void held_reset(int fd)
{
	struct linger at_once = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
}

unsigned int held_visits(bool ipv6, unsigned int n, __u32 priority)
{
	unsigned int got = 0;

	while (n--) {
		int client = held_connect(ipv6, priority);

		if (client < 0)
			continue;
		held_reset(held_accept());
		close(client);
		got++;
	}
	return got;
}

void held_send(const struct spec *spec)
{
	struct sockaddr_storage to;
	socklen_t length = address_of_server(spec->ipv6, &to);

	/* The port of a raw socket's address is its protocol. */
	((struct sockaddr_in *)&to)->sin_port = 0;
	packet_build(&packet, spec);
	assert_int_equal(sendto(raw[spec->ipv6], packet.bytes + ETHERNET, packet.length - ETHERNET, 0,
				(struct sockaddr *)&to, length),
			 packet.length - ETHERNET);
}

void eventually(bool (*is)(void))
{
	for (int i = 0; i < TRIES && !is(); i++)
		usleep(5000);
	assert_true(is());
}
