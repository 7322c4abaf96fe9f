/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the program at XDP costs for one frame, and what the one at tc does for a SYN, by BPF_PROG_TEST_RUN, in a network namespace
 * of its own. The kernel's own work on an skb, which XDP saves, is not among it.
 *
 *   xdp [RUNS]
 *
 * One JSON object a line: {"packet": NAME, "ns": MEAN}. With a limit on the connections of each address.
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../prog/limited.h"
#include "xdp.skel.h"

#define LOOPBACK 1 /* the device that BPF_PROG_TEST_RUN lends */

static __u32 times = 1000000;

static int listener_make(void *unused)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(SERVER_PORT) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

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

static void measure(const char *name, int program, struct spec spec, int verdict)
{
	struct frame_run run = { .program = program };

	packet_build(&run.packet, &spec);
	run.options = (struct bpf_test_run_opts){
		.sz = sizeof(run.options),
		.data_in = run.packet.bytes,
		.data_size_in = run.packet.length,
		.repeat = times,
	};
	assert_int_equal(call_inside(run_inside, &run), 0);
	assert_int_equal(run.options.retval, verdict);
	printf("{\"packet\": \"%s\", \"ns\": %u}\n", name, run.options.duration);
}

static int nothing(enum bpf_prog_type type)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_PASS },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int fd = bpf_prog_load(type, "nothing", "GPL", insns, 2, NULL);

	assert_true(fd >= 0);
	return fd;
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
	const struct weir_device device = { 0 };
	int program = bpf_program__fd(dp->xdp->progs.weir_xdp);

	done(datapath_server_flags(dp, 0, WEIR_SERVER_ACTIVE | WEIR_SERVER_XDP, &error));
	assert_int_equal(bpf_map_update_elem(bpf_map__fd(dp->xdp->maps.devices), &key, &device, BPF_ANY), 0);
	measure("XDP: any, to a program that does nothing", nothing(BPF_PROG_TYPE_XDP), syn, XDP_PASS);
	measure("XDP: to another port", program, (struct spec){ .port = SERVER_PORT + 1 }, XDP_PASS);
	measure("XDP: pure ACK to a server", program, (struct spec){ .flags = WEIR_TCP_ACK, .ts = true }, XDP_PASS);
	admit(1);
	measure("XDP: SYN that passes", program, syn, XDP_PASS);
	admit(0);
	measure("XDP: SYN that is refused", program, syn, XDP_DROP);
	measure("tc: any, to a program that does nothing", nothing(BPF_PROG_TYPE_SCHED_CLS), syn, XDP_PASS);
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
