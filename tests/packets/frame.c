/* SPDX-License-Identifier: GPL-2.0 */
#include "frame.h"

#include <arpa/inet.h>
#include <linux/virtio_net.h>
#include <string.h>

#define ETHERNET_IPV4 0x0800
#define ETHERNET_IPV6 0x86dd
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define TCP_BYTES 20
#define TCP_CHECK_AT 16
#define PROTOCOL_TCP 6
#define PROTOCOL_FRAGMENT 44
#define IPV4_DONT_FRAGMENT 0x4000
#define IPV4_MORE 0x2000
#define DATA_MAX (FRAME_MAX - 600) /* leaves room for all headers */

struct buffer {
	uint8_t bytes[FRAME_MAX + 64];
	size_t length;
};

static void put(struct buffer *b, const void *data, size_t length)
{
	if (b->length + length > FRAME_MAX)
		return;
	memcpy(b->bytes + b->length, data, length);
	b->length += length;
}

static void put8(struct buffer *b, unsigned int value)
{
	uint8_t byte = value;

	put(b, &byte, 1);
}

static void put16(struct buffer *b, unsigned int value)
{
	put8(b, value >> 8 & 0xff);
	put8(b, value & 0xff);
}

static void put32(struct buffer *b, uint32_t value)
{
	put16(b, value >> 16);
	put16(b, value & 0xffff);
}

static void put_zeros(struct buffer *b, size_t n)
{
	while (n--)
		put8(b, 0);
}

static void set16(uint8_t *at, unsigned int value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static uint32_t sum(const uint8_t *data, size_t length, uint32_t total)
{
	for (size_t i = 0; i + 1 < length; i += 2)
		total += data[i] << 8 | data[i + 1];
	if (length & 1)
		total += data[length - 1] << 8;
	return total;
}

static uint16_t fold(uint32_t total)
{
	while (total >> 16)
		total = (total & 0xffff) + (total >> 16);
	return total;
}

static uint32_t pseudo_sum(const struct ends *ends, size_t length)
{
	size_t address = ends->ipv6 ? 16 : 4;

	return sum(ends->dest, address, sum(ends->source, address, PROTOCOL_TCP + length));
}

/* The TCP header and its data. */
static void put_segment(struct buffer *b, const struct ends *ends, const struct segment *s, const struct shape *shape)
{
	size_t words = (TCP_BYTES + s->options_length + 3) / 4, data = s->length < DATA_MAX ? s->length : DATA_MAX;
	uint16_t check;

	put16(b, ends->source_port);
	put16(b, ends->dest_port);
	put32(b, s->seq);
	put32(b, s->ack);
	put8(b, ((words + s->offset_error) & 15) << 4);
	put8(b, s->flags);
	put16(b, s->window);
	put16(b, 0);
	put16(b, s->urgent);
	put(b, s->options, s->options_length);
	put_zeros(b, words * 4 - TCP_BYTES - s->options_length);
	put(b, s->data, data);
	check = fold(pseudo_sum(ends, b->length));
	if (shape->check == CHECK_RIGHT || shape->check == CHECK_WRONG)
		check = ~fold(sum(b->bytes, b->length, check)) ^ (shape->check == CHECK_WRONG);
	set16(b->bytes + TCP_CHECK_AT, check);
}

static void put_mac(struct buffer *b, const struct ends *ends, enum mac mac)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 }, multicast[6] = { 1, 0, 0x5e, 1, 2, 3 };
	uint8_t other[6];

	memcpy(other, ends->dest_mac, sizeof(other));
	other[0] = 2;
	other[5] ^= 0x55;
	put(b,
	    mac == MAC_BROADCAST ? broadcast :
	    mac == MAC_MULTICAST ? multicast :
	    mac == MAC_OTHER	 ? other :
				   ends->dest_mac,
	    6);
	put(b, ends->source_mac, 6);
}

static void put_ethernet(struct buffer *b, const struct ends *ends, const struct shape *shape)
{
	put_mac(b, ends, shape->mac);
	for (int i = 0; i < shape->tags; i++) {
		put16(b, shape->tag_type[i]);
		put16(b, shape->tag[i]);
	}
	put16(b, ends->ipv6 ? ETHERNET_IPV6 : ETHERNET_IPV4);
}

/* A part of an IP packet: `offset` bytes into it. */
struct piece {
	size_t offset, length;
	bool is_fragment, more;
};

static void put_ipv4(struct buffer *b, const struct ends *ends, const struct shape *shape, const struct piece *piece)
{
	size_t at = b->length, header = IPV4_BYTES + shape->ip_options_length;
	unsigned int fragment = piece->is_fragment ? piece->offset / 8 | (piece->more ? IPV4_MORE : 0) :
						     IPV4_DONT_FRAGMENT;

	put8(b, (shape->version ? shape->version : 4) << 4 | header / 4);
	put8(b, 0);
	put16(b, header + piece->length + shape->length_error);
	put16(b, shape->piece_id);
	put16(b, fragment);
	put8(b, 64);
	put8(b, PROTOCOL_TCP);
	put16(b, 0);
	put(b, ends->source, 4);
	put(b, ends->dest, 4);
	put(b, shape->ip_options, shape->ip_options_length);
	set16(b->bytes + at + 10, ~fold(sum(b->bytes + at, header, 0)) ^ shape->bad_ip_check);
}

/* The kind of header number i of a chain that ends with TCP; `fragment` stands before all others but hop by hop. */
static uint8_t extension_kind(const struct shape *shape, int i)
{
	return i < shape->extensions ? shape->extension[i].kind : PROTOCOL_TCP;
}

static void put_extension(struct buffer *b, const struct extension *extension, uint8_t next, uint32_t id)
{
	put8(b, next);
	if (extension->kind == PROTOCOL_FRAGMENT) {
		put8(b, 0);
		put16(b, 0);
		put32(b, id);
		return;
	}
	put8(b, extension->words);
	put(b, extension->bytes, 2);
	/* After these two: one option that fills the rest, or, of a routing header, what it has reserved. */
	put_zeros(b, 4 + 8 * extension->words);
}

static void put_ipv6(struct buffer *b, const struct ends *ends, const struct shape *shape, const struct piece *piece)
{
	struct buffer chain;
	uint8_t first = piece->is_fragment ? PROTOCOL_FRAGMENT : extension_kind(shape, 0);

	chain.length = 0;
	if (piece->is_fragment) {
		put8(&chain, PROTOCOL_TCP);
		put8(&chain, 0);
		put16(&chain, piece->offset | piece->more);
		put32(&chain, shape->piece_id);
	}
	for (int i = 0; i < shape->extensions && !piece->is_fragment; i++)
		put_extension(&chain, &shape->extension[i], extension_kind(shape, i + 1), shape->piece_id + i);
	put32(b, (uint32_t)(shape->version ? shape->version : 6) << 28);
	put16(b, shape->zero_length ? 0 : chain.length + piece->length + shape->length_error);
	put8(b, first);
	put8(b, 64);
	put(b, ends->source, 16);
	put(b, ends->dest, 16);
	put(b, chain.bytes, chain.length);
}

static void set_offload(struct offload *offload, const struct shape *shape, bool ipv6, size_t l4, size_t tcp_header)
{
	if (shape->check == CHECK_PARTIAL) {
		offload->flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		offload->check_start = l4;
		offload->check_offset = TCP_CHECK_AT;
	}
	if (shape->gso_size && shape->check == CHECK_PARTIAL) {
		offload->gso_type = ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4;
		offload->gso_size = shape->gso_size;
		offload->header_length = l4 + tcp_header;
	}
}

static void send_piece(const struct ends *ends, const struct shape *shape, const struct buffer *segment,
		       const struct piece *piece, frame_sink *sink, void *context)
{
	struct offload offload = { 0 };
	struct buffer frame;
	size_t l4;

	frame.length = 0;
	put_ethernet(&frame, ends, shape);
	if (ends->ipv6)
		put_ipv6(&frame, ends, shape, piece);
	else
		put_ipv4(&frame, ends, shape, piece);
	l4 = frame.length;
	put(&frame, segment->bytes + piece->offset, piece->length);
	put_zeros(&frame, shape->trailer);
	if (!piece->is_fragment)
		set_offload(&offload, shape, ends->ipv6, l4, (segment->bytes[12] >> 4) * 4);
	sink(context, &offload, frame.bytes, frame.length);
}

/* Pieces end at multiples of 8 bytes, except the last. */
static void send_pieces(const struct ends *ends, const struct shape *shape, const struct buffer *segment,
			frame_sink *sink, void *context)
{
	size_t size = (segment->length / shape->pieces + 8) & ~(size_t)7;
	int n = (segment->length + size - 1) / size;

	for (int k = 0; k < n + shape->pieces_twice; k++) {
		int i = shape->pieces_turned ? n - 1 - k % n : k % n;
		struct piece piece = { .offset = i * size, .length = size, .is_fragment = true, .more = true };

		if (shape->pieces_lap)
			piece.length += 8;
		if (piece.offset + piece.length >= segment->length) {
			piece.length = segment->length - piece.offset;
			piece.more = i < n - 1;
		}
		send_piece(ends, shape, segment, &piece, sink, context);
	}
}

void frame_send(const struct ends *ends, const struct segment *segment, const struct shape *shape, frame_sink *sink,
		void *context)
{
	struct buffer bytes;

	bytes.length = 0;
	put_segment(&bytes, ends, segment, shape);
	if (shape->pieces > 0)
		send_pieces(ends, shape, &bytes, sink, context);
	else
		send_piece(ends, shape, &bytes, &(struct piece){ .length = bytes.length }, sink, context);
}
