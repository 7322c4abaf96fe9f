/* SPDX-License-Identifier: GPL-2.0 */
/* From a segment's header and options to plain numbers, and plain numbers back into the skb. */
#ifndef WEIR_BPF_TCP_H
#define WEIR_BPF_TCP_H

#include "packet.h"

#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_SACK 5
#define TCP_OPTION_TS 8
#define TCP_OPTION_MD5 19
#define TCP_OPTION_MD5_BYTES 18
#define TCP_OPTION_AO 29
#define TCP_OPTION_MPTCP 30
#define TCP_OPTION_TFO 34
#define TCP_OPTION_EXPERIMENT 254	 /* RFC 4727 */
#define TCP_OPTION_EXPERIMENT_TFO 0xf989 /* its first two bytes where it is TCP Fast Open's (RFC 7413, appendix) */
#define TCP_TS_WORD 0x0101080a /* NOP NOP kind length: how the timestamp option stands in nearly every segment */

static __always_inline __u32 option_word(const struct packet *p, __u32 at)
{
	at &= 63;
	if (at > sizeof(p->options) - 4)
		return 0;
	return (__u32)p->options[at] << 24 | (__u32)p->options[at + 1] << 16 | (__u32)p->options[at + 2] << 8 |
	       p->options[at + 3];
}

static __always_inline void packet_read_sack(struct packet *p, __u32 at, __u32 length)
{
	struct weir_segment *g = &p->segment;
	__u32 blocks = (length - 2) / 8;

	if (blocks > WEIR_SACK_BLOCKS)
		blocks = WEIR_SACK_BLOCKS;
	for (__u32 i = 0; i < WEIR_SACK_BLOCKS; i++) {
		if (i >= blocks)
			break;
		g->sack[i].start = option_word(p, at + 2 + 8 * i);
		g->sack[i].end = option_word(p, at + 6 + 8 * i);
	}
	g->sacks = blocks;
	p->sack_at = p->l4 + TCP_BYTES + at + 2;
}

static __always_inline bool option_is_tfo(const struct packet *p, __u32 kind, __u32 at, __u32 size)
{
	if (kind == TCP_OPTION_EXPERIMENT)
		return size >= 4 && (option_word(p, at) & 0xffff) == TCP_OPTION_EXPERIMENT_TFO;
	return kind == TCP_OPTION_TFO;
}

/* There may be several of a kind, of which the kernel takes the last, or the first: all are noted. */
static __always_inline void option_note_unwanted(struct packet *p, __u32 kind, __u32 at, __u32 size)
{
	bool tfo = option_is_tfo(p, kind, at, size);

	if (kind != TCP_OPTION_MPTCP && !tfo)
		return;
	p->tfo |= tfo;
	p->mptcp |= !tfo;
	p->unwanted |= ((1ULL << (size & 63)) - 1) << (at & 63);
}

struct option_walk {
	struct packet *packet;
};

/* The option at p->option_at. Positions live in the packet, not in registers, or the verifier follows each of them. */
static long option_step(__u32 i __attribute__((unused)), struct option_walk *walk)
{
	struct packet *p = walk->packet;
	struct weir_segment *g = &p->segment;
	__u32 at = p->option_at, kind, size;

	if (at + 1 >= p->options_length)
		return 1;
	kind = p->options[at & 63];
	if (kind == TCP_OPTION_END)
		return 1;
	if (kind == TCP_OPTION_NOP) {
		p->option_at = at + 1;
		return 0;
	}
	size = p->options[(at + 1) & 63];
	if (size < 2 || at + size > p->options_length)
		return 1;
	if (kind == TCP_OPTION_TS && size == 10) {
		g->has_ts = 1;
		g->tsval = option_word(p, at + 2);
		g->tsecr = option_word(p, at + 6);
	} else if (kind == TCP_OPTION_SACK && size >= 10) {
		packet_read_sack(p, at, size);
	} else if (kind == TCP_OPTION_AO || (kind == TCP_OPTION_MD5 && size == TCP_OPTION_MD5_BYTES)) {
		p->signature = kind;
	} else {
		option_note_unwanted(p, kind, at, size);
	}
	p->option_at = at + size;
	return 0;
}

/* Reads TCP options, of which there are `length` bytes, not 0. */
__noinline int packet_read_options(packet_context *ctx, struct packet *p, __u32 length)
{
	struct option_walk walk = { .packet = p };

	if (!p)
		return 0;
	length = size_up_to(TCP_OPTION_BYTES, length);
	if (context_load(ctx, p->l4 + TCP_BYTES, p->options, length))
		return 0;
	p->option_at = 0;
	p->options_length = length;
	bpf_loop(TCP_OPTION_BYTES, option_step, &walk, 0);
	return 0;
}

/* What nearly every segment has, and nothing else. */
static __always_inline bool packet_read_timestamp(packet_context *ctx, struct packet *p)
{
	const __be32 *words = header_at(ctx, p, p->l4 + TCP_BYTES, TCP_TS_BYTES);

	if (!words || words[0] != bpf_htonl(TCP_TS_WORD))
		return false;
	p->segment.has_ts = 1;
	p->segment.tsval = bpf_ntohl(words[1]);
	p->segment.tsecr = bpf_ntohl(words[2]);
	return true;
}

/* Reads the TCP header behind the ports. False: malformed, the kernel will drop it. */
static __always_inline bool packet_parse_tcp(packet_context *ctx, struct packet *p, __u32 end)
{
	const struct tcp_header *tcp = header_at(ctx, p, p->l4, sizeof(*tcp));
	struct weir_segment *g = &p->segment;
	__u32 length;

	if (!tcp)
		return false;
	length = (tcp->offset >> 4) * 4;
	p->payload = p->l4 + length;
	if (length < TCP_BYTES || p->payload > end)
		return false;
	g->seq = bpf_ntohl(tcp->seq);
	g->ack = bpf_ntohl(tcp->ack);
	g->len = end - p->payload;
	g->window = bpf_ntohs(tcp->window);
	g->flags = tcp->flags;
	g->sacks = 0;
	g->has_ts = 0;
	g->tsval = 0;
	g->tsecr = 0;
	p->check = tcp->check;
	p->sack_at = 0;
	p->mptcp = 0;
	p->tfo = 0;
	p->unwanted = 0;
	p->signature = 0;
	if (length > TCP_BYTES && (length != TCP_BYTES + TCP_TS_BYTES || !packet_read_timestamp(ctx, p)))
		packet_read_options(ctx, p, length - TCP_BYTES);
	return true;
}

/* Puts changed SACK blocks back. They may stand at an odd offset, where a sum's bytes are swapped. */
static __always_inline int packet_store_sacks(struct __sk_buff *skb, const struct packet *p)
{
	const struct weir_segment *g = &p->segment;

	for (__u32 i = 0; i < WEIR_SACK_BLOCKS; i++) {
		__u32 at = p->sack_at + 8 * i;
		__be32 old[2], new[2];
		__s64 diff;

		if (i >= g->sacks)
			break;
		if (bpf_skb_load_bytes(skb, at, old, sizeof(old)))
			return -1;
		new[0] = bpf_htonl(g->sack[i].start);
		new[1] = bpf_htonl(g->sack[i].end);
		diff = bpf_csum_diff(old, sizeof(old), new, sizeof(new), 0);
		if ((at - p->l4) & 1) {
			diff = (diff & 0xffff) + ((__u32)diff >> 16);
			diff = (diff & 0xffff) + (diff >> 16);
			diff = bpf_ntohs(diff);
		}
		if (bpf_l4_csum_replace(skb, p->l4 + __builtin_offsetof(struct tcp_header, check), 0, diff, 0) ||
		    bpf_skb_store_bytes(skb, at, new, sizeof(new), 0))
			return -1;
	}
	return 0;
}

/* Puts a translated segment's numbers back into the packet; the checksum moves by the difference. */
__noinline int packet_store_numbers(struct __sk_buff *skb, struct packet *p)
{
	__be32 old[2], new[2];
	__s64 diff;
	__u32 at;

	if (!p)
		return -1;
	at = p->l4 + __builtin_offsetof(struct tcp_header, seq);
	new[0] = bpf_htonl(p->segment.seq);
	new[1] = bpf_htonl(p->segment.ack);
	if (bpf_skb_load_bytes(skb, at, old, sizeof(old)))
		return -1;
	diff = bpf_csum_diff(old, sizeof(old), new, sizeof(new), 0);
	if (bpf_l4_csum_replace(skb, p->l4 + __builtin_offsetof(struct tcp_header, check), 0, diff, 0) ||
	    bpf_skb_store_bytes(skb, at, new, sizeof(new), 0))
		return -1;
	return p->segment.sacks ? packet_store_sacks(skb, p) : 0;
}

#endif
