/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A pure acknowledgement from one of many clients, each of which has a connection; in a network namespace of its own.
 *
 *   among OBJECT [ROUNDS]
 *
 * One JSON object a line: a thousand of them in a row, each from a client by chance, by three programs in turns: weir's, one that looks the
 * connection up and does nothing else, and one that does nothing. The least means of so many rounds; and how often
 * weir's looks for a connection, awake or at rest.
 *
 *   {"among": CONNECTIONS, "ns": LEAST, "look_up_ns": LEAST, "empty_ns": LEAST, "look_ups": N}
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "turned.h"
#include "weir.skel.h"

#define BATCH 1000
#define REPEATS 1000

static const char *counted; /* weir.bpf.o, with its look-ups counted */
static __u32 rounds = 1000;

static struct weir_flow flow_of(__u32 client)
{
	const __u32 address = htonl(TURNED_NETWORK + client);
	struct weir_flow flow;

	packet_flow(false, &flow);
	memcpy(flow.client + 12, &address, sizeof(address));
	return flow;
}

/* Both sides have sent timestamps. */
static struct weir_conn timed_connection(void)
{
	struct weir_conn c = connection(0);

	c.splice.has_ts = c.splice.client_has_ts = 1;
	return c;
}

static void connect_clients(__u32 from, __u32 to)
{
	static struct weir_flow flows[BATCH];
	static struct weir_conn conns[BATCH];
	__u32 n;

	for (; from < to; from += n) {
		n = to - from < BATCH ? to - from : BATCH;
		for (__u32 i = 0; i < n; i++) {
			flows[i] = flow_of(from + i);
			conns[i] = timed_connection();
		}
		if (bpf_map_update_batch(bpf_map__fd(dp->skeleton->maps.conns), flows, conns, &n, NULL))
			die("connections", errno);
	}
}

static void measure(__u32 clients)
{
	const struct turned how = { .clients = clients };
	const int ingress = bpf_program__fd(dp->skeleton->progs.weir_ingress);
	const int programs[] = { ingress, turned_program(TURNED_LOOK_UP), turned_program(TURNED_NOTHING) };
	struct packet packet = packet_of((struct spec){});
	const struct weir_conn one = timed_connection();
	__u32 least[] = { ~0U, ~0U, ~0U }, ns;

	connection_put(&one);
	for (__u32 i = 0; i < rounds; i++)
		for (int p = 0; p < 3; p++) {
			ns = turned_ns(programs[p], &packet, &how, REPEATS);
			least[p] = ns < least[p] ? ns : least[p];
		}
	printf("{\"among\": %u, \"ns\": %u, \"look_up_ns\": %u, \"empty_ns\": %u, \"look_ups\": %u}\n", clients,
	       least[0], least[1], least[2], turned_look_ups(counted, &packet));
}

static void set_up(__u32 connections)
{
	const struct weir_server server = server_plain();

	server_open(&server, connections);
	turned_open();
}

int main(int argc, char **argv)
{
	static const __u32 connections[] = { 10, 10000, 1000000 };
	__u32 before = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: among OBJECT [ROUNDS]\n");
		return 2;
	}
	counted = argv[1];
	if (argc > 2)
		rounds = strtoul(argv[2], NULL, 10);
	set_up(connections[2] + 1);
	for (int i = 0; i < 3; before = connections[i++]) {
		connect_clients(before, connections[i]);
		measure(connections[i]);
	}
	turned_close();
	done(datapath_remove(dp, &error));
	datapath_close(dp);
	return 0;
}
