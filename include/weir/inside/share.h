/* SPDX-License-Identifier: GPL-2.0 */
/* Which connections a server refuses requests of, where it is to be tried with some of them first (attach --inside-share). */
#ifndef WEIR_INSIDE_SHARE_H
#define WEIR_INSIDE_SHARE_H

#include "weir/limit/match.h"

#define WEIR_INSIDE_ALL 100 /* percent */

/* A connection that belongs to a share belongs to all larger ones, too. One whose peer is not known belongs to 100 % alone. */
WEIR_INLINE bool weir_inside_shares(__u32 percent, bool known, const __u8 address[16], __u16 port)
{
	__u64 words[2];

	if (percent >= WEIR_INSIDE_ALL || !known)
		return percent >= WEIR_INSIDE_ALL;
	__builtin_memcpy(words, address, sizeof(words));
	return (weir_pair(weir_pair(words[0], words[1]), port) & 0xffffffff) * WEIR_INSIDE_ALL >> 32 < percent;
}

#endif
