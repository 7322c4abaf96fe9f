/* SPDX-License-Identifier: GPL-2.0 */
/* A TCP segment's header as plain numbers (host byte order): what the pure core sees and rewrites. */
#ifndef WEIR_TCP_SEGMENT_H
#define WEIR_TCP_SEGMENT_H

#include "weir/base/types.h"

#define WEIR_TCP_FIN 0x01
#define WEIR_TCP_SYN 0x02
#define WEIR_TCP_RST 0x04
#define WEIR_TCP_PSH 0x08
#define WEIR_TCP_ACK 0x10
#define WEIR_TCP_URG 0x20

#define WEIR_SACK_BLOCKS 4

struct weir_segment {
	__u32 seq;
	__u32 ack; /* valid with WEIR_TCP_ACK */
	__u32 len; /* payload bytes; SYN and FIN not counted */
	__u16 window;
	__u8 flags;
	__u8 sacks; /* blocks in use */
	struct {
		__u32 start, end;
	} sack[WEIR_SACK_BLOCKS];
	__u32 tsval, tsecr;
	__u8 has_ts;
	__u8 pad[3];
};

WEIR_INLINE bool weir_segment_has(const struct weir_segment *g, __u8 flags)
{
	return WEIR_FRESH(g->flags) & flags;
}

#endif
