/* SPDX-License-Identifier: GPL-2.0 */
/* A connection whose two ends are real sockets of this process, on loopback: for programs that ask the server's socket. */
#ifndef WEIR_TESTS_ENDS_H
#define WEIR_TESTS_ENDS_H

#include <linux/tcp.h>

#include "weir/base/types.h"

/* In the namespace of the programs (call_inside()), with the ends in packets.h. Returns a negative errno. */
int ends_make(void *unused);
void ends_close(void);
/* Both ends go by a RST, and the listener stays. */
void ends_part(void);
/* From now on the server's end takes only what is signed (TCP-MD5). Returns a negative errno. */
int ends_sign(void);
/* The client says it, or the server, and the other end has heard all of it. */
void ends_say(bool client_says, const char *text);
/* The server's end becomes one that was restored from a checkpoint, as if by another process. call_inside() */
int ends_restore(void *unused);
/* The number of the next byte in one of the server's queues: TCP_RECV_QUEUE or TCP_SEND_QUEUE. */
__u32 ends_queue(int queue);
/* The server has room for so many bytes, from the next one on, and no more. */
void ends_room(__u32 bytes);

#endif
