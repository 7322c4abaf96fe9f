/* SPDX-License-Identifier: GPL-2.0 */
/* A TCP segment, and in how odd a shape it goes on the wire. */
#ifndef WEIR_TESTS_PACKETS_FRAME_H
#define WEIR_TESTS_PACKETS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_PSH 0x08
#define TCP_ACK 0x10
#define TCP_URG 0x20

#define OPTIONS_MAX 40
#define TAGS_MAX 2
#define EXTENSIONS_MAX 12
#define PIECES_MAX 4
#define FRAME_MAX 9000

struct ends {
	bool ipv6;
	uint8_t source_mac[6], dest_mac[6];
	uint8_t source[16], dest[16]; /* network order; IPv4 in the first four */
	uint16_t source_port, dest_port;
};

struct segment {
	uint32_t seq, ack;
	uint8_t flags;
	uint16_t window, urgent;
	uint8_t options[OPTIONS_MAX];
	size_t options_length;
	int offset_error; /* words that the header claims to have more */
	const uint8_t *data;
	size_t length;
};

enum mac {
	MAC_RIGHT,
	MAC_OTHER,
	MAC_BROADCAST,
	MAC_MULTICAST,
};

enum check {
	CHECK_RIGHT,
	CHECK_WRONG,
	CHECK_BEGUN,   /* the pseudo header's alone, and nobody says so */
	CHECK_PARTIAL, /* the same, and the device is told to finish it */
};

/* One IPv6 extension header. */
struct extension {
	uint8_t kind;
	uint8_t words; /* of 8 bytes, beyond the first */
	uint8_t bytes[2];
};

/* All zero: the plain way. */
struct shape {
	enum mac mac;
	enum check check;
	int tags;
	uint16_t tag_type[TAGS_MAX], tag[TAGS_MAX];
	uint8_t ip_options[OPTIONS_MAX];
	size_t ip_options_length; /* a multiple of 4 */
	int extensions;
	struct extension extension[EXTENSIONS_MAX];
	bool zero_length;   /* what IPv6's header says of its payload */
	int length_error;   /* bytes that the IP header claims to have more */
	size_t trailer;	    /* bytes behind the IP packet */
	bool bad_ip_check;  /* IPv4 */
	uint8_t version;    /* the IP version that is claimed; 0: the right one */
	int pieces;	    /* fragments; 0: none */
	bool pieces_turned; /* the last one first */
	bool pieces_twice;  /* with one of them twice */
	bool pieces_lap;    /* each reaches into the next */
	uint16_t piece_id;
	uint16_t gso_size; /* the frame is one of many segments; 0: it is not */
};

/* What the packet socket is told of a frame (struct virtio_net_hdr). */
struct offload {
	uint8_t flags, gso_type;
	uint16_t header_length, gso_size, check_start, check_offset;
};

typedef void frame_sink(void *context, const struct offload *offload, const uint8_t *frame, size_t length);

/* Hands each frame of the segment to the sink. A segment that does not fit is cut. */
void frame_send(const struct ends *ends, const struct segment *segment, const struct shape *shape, frame_sink *sink,
		void *context);

#endif
