/* SPDX-License-Identifier: GPL-2.0 */
/* Packets as bytes, for programs run by BPF_PROG_TEST_RUN: built from numbers, and read back with every sum checked. */
#ifndef WEIR_TESTS_PACKETS_H
#define WEIR_TESTS_PACKETS_H

#include <linux/bpf.h>

#include "weir/conn/conn.h"

#define PACKET_ROOM 16384
#define CLIENT_PORT 40000
#define SERVER_PORT 8080

struct spec {
	bool ipv6;
	bool mapped; /* its source is the IPv4 one's, mapped */
	bool from_server;
	__u32 seq, ack;
	__u8 flags;
	__u16 window, urgent;
	bool ts;
	__u32 tsval, tsecr;
	const __u8 *options; /* behind the timestamp; a multiple of 4 bytes */
	size_t n_options;
	const char *text;
	size_t n_text; /* 0: strlen(text) */
	bool bad_checksum;
	bool begun_checksum; /* it is left to the device, as on loopback */
	__u8 protocol;	     /* 0: TCP */
	__u16 port;	     /* the server's; 0: SERVER_PORT */
	__u16 client_port;   /* 0: CLIENT_PORT */
};

struct packet {
	__u8 bytes[PACKET_ROOM];
	size_t length;
};

/* What a packet says; text points into it. */
struct seen {
	bool from_server;
	__u32 seq, ack;
	__u8 flags;
	__u16 window, urgent;
	bool ts;
	__u32 tsval, tsecr;
	const __u8 *options;
	size_t n_options;
	const char *text;
	size_t n_text;
};

void packet_build(struct packet *p, const struct spec *spec);
/* Puts eight bytes of no meaning between the IP header and the TCP header: an option list, or an extension header. */
void packet_lengthen_ip(struct packet *p);
/* The same of an IPv6 packet, with n extension headers in a row; with_length: or else the IP header says 0. */
void packet_extend(struct packet *p, unsigned int n, bool with_length);
/* Makes the IP header's checksum right, if there is one. */
void packet_sum_ip(struct packet *p);
/* Fails the test when an address, a length or a checksum is wrong. */
void packet_see(const struct packet *p, struct seen *seen);

/* Runs a tc program on the packet, which becomes what the program made of it. Returns the program's verdict. */
int packet_run(int program, struct packet *p);
/* The same; *context is what the program left of what is not in the packet's bytes. */
int packet_run_in(int program, struct packet *p, struct __sk_buff *context);

/* The same of a packet that the kernel has put together from segments of gso_size bytes (GRO). */
int packet_run_gro(int program, struct packet *p, __u32 gso_size);

/* The key of the connection between the two ends that all these packets have. */
void packet_flow(bool ipv6, struct weir_flow *flow);

#endif
