/* SPDX-License-Identifier: GPL-2.0 */
/* TCP sequence numbers: 32 bits, modulo 2^32, compared within half the space (RFC 9293, 3.4). Host byte order. */
#ifndef WEIR_BASE_SEQ_H
#define WEIR_BASE_SEQ_H

#include "weir/base/types.h"

WEIR_INLINE bool seq_before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

WEIR_INLINE bool seq_after(__u32 a, __u32 b)
{
	return seq_before(b, a);
}

WEIR_INLINE __u32 seq_max(__u32 a, __u32 b)
{
	return seq_before(a, b) ? b : a;
}

#endif
