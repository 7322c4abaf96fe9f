/* SPDX-License-Identifier: GPL-2.0 */
#include "frames.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "xdp.skel.h"

#define LOOPBACK 1 /* the device that BPF_PROG_TEST_RUN lends */

static int programs[2];
static int listeners[2] = { -1, -1 };

struct listening {
	int *fd, shared;
};

static int listener_make(void *arg)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(SERVER_PORT) };
	struct listening *l = arg;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*l->fd = fd;
	return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &l->shared, sizeof(l->shared)) ||
			       bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 8) ?
		       -errno :
		       0;
}

static void listen_with(size_t n)
{
	for (int i = 0; i < 2; i++) {
		if (listeners[i] >= 0)
			close(listeners[i]);
		listeners[i] = -1;
	}
	for (size_t i = 0; i < n; i++)
		assert_int_equal(call_inside(listener_make, &(struct listening){ &listeners[i], n > 1 }), 0);
}

void frames_listen_anew(void)
{
	listen_with(1);
}

void frames_listen_shared(void)
{
	listen_with(2);
}

int frames_open(void **state)
{
	const struct datapath_interfaces wanted = { .xdp = XDP_GENERIC };

	if (attached_open(state))
		return -1;
	assert_int_equal(inside("ip link add x0 type veth peer name x1"), 0);
	done(datapath_links_sync(dp, &wanted, &error));
	assert_non_null(dp->xdp);
	programs[0] = bpf_program__fd(dp->xdp->progs.weir_xdp);
	programs[1] = bpf_program__fd(dp->xdp->progs.weir_xdp_generic);
	listen_with(1);
	return 0;
}

int frames_close(void **state)
{
	const char *const nowhere[] = { "none" };
	const struct datapath_interfaces none = { .names = nowhere, .n = 1 };

	listen_with(0);
	done(datapath_links_sync(dp, &none, &error));
	assert_int_equal(inside("ip link del x0"), 0);
	return attached_close(state);
}

void device_add(__u32 tags, __u8 last)
{
	struct weir_device_key key = { .ifindex = LOOPBACK, .tags = tags };
	struct weir_device device = { .address = { [5] = last }, .answers = 1, .ifindex = LOOPBACK };

	device_put(&key, &device);
	for (int ipv6 = 0; ipv6 < 2; ipv6++)
		address_add(ipv6, device.ifindex);
}

void device_put(const struct weir_device_key *key, const struct weir_device *device)
{
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(dp->xdp->maps.devices), key, device, BPF_ANY), 0);
}

struct frame_test {
	int program;
	const struct packet *packet;
	struct packet out;
	struct xdp_md context;
	bool live;
	int verdict;
};

static int run_inside(void *arg)
{
	struct frame_test *test = arg;
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = test->packet->bytes, .data_size_in = test->packet->length);
	int ret;

	if (test->live) {
		options.ctx_in = &test->context;
		options.ctx_size_in = sizeof(test->context);
		options.repeat = 1; /* a second time it would be what became of the first */
		options.flags = BPF_F_TEST_XDP_LIVE_FRAMES;
	} else {
		options.data_out = test->out.bytes;
		options.data_size_out = sizeof(test->out.bytes);
	}
	ret = bpf_prog_test_run_opts(test->program, &options);
	test->out.length = options.data_size_out;
	test->verdict = options.retval;
	return ret;
}

void address_add(bool ipv6, __u32 ifindex)
{
	struct weir_flow flow;

	packet_flow(ipv6, &flow);
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(dp->xdp->maps.own_addresses), flow.server, &ifindex, BPF_ANY),
			 0);
}

void address_drop(bool ipv6)
{
	struct weir_flow flow;

	packet_flow(ipv6, &flow);
	assert_int_equal(bpf_map_delete_elem(bpf_map__fd(dp->xdp->maps.own_addresses), flow.server), 0);
}

int frame_runs;

static void run_both(struct frame_test tests[2], const struct packet *p)
{
	for (int i = 0; i < 2; i++) {
		tests[i] = (struct frame_test){ .program = programs[i], .packet = p };
		assert_int_equal(call_inside(run_inside, &tests[i]), 0);
		frame_runs++;
	}
}

/* A cookie's number is another one from one minute to the next, which may end between the two. */
int frame_run(struct packet *p)
{
	static struct frame_test tests[2];

	frame_runs = 0;
	run_both(tests, p);
	if (tests[0].verdict == XDP_TX && memcmp(tests[0].out.bytes, tests[1].out.bytes, tests[0].out.length) != 0)
		run_both(tests, p);
	assert_int_equal(tests[0].verdict, tests[1].verdict);
	assert_int_equal(tests[0].out.length, tests[1].out.length);
	assert_memory_equal(tests[0].out.bytes, tests[1].out.bytes, tests[0].out.length);
	*p = tests[0].out;
	return tests[0].verdict;
}

int frame_verdict(const struct packet *p)
{
	static struct packet copy;

	copy = *p;
	return frame_run(&copy);
}

int native_verdict(const struct packet *p)
{
	static struct frame_test test;

	test = (struct frame_test){ .program = programs[0], .packet = p };
	assert_int_equal(call_inside(run_inside, &test), 0);
	return test.verdict;
}

void frame_live(const char *device, const struct packet *p)
{
	static struct frame_test test;

	test = (struct frame_test){ .program = programs[0], .packet = p, .live = true };
	test.context.ingress_ifindex = ifindex_of(device);
	test.context.data_end = p->length;
	assert_int_equal(call_inside(run_inside, &test), 0);
}

void frame_tag(struct packet *p, const __u16 *tags, size_t n)
{
	memmove(p->bytes + 12 + 4 * n, p->bytes + 12, p->length - 12);
	for (size_t i = 0; i < 2 * n; i++) {
		p->bytes[12 + 2 * i] = tags[i] >> 8;
		p->bytes[13 + 2 * i] = tags[i];
	}
	p->length += 4 * n;
}
