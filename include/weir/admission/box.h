/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The penalty box: who asks again before its penalty (include/weir/limit/penalty.h) is over is held at XDP until then. XDP knows
 * addresses only. So a box belongs to the address from which a penalised subject asked, and names the limit and the subject:
 * it is shut for as long as that penalty lasts, and no longer.
 *
 * A subject that is an address is the box's own. One that is a user is boxed while nobody else is known to ask from there.
 */
#ifndef WEIR_ADMISSION_BOX_H
#define WEIR_ADMISSION_BOX_H

#include "weir/base/subject.h"
#include "weir/limit/limit.h"

/* Who was not seen for so long does not ask from there any more. */
#define WEIR_BOX_OTHERS_NS (600 * WEIR_NS_PER_S)

struct weir_box_key {
	__u8 address[16]; /* network order, IPv4 as ::ffff:a.b.c.d, IPv6 cut to its /64 */
	__u32 server;
	__u32 pad;
};
WEIR_ASSERT_SIZE(struct weir_box_key, 24);

struct weir_box {
	__u64 user;	 /* subject: who asked last */
	__u64 others_ns; /* when it was somebody else for the last time; 0: never */
	__u64 subject;	 /* who may be penalised */
	__u32 limit;	 /* weir_limit_index() + 1, by which; 0: none */
	__u32 pad;
};
WEIR_ASSERT_SIZE(struct weir_box, 32);

WEIR_INLINE struct weir_box_key weir_box_key(__u32 server, const __u8 address[16])
{
	struct weir_box_key key = { .server = server };

	__builtin_memcpy(key.address, address, sizeof(key.address));
	if (!weir_address_is_ipv4(address))
		__builtin_memset(key.address + 8, 0, 8);
	return key;
}

/* The user has asked from the box's address. */
WEIR_INLINE void weir_box_asked(struct weir_box *box, __u64 user, __u64 now_ns)
{
	if (box->user == user)
		return;
	if (box->user)
		box->others_ns = now_ns;
	box->user = user;
}

/* Is the user who asked last the only one? */
WEIR_INLINE bool weir_box_is_ones(const struct weir_box *box, __u64 now_ns)
{
	return !box->others_ns || now_ns - box->others_ns > WEIR_BOX_OTHERS_NS;
}

/* May a subject of a limit with this key be boxed? */
WEIR_INLINE bool weir_box_fits(const struct weir_box *box, __u32 key, __u64 now_ns)
{
	return key == WEIR_KEY_SOURCE || (key == WEIR_KEY_USER && weir_box_is_ones(box, now_ns));
}

#endif
