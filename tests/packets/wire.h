/* SPDX-License-Identifier: GPL-2.0 */
/* Frames to and from an interface. */
#ifndef WEIR_TESTS_PACKETS_WIRE_H
#define WEIR_TESTS_PACKETS_WIRE_H

#include "frame.h"

struct wire;

/* What has come from the server. */
struct heard {
	uint16_t port; /* the client's */
	uint32_t seq, ack;
	uint8_t flags;
	size_t length;
};

typedef void wire_listener(void *context, const struct heard *heard);

/* NULL, and errno, when the interface cannot be had. server_port: whose packets are heard. */
struct wire *wire_open(const char *interface, bool ipv6, uint16_t server_port);
void wire_close(struct wire *wire);

/* A frame_sink; the context is the wire. Frames wait until there are many of them, or for wire_flush(). */
void wire_send(void *context, const struct offload *offload, const uint8_t *frame, size_t length);
void wire_flush(struct wire *wire);

/* Tells the listener what has come; waits up to wait_ms for it. */
void wire_hear(struct wire *wire, int wait_ms, wire_listener *listener, void *context);

/* Frames sent, and those among them that the kernel would not send. */
uint64_t wire_sent(const struct wire *wire);
uint64_t wire_unsent(const struct wire *wire);

#endif
