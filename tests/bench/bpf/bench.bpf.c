// SPDX-License-Identifier: GPL-2.0
/* Programs that benchmarks run in front of weir's, beside them, and in place of a part of them. On the maps of weir.bpf.c. */
#include "vmlinux.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "../../../bpf/frame_response.h"

#include "../turned.h"

#define IP_AT 14
#define IP_BYTES 20
#define IP_SUM_AT 24
#define ADDRESS_AT 26 /* of an IPv4 packet in an Ethernet frame, without options */
#define PORT_AT 34
#define SEQ_AT 38
#define ACK_AT 42
#define TCP_SUM_AT 50
#define HEADERS 54

struct turned turned;
__u32 read_to; /* the byte behind the heads that were read */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} target SEC(".maps");

/* Whose heads are read: whose server owes `requests` answers. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct weir_conn);
} read_of SEC(".maps");

/* --- one packet of a test run, as another one in each run */

static __always_inline void add_to(__u8 *number, __u32 n)
{
	*(__u32 *)number = bpf_htonl(bpf_ntohl(*(__u32 *)number) + n);
}

static __always_inline __u16 sum_of(__u8 *bytes, __u32 n, __u32 seed)
{
	__u32 sum = bpf_csum_diff(NULL, 0, (__be32 *)bytes, n, seed);

	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/* With the IP header's checksum, and that of the pseudo header, which stands where TCP's will. */
static __always_inline void come_from(struct __sk_buff *skb, __u8 *data, __u32 address)
{
	*(__u32 *)(data + ADDRESS_AT) = bpf_htonl(address);
	*(__u16 *)(data + IP_SUM_AT) = 0;
	*(__u16 *)(data + IP_SUM_AT) = ~sum_of(data + IP_AT, IP_BYTES, 0);
	*(__u16 *)(data + TCP_SUM_AT) = sum_of(data + ADDRESS_AT, 8, bpf_htons(TCP_PROTOCOL + skb->len - PORT_AT));
}

SEC("tc")
int turn(struct __sk_buff *skb)
{
	__u8 *data = (__u8 *)(long)skb->data;

	if (data + HEADERS > (__u8 *)(long)skb->data_end)
		return 0;
	add_to(data + SEQ_AT, turned.seq);
	add_to(data + ACK_AT, turned.ack);
	if (turned.clients)
		come_from(skb, data, TURNED_NETWORK + bpf_get_prandom_u32() % turned.clients);
	bpf_tail_call(skb, &target, 0);
	return 0;
}

SEC("tc")
int nothing(struct __sk_buff *skb __attribute__((unused)))
{
	return 0;
}

/* Of a client's packet: its connection is looked for, and that is all. */
SEC("tc")
int look_up(struct __sk_buff *skb)
{
	__u8 *data = (__u8 *)(long)skb->data;
	struct weir_flow flow = { .client = { [10] = 0xff, 0xff }, .server = { [10] = 0xff, 0xff } };
	const struct weir_conn *c;

	if (data + HEADERS > (__u8 *)(long)skb->data_end)
		return 0;
	__builtin_memcpy(flow.client + 12, data + ADDRESS_AT, 4);
	__builtin_memcpy(flow.server + 12, data + ADDRESS_AT + 4, 4);
	__builtin_memcpy(&flow.client_port, data + PORT_AT, 2);
	__builtin_memcpy(&flow.server_port, data + PORT_AT + 2, 2);
	c = bpf_map_lookup_elem(&conns, &flow);
	return c ? c->phase : 0;
}

/* --- a packet's heads, read and nothing else */

static __always_inline struct work *work_begin(struct __sk_buff *skb, __u32 hook)
{
	struct work *w = work_of(hook);

	if (!w)
		return NULL;
	w->packet.payload = turned.payload;
	w->packet.segment.seq = 0;
	w->packet.segment.len = skb->len - turned.payload;
	w->server = 0;
	return w;
}

/* What reading needs is found, and nothing is read. */
static __always_inline int find_and_read_nothing(struct __sk_buff *skb, __u32 hook)
{
	struct work *w = work_begin(skb, hook);
	__u32 zero = 0;
	struct weir_conn *c = bpf_map_lookup_elem(&read_of, &zero);

	if (w && c)
		read_to = w->packet.segment.len * c->requests;
	return 0;
}

SEC("tc")
int read_no_request(struct __sk_buff *skb)
{
	return find_and_read_nothing(skb, HOOK_INGRESS);
}

SEC("tc")
int read_no_response(struct __sk_buff *skb)
{
	return find_and_read_nothing(skb, HOOK_EGRESS);
}

/* As if it had been decided before. */
SEC("tc")
int read_requests(struct __sk_buff *skb)
{
	struct work *w = work_begin(skb, HOOK_INGRESS);
	__u32 zero = 0;
	struct weir_conn *c = bpf_map_lookup_elem(&read_of, &zero);

	if (!w || !c)
		return 0;
	weir_request_reader_open(&w->request, c, NULL);
	w->request.again = 1;
	frame_requests(skb, w);
	read_to = w->request.next;
	return 0;
}

SEC("tc")
int read_responses(struct __sk_buff *skb)
{
	struct work *w = work_begin(skb, HOOK_EGRESS);
	__u32 zero = 0;
	struct weir_conn *c = bpf_map_lookup_elem(&read_of, &zero);

	if (!w || !c)
		return 0;
	weir_response_reader_open(&w->response, c, NULL);
	frame_responses(skb, w);
	read_to = w->response.next;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
