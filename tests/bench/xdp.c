/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the program at XDP costs for one frame, and what the one at tc does for a SYN, by BPF_PROG_TEST_RUN, in a network namespace
 * of its own. The kernel's own work on an skb, which XDP saves, is not among it.
 *
 *   xdp [RUNS]
 *
 * One JSON object a line. {"packet": NAME, "ns": MEAN}. {"frame": NAME, "ns", "empty_ns", "live_ns", "live_empty_ns"}: the least of
 * ROUNDS means, in turns with a program that does nothing and says the same; live: as frames of a device, which are freed, or go up
 * the stack, in batches as a driver's. With a limit on the connections of each address. {"answer": WHO, "live_ns"}: a SYN that is answered
 * by a cookie.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../prog/limited.h"
#include "xdp.skel.h"

#define LOOPBACK 1 /* the device that BPF_PROG_TEST_RUN lends */

#define ROUNDS 5

static __u32 times = 1000000;

static int listener_make(void *unused)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(SERVER_PORT) };
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)unused;
	return bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8) ? -errno : 0;
}

struct frame_run {
	int program;
	struct packet packet;
	struct bpf_test_run_opts options;
};

static int run_inside(void *arg)
{
	struct frame_run *run = arg;

	return bpf_prog_test_run_opts(run->program, &run->options);
}

/* ns of one frame. flags: BPF_F_TEST_XDP_LIVE_FRAMES, or 0. */
static __u32 duration(int program, const struct spec *spec, int verdict, __u32 repeat, __u32 flags)
{
	struct frame_run run = { .program = program };

	packet_build(&run.packet, spec);
	run.options = (struct bpf_test_run_opts){
		.sz = sizeof(run.options),
		.data_in = run.packet.bytes,
		.data_size_in = run.packet.length,
		.repeat = repeat,
		.flags = flags,
	};
	assert_int_equal(call_inside(run_inside, &run), 0);
	assert_true(flags || (int)run.options.retval == verdict);
	return run.options.duration;
}

static void measure(const char *name, int program, struct spec spec, int verdict)
{
	printf("{\"packet\": \"%s\", \"ns\": %u}\n", name, duration(program, &spec, verdict, times, 0));
}

static int nothing(enum bpf_prog_type type, int verdict)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = verdict },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(type, "nothing", "GPL", insns, 2, NULL);

	assert_true(fd >= 0);
	return fd;
}

static void measure_frame(const char *name, int program, struct spec spec, int verdict)
{
	const int programs[] = { program, nothing(BPF_PROG_TYPE_XDP, verdict) };
	__u32 least[2][2] = { { UINT32_MAX, UINT32_MAX }, { UINT32_MAX, UINT32_MAX } };

	for (int i = 0; i < 4 * ROUNDS; i++) {
		bool live = i & 2, empty = i & 1;
		__u32 ns = duration(programs[empty], &spec, verdict, times / ROUNDS,
				    live ? BPF_F_TEST_XDP_LIVE_FRAMES : 0);

		if (ns < least[live][empty])
			least[live][empty] = ns;
	}
	close(programs[1]);
	printf("{\"frame\": \"%s\", \"ns\": %u, \"empty_ns\": %u, \"live_ns\": %u, \"live_empty_ns\": %u}\n", name,
	       least[0][0], least[0][1], least[1][0], least[1][1]);
}

/* The listener sends cookies, and is marked as one that has; by a device of its own, whose other end takes whatever comes. */
static void flood_begin(void)
{
	struct weir_device device = { .address = { 2, [5] = 1 }, .answers = 1 };
	struct weir_own_address address = { { 0xfd, [15] = 1 } };
	struct weir_device_key key = {};

	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP | WEIR_SERVER_XDP_COOKIES, &error));
	assert_int_equal(
		inside("sysctl -qw net.ipv4.tcp_syncookies=2 && bash -c 'exec 3<>/dev/tcp/127.0.0.1/%d' && "
		       "ip link add t0 address 02:00:00:00:00:01 type veth peer name t1 && ip addr add fd00::1/64 dev t0 nodad && "
		       "ip link set t1 arp off up && ip link set t0 up && ip -6 neigh add fd00::9 lladdr 2:0:0:0:0:9 dev t0 && "
		       "ethtool -K t0 gro on && ethtool -K t1 gro on",
		       SERVER_PORT),
		0);
	key.ifindex = device.ifindex = ifindex_of("t0");
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(dp->xdp->maps.devices), &key, &device, BPF_ANY), 0);
	assert_int_equal(
		bpf_map_update_elem(bpf_map__fd(dp->xdp->maps.own_addresses), &address, &device.ifindex, BPF_ANY), 0);
}

static void flood_end(void)
{
	assert_int_equal(inside("sysctl -qw net.ipv4.tcp_syncookies=1 && ip link del t0"), 0);
	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP, &error));
}

#define BATCH 64 /* frames that the kernel takes at once, each in memory of its own */

/* ns of one live frame of t0, of a batch. */
static __u32 batch_duration(int program, const struct packet *p)
{
	struct xdp_md context = { .ingress_ifindex = ifindex_of("t0"), .data_end = p->length };
	struct frame_run run = { .program = program };

	run.options = (struct bpf_test_run_opts){
		.sz = sizeof(run.options),
		.data_in = p->bytes,
		.data_size_in = p->length,
		.ctx_in = &context,
		.ctx_size_in = sizeof(context),
		.repeat = BATCH,
		.flags = BPF_F_TEST_XDP_LIVE_FRAMES,
	};
	assert_int_equal(call_inside(run_inside, &run), 0);
	return run.options.duration;
}

/*
 * A SYN in a flood, by IPv6: answered by weir, or by the kernel. An answered frame is another one afterwards, so each batch is a run
 * of its own; the least of many is told.
 */
static void measure_answers(int program)
{
	const struct spec syn = { .ipv6 = true, .seq = 1, .flags = WEIR_TCP_SYN };
	const int programs[] = { program, nothing(BPF_PROG_TYPE_XDP, XDP_PASS) };
	__u32 least[2] = { UINT32_MAX, UINT32_MAX };
	struct packet packet;

	packet_build(&packet, &syn);
	memcpy(packet.bytes, "\2\0\0\0\0\1", 6);
	memcpy(packet.bytes + 6, "\2\0\0\0\0\x9", 6);
	flood_begin();
	for (__u32 i = 0; i < times / BATCH / 10; i++) {
		__u32 ns = batch_duration(programs[i & 1], &packet);

		if (ns < least[i & 1])
			least[i & 1] = ns;
	}
	flood_end();
	close(programs[1]);
	printf("{\"answer\": \"weir\", \"live_ns\": %u}\n{\"answer\": \"the kernel\", \"live_ns\": %u}\n", least[0],
	       least[1]);
}

static void admit(__u64 burst)
{
	struct datapath_limit limit = rate_of(WEIR_KEY_SOURCE, 0, burst);

	limit.kind = WEIR_LIMIT_CONNECTION_RATE;
	slot_set(&limit);
	rules_set(&(struct rules_entry){ .limit = SLOT, .connections = true }, 1);
}

static void measure_frames(void)
{
	const struct weir_device_key key = { .ifindex = LOOPBACK };
	const struct spec syn = { .seq = 1, .flags = WEIR_TCP_SYN };
	const struct weir_device device = { .answers = 1 };
	int program = bpf_program__fd(dp->xdp->progs.weir_xdp);

	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP, &error));
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(dp->xdp->maps.devices), &key, &device, BPF_ANY), 0);
	measure_frame("to another port, passes", program, (struct spec){ .port = SERVER_PORT + 1 }, XDP_PASS);
	measure_frame("of an open connection, passes", program, (struct spec){ .flags = WEIR_TCP_ACK, .ts = true },
		      XDP_PASS);
	admit(1);
	measure_frame("SYN that is admitted", program, syn, XDP_PASS);
	measure_answers(program);
	admit(0);
	measure_frame("SYN that is dropped", program, syn, XDP_DROP);
	measure("tc: any, to a program that does nothing", nothing(BPF_PROG_TYPE_SCHED_CLS, XDP_PASS), syn, XDP_PASS);
	measure("tc: SYN that is refused", ingress, syn, DROP);
}

static int open_all(void **state)
{
	const struct datapath_interfaces wanted = { .xdp = XDP_GENERIC };

	if (attached_open(state) || inside("ip link add x0 type veth peer name x1"))
		return -1;
	done(datapath_links_sync(dp, &wanted, &error));
	return call_inside(listener_make, NULL);
}

int main(int argc, char **argv)
{
	void *state = NULL;
	int ret;

	if (argc > 1)
		times = strtoul(argv[1], NULL, 10);
	ret = open_all(&state) ?: attached_setup(&state);
	if (!ret)
		measure_frames();
	return ret || attached_teardown(&state) || attached_close(&state);
}
