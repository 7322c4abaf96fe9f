/* SPDX-License-Identifier: GPL-2.0 */
#include "wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH 64
#define SNAP_BYTES 160
#define RECEIVE_BUFFER (64 << 20)
#define L3 14
#define IPV4_BYTES 20
#define IPV6_BYTES 40

struct message {
	struct offload offload;
	uint8_t frame[FRAME_MAX];
};

struct wire {
	int out, in;
	bool ipv6;
	size_t waiting;
	uint64_t sent, unsent;
	struct message messages[BATCH];
	struct iovec vectors[BATCH];
	struct mmsghdr headers[BATCH];
};

/* Packets of IP without options that come from the server's port. */
static int filter_port(int fd, bool ipv6, uint16_t port)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, L3 + (ipv6 ? IPV6_BYTES : IPV4_BYTES)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SNAP_BYTES),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(*code), .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static int packet_socket(const char *interface, uint16_t protocol)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_protocol = htons(protocol) };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	address.sll_ifindex = if_nametoindex(interface);
	if (fd < 0 || !address.sll_ifindex || bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	return fd;
}

struct wire *wire_open(const char *interface, bool ipv6, uint16_t server_port)
{
	struct wire *wire = calloc(1, sizeof(*wire));
	int on = 1, size = RECEIVE_BUFFER;

	if (!wire)
		return NULL;
	wire->ipv6 = ipv6;
	wire->out = packet_socket(interface, 0);
	wire->in = packet_socket(interface, ipv6 ? ETH_P_IPV6 : ETH_P_IP);
	if (wire->out < 0 || wire->in < 0 || filter_port(wire->in, ipv6, server_port) ||
	    setsockopt(wire->out, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(wire->in, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size))) {
		wire_close(wire);
		return NULL;
	}
	for (size_t i = 0; i < BATCH; i++) {
		wire->vectors[i].iov_base = &wire->messages[i];
		wire->headers[i].msg_hdr.msg_iov = &wire->vectors[i];
		wire->headers[i].msg_hdr.msg_iovlen = 1;
	}
	return wire;
}

void wire_close(struct wire *wire)
{
	if (wire->out >= 0)
		close(wire->out);
	if (wire->in >= 0)
		close(wire->in);
	free(wire);
}

void wire_send(void *context, const struct offload *offload, const uint8_t *frame, size_t length)
{
	struct wire *wire = context;
	struct message *message = &wire->messages[wire->waiting];

	message->offload = *offload;
	memcpy(message->frame, frame, length);
	wire->vectors[wire->waiting].iov_len = sizeof(message->offload) + length;
	if (++wire->waiting == BATCH)
		wire_flush(wire);
}

/* What the kernel does not send (too long for the interface, a header that it cannot follow) is left out. */
void wire_flush(struct wire *wire)
{
	size_t done = 0;

	while (done < wire->waiting) {
		int n = sendmmsg(wire->out, wire->headers + done, wire->waiting - done, 0);

		if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOBUFS))
			continue;
		wire->unsent += n < 0;
		done += n < 0 ? 1 : n;
	}
	wire->sent += wire->waiting;
	wire->waiting = 0;
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | at[1] << 16 | at[2] << 8 | at[3];
}

static uint16_t get16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static void tell(const struct wire *wire, const uint8_t *frame, size_t length, wire_listener *listener, void *context)
{
	size_t ip = wire->ipv6 ? IPV6_BYTES : IPV4_BYTES;
	const uint8_t *tcp = frame + L3 + ip;
	size_t total, headers;
	struct heard heard;

	if (length < L3 + ip + 20)
		return;
	total = wire->ipv6 ? get16(frame + L3 + 4) + IPV6_BYTES : get16(frame + L3 + 2);
	headers = ip + (tcp[12] >> 4) * 4;
	heard.port = get16(tcp + 2);
	heard.seq = get32(tcp + 4);
	heard.ack = get32(tcp + 8);
	heard.flags = tcp[13];
	heard.length = total > headers ? total - headers : 0;
	listener(context, &heard);
}

void wire_hear(struct wire *wire, int wait_ms, wire_listener *listener, void *context)
{
	struct pollfd ready = { .fd = wire->in, .events = POLLIN };
	static uint8_t frames[BATCH][SNAP_BYTES];
	struct iovec vectors[BATCH];
	struct mmsghdr headers[BATCH];
	int n;

	if (wait_ms && poll(&ready, 1, wait_ms) <= 0)
		return;
	memset(headers, 0, sizeof(headers));
	for (size_t i = 0; i < BATCH; i++) {
		vectors[i] = (struct iovec){ .iov_base = frames[i], .iov_len = SNAP_BYTES };
		headers[i].msg_hdr.msg_iov = &vectors[i];
		headers[i].msg_hdr.msg_iovlen = 1;
	}
	do {
		n = recvmmsg(wire->in, headers, BATCH, MSG_DONTWAIT, NULL);
		for (int i = 0; i < n; i++)
			tell(wire, frames[i], headers[i].msg_len, listener, context);
	} while (n == BATCH);
}

uint64_t wire_sent(const struct wire *wire)
{
	return wire->sent;
}

uint64_t wire_unsent(const struct wire *wire)
{
	return wire->unsent;
}
