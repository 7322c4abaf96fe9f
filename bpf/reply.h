/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Making another packet of the one in hand: the answer that goes back to the client, and what the server may see of
 * the packet that was answered. Both are written whole, headers and all, so nothing of the old packet shines through.
 */
#ifndef WEIR_BPF_REPLY_H
#define WEIR_BPF_REPLY_H

#include "checksum_skb.h"
#include "write.h"

#define TEXT_SUM_BYTES 508 /* whole words; older kernels sum 512 bytes at once */

/* Of the first `text` bytes of w->reply.text, behind which are zeros up to a whole word. */
__noinline __u64 text_sum(struct work *w, __u32 text)
{
	__u64 sum = 0;

	if (!w || !text || text > WEIR_ANSWER_TEXT)
		return 0;
	if (text > TEXT_SUM_BYTES) {
		sum = (__u32)bpf_csum_diff(NULL, 0, (__be32 *)w->reply.text, TEXT_SUM_BYTES, 0);
		text -= TEXT_SUM_BYTES;
		return sum +
		       (__u32)bpf_csum_diff(NULL, 0, (__be32 *)(w->reply.text + TEXT_SUM_BYTES), (text + 3) & 0x7c, 0);
	}
	return (__u32)bpf_csum_diff(NULL, 0, (__be32 *)w->reply.text, (text + 3) & 0x1fc, 0);
}

static __always_inline __u32 write_tcp(struct work *w, __u8 *at, const struct weir_segment *g, bool to_client,
				       __u32 text, bool partial)
{
	const struct packet *p = &w->packet;
	__u32 bytes = TCP_BYTES + (g->has_ts ? TCP_TS_BYTES : 0);
	struct {
		struct tcp_header tcp;
		__be32 ts[3];
	} h = {
		.tcp = {
			.source = to_client ? p->dest_port : p->source_port,
			.dest = to_client ? p->source_port : p->dest_port,
			.seq = bpf_htonl(g->seq),
			.ack = bpf_htonl(g->ack),
			.offset = bytes / 4 << 4,
			.flags = g->flags,
			.window = bpf_htons(g->window),
		},
	};
	__u64 sum = pseudo_sum(p, bytes + text);

	if (g->has_ts) {
		h.ts[0] = bpf_htonl(TCP_TS_WORD);
		h.ts[1] = bpf_htonl(g->tsval);
		h.ts[2] = bpf_htonl(g->tsecr);
	}
	if (!partial) {
		sum += sum_words(&h, sizeof(h) / 4);
		sum += text_sum(w, text);
		h.tcp.check = ~weir_sum_fold(sum);
	} else {
		h.tcp.check = weir_sum_fold(sum);
	}
	__builtin_memcpy(at, &h, sizeof(h));
	return bytes;
}

/* A reply has no IP options or extension headers: they are taken out, so that the TCP header stands where its own will. */
static __always_inline int make_ip_plain(struct __sk_buff *skb, struct packet *p)
{
	__u32 l4 = ETHERNET_BYTES + (p->ipv6 ? IPV6_BYTES : IPV4_BYTES);

	if (p->plain_ip)
		return 0;
	if (bpf_skb_adjust_room(skb, (__s32)(l4 - p->l4), BPF_ADJ_ROOM_NET, 0))
		return -1;
	p->l4 = l4;
	p->plain_ip = 1;
	return 0;
}

/* Writes w->reply.segment over the packet, with `text` bytes of w->reply.text (zeros up to a whole word) as payload. */
__noinline int packet_write(struct __sk_buff *skb, struct work *w, int to_client, __u32 text)
{
	__u32 l4, header;
	bool partial;

	if (!w || make_ip_plain(skb, &w->packet) || checksum_is_partial(skb, w->packet.l4, &partial))
		return -1;
	l4 = w->packet.ipv6 ? ETHERNET_BYTES + IPV6_BYTES : ETHERNET_BYTES + IPV4_BYTES;
	write_ethernet(w, to_client);
	if (w->packet.ipv6)
		header = l4 + write_tcp(w, w->reply.head + ETHERNET_BYTES + IPV6_BYTES, &w->reply.segment, to_client,
					text, partial);
	else
		header = l4 + write_tcp(w, w->reply.head + ETHERNET_BYTES + IPV4_BYTES, &w->reply.segment, to_client,
					text, partial);
	if (w->packet.ipv6)
		write_ipv6(w, to_client, header - l4 + text);
	else
		write_ipv4(w, to_client, header - l4 + text);

	if (bpf_skb_change_tail(skb, header + text, 0))
		return -1;
	if (header < ETHERNET_BYTES || header > WEIR_HEAD_BYTES ||
	    bpf_skb_store_bytes(skb, 0, w->reply.head, header, BPF_F_RECOMPUTE_CSUM))
		return -1;
	if (!text)
		return 0;
	text = size_up_to(WEIR_ANSWER_TEXT, text);
	return bpf_skb_store_bytes(skb, header, w->reply.text, text, BPF_F_RECOMPUTE_CSUM) ? -1 : 0;
}

/* The answer that was chosen, with the name of its limit if that is told; NULL: there is none. */
static __always_inline struct weir_answer *answer_of(struct work *w, const struct weir_answer_choice *choice)
{
	__u32 limit = weir_limit_index(w->server, choice->limit);
	__u32 index = weir_answer_index(choice->kind, weir_retry_digits(choice->retry_s));
	struct weir_refusal *refusal;

	if (choice->rejected) {
		index = weir_rejection_index(choice->rejected);
		return bpf_map_lookup_elem(&answers, &index);
	}
	refusal = bpf_map_lookup_elem(&refusals, &limit);
	if (!refusal || index >= WEIR_REFUSALS)
		return bpf_map_lookup_elem(&answers, &index);
	return &refusal->answers[index];
}

/* How much of an answer is sent; 0: nothing can be. */
static __always_inline __u32 answer_sent(const struct weir_answer *a, const struct weir_answer_choice *choice)
{
	__u32 length = choice->head ? a->head_length : a->length;

	return length > WEIR_ANSWER_TEXT ? 0 : length;
}

/* The same of the one that was chosen. */
__noinline int answer_length(struct work *w, struct weir_answer_choice *choice)
{
	struct weir_answer *a = w && choice ? answer_of(w, choice) : NULL;

	return a ? answer_sent(a, choice) : 0;
}

/* Puts the text of an answer into w->reply.text, zeros up to a whole word. Returns its length, 0 when there is none. */
__noinline int answer_text(struct work *w, struct weir_answer_choice *choice)
{
	struct weir_answer *a;
	__u32 length;

	if (!w || !choice)
		return 0;
	a = answer_of(w, choice);
	if (!a)
		return 0;
	length = answer_sent(a, choice);
	if (!length)
		return 0;
	__builtin_memcpy(w->reply.text, a->text, WEIR_ANSWER_TEXT);
	weir_answer_stamp(w->reply.text, a, choice->retry_s);
	/* The checksum is taken over whole words. */
	w->reply.text[length] = 0;
	w->reply.text[length + 1] = 0;
	w->reply.text[length + 2] = 0;
	return length;
}

#endif
