/* SPDX-License-Identifier: GPL-2.0 */
#include "frames.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "xdp.skel.h"

#define LOOPBACK 1 /* the device that BPF_PROG_TEST_RUN lends */

static int programs[2];
static int listener = -1;

static int listener_make(void *unused)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(SERVER_PORT) };

	(void)unused;
	listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8) ? -errno : 0;
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
	return call_inside(listener_make, NULL);
}

int frames_close(void **state)
{
	close(listener);
	return attached_close(state);
}

void device_add(__u32 tags, __u8 last)
{
	struct weir_device_key key = { .ifindex = LOOPBACK, .tags = tags };
	struct weir_device device = { .address = { [5] = last } };

	assert_int_equal(bpf_map_update_elem(bpf_map__fd(dp->xdp->maps.devices), &key, &device, BPF_ANY), 0);
}

struct frame_run {
	int program;
	const struct packet *packet;
	int verdict;
};

static int run_inside(void *arg)
{
	struct frame_run *run = arg;
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = run->packet->bytes,
			    .data_size_in = run->packet->length);
	int ret = bpf_prog_test_run_opts(run->program, &options);

	run->verdict = options.retval;
	return ret;
}

int frame_verdict(const struct packet *p)
{
	struct frame_run run[2] = { { .program = programs[0], .packet = p }, { .program = programs[1], .packet = p } };

	for (int i = 0; i < 2; i++)
		assert_int_equal(call_inside(run_inside, &run[i]), 0);
	assert_int_equal(run[0].verdict, run[1].verdict);
	return run[0].verdict;
}

int native_verdict(const struct packet *p)
{
	struct frame_run run = { .program = programs[0], .packet = p };

	assert_int_equal(call_inside(run_inside, &run), 0);
	return run.verdict;
}
