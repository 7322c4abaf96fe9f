/* SPDX-License-Identifier: GPL-2.0 */
#include "bare.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "turned.h"
#include "weir.skel.h"

#define TLS_RECORD 1024
#define BODY (1 << 22)
#define ACKNOWLEDGED 1448 /* bytes, by one packet: a thousand are less than a body */
#define BADGE 0x80000001U

/* A program of weir's, and one of its kind that does nothing. */
struct pair {
	int program, nothing;
};

static struct weir_conn timed_connection(void)
{
	struct weir_conn c = connection(1);

	c.splice.has_ts = c.splice.client_has_ts = 1;
	c.splice.server_scale = 14; /* its window has room for a round of a body */
	return c;
}

/* Both sides are in the midst of a body. */
static void connect_body(void)
{
	struct weir_conn c = timed_connection();

	c.request_next += BODY;
	c.response_next += BODY;
	connection_put(&c);
}

/* The server has sent a body that its client has not acknowledged. */
static void connect_answered(void)
{
	struct weir_conn c = timed_connection();

	c.response_next += BODY;
	c.splice.server_end += BODY;
	connection_put(&c);
}

/* What the client has sent of a body was read on its way. */
static void connect_read(void)
{
	struct weir_conn c = timed_connection();

	c.request_next += BODY;
	c.splice.passed_end += BODY;
	c.badge = BADGE;
	connection_put(&c);
}

/* It speaks TLS. */
static void connect_opaque(void)
{
	struct weir_conn c = timed_connection();

	weir_conn_opaque(&c, CLIENT_NEXT, WEIR_TLS);
	connection_put(&c);
}

struct bare {
	const char *name;
	struct pair pair;
	struct spec spec;
	void (*connect)(void); /* before each round; NULL: it is of no connection */
	struct turned turned;
	bool at_socket; /* where no program can make another packet of it */
	__u32 priority;
	bool from_elsewhere;
};

static void least(__u32 *ns, __u32 other)
{
	if (other < *ns)
		*ns = other;
}

static __u32 round_ns(const struct bare *b, int program, struct packet *packet)
{
	return b->at_socket ? run_marked_ns(program, packet, b->priority, BARE_ROUND) :
			      turned_ns(program, packet, &b->turned, BARE_ROUND);
}

static void measure(const struct bare *b, __u32 times)
{
	struct packet packet = b->from_elsewhere ? packet_from_elsewhere(b->spec) : packet_of(b->spec);
	__u32 ns = ~0U, empty_ns = ~0U;

	for (__u32 i = 0; i < times; i += BARE_ROUND) {
		if (b->connect)
			b->connect();
		least(&empty_ns, round_ns(b, b->pair.nothing, &packet));
		least(&ns, round_ns(b, b->pair.program, &packet));
	}
	printf("{\"packet\": \"%s\", \"ns\": %u, \"empty_ns\": %u}\n", b->name, ns, empty_ns);
}

void measure_bare(__u32 times, const char *only)
{
	static char record[TLS_RECORD] = { 0x17, 0x03, 0x03, (TLS_RECORD - 5) >> 8, (TLS_RECORD - 5) & 0xff };
	const struct pair ingress = { bpf_program__fd(dp->skeleton->progs.weir_ingress),
				      turned_program(TURNED_NOTHING) };
	const struct pair egress = { bpf_program__fd(dp->skeleton->progs.weir_egress), ingress.nothing };
	const struct pair hold = { bpf_program__fd(dp->skeleton->progs.weir_hold),
				   empty_program(BPF_PROG_TYPE_CGROUP_SKB) };
	const struct turned next = { .seq = sizeof(record) }, more = { .ack = ACKNOWLEDGED };
	const struct spec text = { .text = record, .n_text = sizeof(record) };
	const struct spec answer = { .text = record, .n_text = sizeof(record), .from_server = true };
	const struct bare packets[] = {
		{ .name = "UDP", .pair = ingress, .spec = { .protocol = 17 } },
		{ .name = "to another port", .pair = ingress, .spec = { .port = SERVER_PORT + 1 } },
		{ .name = "from another port",
		  .pair = egress,
		  .spec = { .port = SERVER_PORT + 1, .from_server = true } },
		{ .name = "to another port, at the socket",
		  .pair = hold,
		  .spec = { .port = SERVER_PORT + 1 },
		  .at_socket = true },
		{ .name = "pure ACK from the client of a followed connection",
		  .pair = ingress,
		  .connect = connect_answered,
		  .turned = more },
		{ .name = "pure ACK from its server",
		  .pair = egress,
		  .spec = { .from_server = true },
		  .connect = connect_body,
		  .turned = more },
		{ .name = "pure ACK, at the socket", .pair = hold, .connect = connect_body, .at_socket = true },
		{ .name = "1 KiB of a body from a client",
		  .pair = ingress,
		  .spec = text,
		  .connect = connect_body,
		  .turned = next },
		{ .name = "1 KiB of a body from its server",
		  .pair = egress,
		  .spec = answer,
		  .connect = connect_body,
		  .turned = next },
		{ .name = "1 KiB that was read on its way, at the socket",
		  .pair = hold,
		  .spec = text,
		  .connect = connect_read,
		  .priority = BADGE,
		  .at_socket = true },
		/* A half-made checksum in a packet of a test run would be a decoy's; a made one fits that packet alone. */
		{ .name = "TLS record from a client, 1 KiB, whose checksum nobody has checked",
		  .pair = ingress,
		  .spec = text,
		  .connect = connect_opaque,
		  .from_elsewhere = true },
		{ .name = "TLS record from its server, 1 KiB",
		  .pair = egress,
		  .spec = answer,
		  .connect = connect_opaque,
		  .turned = next },
	};

	for (size_t i = 0; i < sizeof(packets) / sizeof(*packets); i++)
		if (strstr(packets[i].name, only))
			measure(&packets[i], times);
	close(hold.nothing);
}
