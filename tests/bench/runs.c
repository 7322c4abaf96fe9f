/* SPDX-License-Identifier: GPL-2.0 */
#include "runs.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TCP_CHECK_AT (14 + 20 + 16)

void die(const char *what, int error_number)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(error_number));
	exit(1);
}

struct weir_server server_plain(void)
{
	struct weir_server server = { .flags = WEIR_SERVER_ACTIVE, .swallow_max = 65536 };

	weir_reading_default(&server.reading);
	return server;
}

void server_open(const struct weir_server *server, __u32 connections)
{
	static const struct datapath_listen listen = { .any = true, .port = SERVER_PORT };
	static const struct datapath_cidr proxy = { .address = { [10] = 0xff, 0xff, 127 }, .bits = 96 + 8 };

	if (namespaces_setup(NULL))
		die("a network namespace", errno);
	dp = open_datapath(connections);
	done(datapath_server_set(dp, 0, server, &listen, 1, &proxy, 1, &error));
}

struct run {
	int program;
	struct packet *packet;
	__u32 priority;
	__u32 repeat;
	__u32 ns;
};

static int run_inside(void *arg)
{
	struct run *run = arg;
	struct __sk_buff context = { .priority = run->priority };
	struct bpf_test_run_opts options = {
		.sz = sizeof(options),
		.data_in = run->packet->bytes,
		.data_size_in = run->packet->length,
		.ctx_in = &context,
		.ctx_size_in = sizeof(context),
		.repeat = run->repeat,
	};

	if (bpf_prog_test_run_opts(run->program, &options))
		return -errno;
	run->ns = options.duration;
	return 0;
}

__u32 run_marked_ns(int program, struct packet *packet, __u32 priority, __u32 repeat)
{
	struct run run = { .program = program, .packet = packet, .priority = priority, .repeat = repeat };
	int ret = call_inside(run_inside, &run);

	if (ret)
		die("test run", -ret);
	return run.ns;
}

__u32 run_ns(int program, struct packet *packet, __u32 repeat)
{
	return run_marked_ns(program, packet, 0, repeat);
}

int empty_program(enum bpf_prog_type type)
{
	static const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = 1 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct bpf_prog_load_opts options = { .sz = sizeof(options) };
	int fd;

	if (type == BPF_PROG_TYPE_CGROUP_SKB)
		options.expected_attach_type = BPF_CGROUP_INET_INGRESS;
	fd = bpf_prog_load(type, "nothing", "GPL", nothing, 2, &options);
	if (fd < 0)
		die("an empty program", errno);
	return fd;
}

/* The sum of the pseudo header stands where the checksum will, as in a packet that has not left this host. */
static void leave_checksum(struct packet *p)
{
	__u32 sum = 6 + p->length - 34;

	for (int i = 26; i < 34; i += 2)
		sum += p->bytes[i] << 8 | p->bytes[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	p->bytes[TCP_CHECK_AT] = sum >> 8;
	p->bytes[TCP_CHECK_AT + 1] = sum;
}

struct packet packet_from_elsewhere(struct spec spec)
{
	struct packet p;

	spec.seq += spec.from_server ? SERVER_NEXT : CLIENT_NEXT;
	spec.ack += spec.from_server ? CLIENT_NEXT : SERVER_NEXT;
	spec.flags |= WEIR_TCP_ACK;
	spec.window = 501;
	spec.ts = true;
	packet_build(&p, &spec);
	return p;
}

struct packet packet_of(struct spec spec)
{
	struct packet p = packet_from_elsewhere(spec);

	leave_checksum(&p);
	return p;
}

void connection_put(const struct weir_conn *c)
{
	struct weir_flow flow;

	packet_flow(false, &flow);
	if (bpf_map_update_elem(dp->maps.conns, &flow, c, BPF_ANY))
		die("conns", errno);
}

struct weir_conn connection(__u32 outstanding)
{
	struct weir_conn c = {};

	weir_conn_open(&c, 0, WEIR_PHASE_FOLLOWED, CLIENT_NEXT, SERVER_NEXT, 501);
	c.splice.server_scale = 7;
	c.splice.told = SERVER_NEXT;
	c.requests = outstanding;
	return c;
}

void connect_anew(__u32 outstanding)
{
	struct weir_conn c = connection(outstanding);

	connection_put(&c);
}
